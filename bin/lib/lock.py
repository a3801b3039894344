"""One `bin/up` or `bin/test` per state directory: the kernel drops the lock with the process, however it ends."""

import fcntl
import os
from typing import TextIO

from lib.place import Place
from lib.say import Stop


def take(place: Place) -> TextIO:
    """The open file is the lock; keep it until the end."""
    path = place.var / "setup.lock"
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        raise Stop(
            f"{place.var} is in use by process {file.read().strip() or '?'}. "
            f"Stop that one first, or set SANDGATE_VAR to another directory."
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file
