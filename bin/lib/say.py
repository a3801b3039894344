"""How the set-up talks: one plain line before each thing it does, and one way to give up that names the next step."""

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress


class Stop(Exception):
    """The set-up cannot go on. The text names the thing and what to do about it."""


def say(text: str) -> None:
    with suppress(OSError):  # the terminal may be closed already, and that must not break off the way out
        print(f"sandgate: {text}", flush=True)


def run(command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None, fix: str = "") -> None:
    """Runs quietly; a failure shows the last lines of what was printed, then the fix."""
    done = subprocess.run(
        command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        tail = "\n".join(f"    {line}" for line in done.stdout.splitlines()[-15:])
        raise Stop(f"`{' '.join(command[:4])} …` ended with {done.returncode}:\n{tail}\n{fix}".rstrip())
