"""What is left of a command whose keeper was itself killed: processes of the user that came under PID 1.

Owns their end. Must never touch a process whose keeper lives: those are under that keeper, not under PID 1.
"""

import os
import signal

from . import rights


def kill_orphans() -> int:
    """One pass; how many it found. Their own children come under PID 1 then: call it until it finds none."""
    found = 0
    for entry in os.listdir("/proc"):
        if entry.isdigit() and _is_orphan(entry):
            try:
                os.kill(int(entry), signal.SIGKILL)
            except ProcessLookupError:
                continue
            found += 1
    return found


def _is_orphan(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
        owner = os.stat(f"/proc/{pid}").st_uid
    except OSError:  # it has ended meanwhile
        return False
    return int(parent) == os.getpid() and state != b"Z" and owner == rights.AGENT_UID
