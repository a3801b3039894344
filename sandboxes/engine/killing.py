"""The processes of gVisor on this machine, ended without asking Docker: for a halt, which cannot wait for its turn.

Owns finding them by their containers. Whatever runs in a sandbox are threads of its sentry, and end with it. Must never
touch a process that does not name one of these containers, nor one that took over the number of another.
"""

import os
import signal
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

PROGRAMS = ("runsc-sandbox", "runsc-gofer")


def kill(container_ids: Collection[str], *, proc: Path = Path("/proc")) -> int:
    """How many were killed: none where Docker runs elsewhere, or is not ours to kill for."""
    if os.geteuid() != 0 or not container_ids:
        return 0
    names = {each.encode() for each in container_ids}
    return sum(_kill(int(each.name), names, proc) for each in proc.glob("[0-9]*") if _is_of(each, names))


def _is_of(process: Path, names: set[bytes]) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:  # gone meanwhile
        return False
    return os.path.basename(words[0]).decode("ascii", "replace") in PROGRAMS and not names.isdisjoint(words)


def _kill(pid: int, names: set[bytes], proc: Path) -> bool:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if _is_of(proc / str(pid), names):  # looked at again: the number may be another's by now
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
        finally:
            os.close(handle)
    return False
