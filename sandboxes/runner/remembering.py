"""Which files a person has put under seal, from one start of the sandbox to the next.

Owns one file beside what the sandbox's user can reach. Must never lose a path that it has taken, and never be written
from what a command made.
"""

import errno
import json
import os
from collections.abc import Iterator

from .files import Refused

NAME = "sealed"
MOST = 1000


class Remembered:
    """A line for each path that is taken (`+`) or given up again (`-`), appended."""

    def __init__(self, fd: int = -1, paths: tuple[str, ...] = ()) -> None:
        self._fd = fd
        self._paths = dict.fromkeys(paths)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._paths))

    def add(self, path: str) -> bool:
        """Whether it is new. Refused when there are too many; OSError when it could not be kept."""
        if path in self._paths:
            return False
        if len(self._paths) >= MOST:
            raise Refused("no_space", f"{MOST} protected files have been put into this sandbox, which is the most")
        self._append("+", path)
        self._paths[path] = None
        return True

    def drop(self, path: str) -> None:
        self._append("-", path)
        self._paths.pop(path, None)

    def _append(self, sign: str, path: str) -> None:
        if self._fd >= 0:
            line = f"{sign}{json.dumps(path)}\n".encode()
            before = os.fstat(self._fd).st_size
            if os.write(self._fd, line) != len(line):
                os.ftruncate(self._fd, before)
                raise OSError(errno.ENOSPC, "no space is left to remember it")
            os.fsync(self._fd)


def opened(volume: str) -> Remembered:
    """As root, at the start; afterwards what is open can be written whoever the thread is. Written anew without what is
    gone."""
    path = os.path.join(volume, NAME)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "rb", closefd=False) as file:
        old = file.read()
    paths = tuple(each for each in _read(old) if not _is_gone(each))
    new = "".join(f"+{json.dumps(each)}\n" for each in paths).encode()
    if new == old:
        return Remembered(fd, paths)
    os.close(fd)
    with open(f"{path}.new", "wb") as out:
        out.write(new)
        out.flush()
        os.fsync(out.fileno())
    os.rename(f"{path}.new", path)
    return Remembered(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC), paths)


def _read(lines: bytes) -> list[str]:
    paths: dict[str, None] = {}
    for line in lines.splitlines(keepends=True):
        if not line.endswith(b"\n"):  # it was being written when the machine stopped
            break
        path = json.loads(line[1:])
        if line[:1] == b"+":
            paths[path] = None
        else:
            paths.pop(path, None)
    return list(paths)


def _is_gone(path: str) -> bool:
    """What root may not look at, in a folder that is the user's alone, is not."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
