"""`manage.py up`: lock, port, migrations, first start, hub, "ready". And back in the other order.

Owns the process from start to end: its signals, its lock, who starts before whom. Must leave nothing behind on any way
out, and must not use the ORM on this thread once the server's loop runs on it.
"""

import fcntl
import os
import signal
import socket
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings
from django.core.management import BaseCommand, CommandError, call_command
from django.db import DatabaseError, connections
from django.db.migrations.exceptions import InconsistentMigrationHistory

from console import address

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class Command(BaseCommand):
    help = "Serves the console and runs its sandboxes, until Ctrl-C."
    _told = 0
    """The signal that came before the server ran."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=int, default=settings.PORT)

    def handle(self, *, host: str, port: int, **_: Any) -> None:
        on_signals(self._unwind)  # until the server runs
        with _locked(settings.VAR / "up.lock"), _bound(host, port) as bound:
            url = _address(host, bound.getsockname()[1])
            self._prepare(url)
            settings.SITE = settings.SITE if settings.PUBLIC_ORIGINS else url  # the port may be any
            if host in WILDCARDS and not settings.PUBLIC_ORIGINS:
                self._say("other machines are refused until SANDGATE_ORIGINS names the address that people type there")
            self._serve(bound, url)
        self._say("stopped")

    def _unwind(self, number: int, _frame: FrameType | None) -> NoReturn:
        on_signals(signal.SIG_DFL)  # a second one, on the way out, must not break off the way out
        self._told = number
        raise SystemExit(128 + number)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()  # whoever started us may read a pipe

    def _prepare(self, url: str) -> None:
        from console import first_run

        try:
            call_command("migrate", verbosity=0, interactive=False)
            made = first_run.ensure(url)
        except (DatabaseError, InconsistentMigrationHistory, OSError) as error:
            raise CommandError(
                f"The database in {settings.VAR} could not be made ready ({error}); see that it can be written to, "
                "or name another directory with SANDGATE_VAR."
            ) from error
        finally:
            connections.close_all()  # this thread will run the loop: no ORM in it from here on
        if made:
            self._say(f"sign in as {made['admin']['user']} with password {made['admin']['password']}")
        if first_run.exists():
            self._say(f"first sign-in and keys: {first_run.path()} ({first_run.forget_command()} deletes it)")

    def _serve(self, bound: socket.socket, url: str) -> None:
        from console import asgi  # here: no other command needs a reactor
        from console.server import Server
        from console.workspaces import bus, db
        from sandboxes import host

        server = Server(asgi.application, bound=bound, before_stop=bus.close)
        host.current = hub = host.Hub(on_death=server.stop)

        def stop(*_: object) -> None:
            on_signals(signal.SIG_DFL)  # a second one ends the process at once
            server.stop()

        try:
            self._start(hub)
            on_signals(stop)
            if self._told:  # in the middle of a finalizer, where Python drops whatever is raised
                raise SystemExit(128 + self._told)
            server.run(ready=lambda: self._say(f"ready on {url}"))
        except OSError as error:  # another process began to listen since the port was bound
            here, port = bound.getsockname()[:2]
            raise CommandError(address.refusal(here, port, error)) from error
        finally:
            if not hub.stop():
                self.stderr.write(
                    "The sandbox host did not end in time and was cut; the next start cleans up after it."
                )
                os._exit(1)  # its thread would keep the process for ever
            db.close()
        if hub.error:
            raise CommandError("The sandbox host died; the log above says why, and `manage.py up` starts it again.")

    def _start(self, hub: Any) -> None:
        try:
            hub.start()
        except RuntimeError as error:
            why = f"{error.__cause__ or error}".rstrip(".")
            raise CommandError(
                f"The sandbox host did not start ({why}); `manage.py doctor` tells which part is missing."
            ) from error


def on_signals(handler: Callable[[int, FrameType | None], Any] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup a hang-up stays ignored
            signal.signal(number, handler)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The kernel drops the lock however this process ends; the number in the file is for the message only."""
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise CommandError(
                f"Another `manage.py up` (process {lock.read().strip() or 'unknown'}) serves {path.parent}; "
                "stop it, or name another directory with SANDGATE_VAR."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """The port is tried before anything is made or started, and nobody is let in before everything runs."""
    try:
        bound = address.bind(host, port)
    except OSError as error:
        raise CommandError(address.refusal(host, port, error)) from error
    with bound:
        yield bound


def _address(host: str, port: int) -> str:
    """What people type: a wildcard is no address, and IPv6 wants brackets."""
    name = WILDCARDS.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
