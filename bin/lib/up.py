"""`bin/up`: makes everything ready, serves the console until told to stop, ends what it started."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from console import address
from lib import child, lock, signals, venv
from lib.place import CHECKOUT, Place, place, told
from lib.say import Stop, say

if TYPE_CHECKING:
    from lib.daemon import OwnDaemon

ABOUT = """Makes everything ready and serves the console until Ctrl-C: virtual environment, Docker, gVisor,
sandbox image, database. What is there already is used; the first start takes minutes, the next seconds."""
SETTINGS = """environment:
  SANDGATE_PORT   port (8000)              SANDGATE_VAR    state directory (var/ in the checkout)
  SANDGATE_HOST   address (127.0.0.1)      SANDGATE_CACHE  downloads and images (/var/cache/sandgate)
  SANDGATE_ORIGINS   addresses that people type on other machines, comma separated; any other name is refused
  DOCKER_HOST     a Docker daemon of yours, which must have a gVisor runtime
  SANDGATE_IMAGE  a sandbox image of yours, in place of the one built here
  SANDGATE_RESOLVERS  DNS servers that sandboxes may ask, comma separated (this machine's own)
  SANDGATE_DEBIAN_MIRROR   Debian archive to fetch from (this machine's own)
  SANDGATE_KEY_DECISIONS=1   at the first start: let a key decide too, for scripts and trials"""


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    signals.stop_on_signals()
    try:
        here = place()
        if options.forget_first_run:
            return forget_first_run(here)
        venv.enter("requirements.txt")
        return serve(here, own_docker=options.own_docker, images=options.image)
    except Stop as stop:
        print(f"sandgate: {stop}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("stopped before it was ready")
        return 130


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="bin/up", description=ABOUT, epilog=SETTINGS, formatter_class=form)
    parser.add_argument("--own-docker", action="store_true", help="start a Docker daemon of our own beside yours")
    parser.add_argument("--forget-first-run", action="store_true", help="delete first-run.json and its secrets")
    more = "also build this sandbox image; once asked for, later starts keep it"
    parser.add_argument("--image", action="append", default=[], choices=["node"], help=more)
    return parser.parse_args(arguments)


def forget_first_run(here: Place) -> int:
    path = here.var / "first-run.json"
    if not path.exists():
        say(f"{path} is not there")
        return 0
    path.unlink()
    say(f"{path} is deleted; the password and the keys in it stay valid until changed or revoked")
    return 0


def serve(here: Place, *, own_docker: bool, images: Sequence[str]) -> int:
    from lib import engine, revival  # need .venv

    held = lock.take(here)
    free_address()
    own = engine.own(here, own_docker=own_docker)
    orderly = False
    try:
        engine.ready(here, own, images)
        env = {**os.environ, "SANDGATE_VAR": str(here.var)}
        watched = revival.Revival(own).look if own else None  # the user's daemon is the user's to start
        code, told = child.run([str(venv.PYTHON), str(CHECKOUT / "manage.py"), "up"], env, watched)
        orderly = told or code == 0  # even where a second Ctrl-C killed it: whoever says stop wants nothing left
        return code if code >= 0 else 128 - code
    finally:
        signals.stopping()
        if own:
            leave(own, orderly=orderly)
        held.close()


def free_address() -> None:
    """Told before Docker starts and an image is built; `manage.py up` binds it for good."""
    told(address.origins)
    host, port = address.host(), told(address.port)
    try:
        address.bind(host, port).close()
    except OSError as error:
        raise Stop(address.refusal(host, port, error)) from error


def leave(own: "OwnDaemon", *, orderly: bool) -> None:
    """After a crash of the console its sandboxes stay, so that the next start finds them; else nothing is left."""
    running = own.running()
    if orderly or not running:
        own.stop()
    else:
        say(f"the console did not stop in order; {len(running)} sandbox(es) go on and the next bin/up finds them")
