"""The one way in which new content takes a file's place, so that nothing is lost that somebody else wrote there.

Owns the order: the content beside its place and on disk, everything else still, a last look, the rename. Must never
replace what that look did not find as expected, and never judge by a time.
"""

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from .files import Refused
from .stillness import World

PIECE_BYTES = 1 << 20
_LOCKS = 64
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class Publisher:
    def __init__(self, world: World) -> None:
        self.world = world
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    @contextmanager
    def alone(self, real: str) -> Iterator[None]:
        """Of all that is published here, at that real path."""
        with self._locks[hash(real) % _LOCKS]:
            yield

    def create(self, temporary: str, real: str) -> None:
        """Where nothing is: nobody has to be held for that, unless the file system has no hard links. Raises
        FileExistsError."""
        try:
            os.link(temporary, real, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with self.world.still():
                if os.path.lexists(real):
                    raise FileExistsError(errno.EEXIST, "") from error
                os.rename(temporary, real)
        else:
            os.unlink(temporary)

    def replace(self, temporary: str, real: str, expect: Callable[[], None], *, mode: int | None = None) -> float:
        """`expect`: the last look, which raises when the file is not as it was. `mode` None: as it is. Answers for how
        many seconds everything else was held still."""
        with self.world.still() as moment:
            expect()
            found = os.lstat(real)
            if not stat.S_ISREG(found.st_mode):
                raise Refused("stale_edit", "it is no regular file any more")
            _take_after(temporary, real, found, mode)
            if os.lstat(temporary).st_uid != found.st_uid or self.world.writes(found):
                _put_into(temporary, real)
                if mode is not None:
                    os.chmod(real, mode)
                os.unlink(temporary)
            else:
                os.rename(temporary, real)
        return moment.held_s


def beside(real: str) -> tuple[str, int]:
    """A new file for what is to take its place, open to write."""
    name = os.path.join(os.path.dirname(real), f".sandgate-{os.urandom(8).hex()}.part")
    return name, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _take_after(temporary: str, real: str, found: os.stat_result, mode: int | None) -> None:
    """Mode, group and extended attributes, as they are at this moment."""
    with suppress(OSError):  # not one of the user's groups: the mode alone decides then
        if os.lstat(temporary).st_gid != found.st_gid:
            os.chown(temporary, -1, found.st_gid, follow_symlinks=False)
    os.chmod(temporary, stat.S_IMODE(found.st_mode) if mode is None else mode)
    names: list[str] = []
    with suppress(OSError):  # most file systems here have none
        names = os.listxattr(real, follow_symlinks=False)
    for name in names:
        os.setxattr(temporary, name, os.getxattr(real, name, follow_symlinks=False), follow_symlinks=False)


def _put_into(temporary: str, real: str) -> None:
    """Into the file itself, while nobody can look: who holds it open to write would go on in a file without a name, and
    what is somebody else's stays theirs. What may not fit is written first, behind the old end."""
    source = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        target = os.open(real, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            old, new = os.fstat(target).st_size, os.fstat(source).st_size
            try:
                _copy(source, target, old, new)
            except BaseException:
                os.ftruncate(target, old)
                raise
            _copy(source, target, 0, min(old, new))
            os.ftruncate(target, new)
            os.fsync(target)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _copy(source: int, target: int, begin: int, end: int) -> None:
    while begin < end:
        data = memoryview(os.pread(source, min(PIECE_BYTES, end - begin), begin))
        if not data:
            raise Refused("busy", "what was to be written has been cut short by somebody else")
        while data:
            written = os.pwrite(target, data, begin)
            begin += written
            data = data[written:]
