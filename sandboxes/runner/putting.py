"""A person's file in its place under seal, new or again, while nothing else moves.

Owns the order: the content in a file that nobody can have reached, the seal that was there let go, the rename, the
seal. Must never leave a moment in which a command could change the old file or the new one: whatever fails, the old
one is sealed again before anybody goes on.
"""

import os
import stat
from collections.abc import Callable
from contextlib import suppress

from .files import Refused
from .publishing import PIECE_BYTES, beside
from .sealing import Seals
from .stillness import Moment, World


class Hold:
    """One path's seal, let go of and taken again. On the guard's thread."""

    def __init__(self, seals: Seals, path: str) -> None:
        self._seals, self._path = seals, path
        self._was_sealed, self._was_firm = path in seals, seals.is_firm(path)

    def lift(self) -> None:
        self._seals.lift(self._path)

    def seal(self) -> bool:
        return self._seals.seal(self._path, firm=True)

    def back(self) -> None:
        """As it was found."""
        if self._was_sealed:
            self._seals.seal(self._path, firm=self._was_firm)


def put(
    world: World, temporary: str, real: str, sha256: str, mode: int, hold: Hold, expect: Callable[[], object]
) -> float:
    """Whatever is there. Somebody may hold `temporary` open, and write to it when it has got its name: so its content
    is put into another file, which nobody can have reached before it is sealed. `expect`: the last look at the way
    there. Raises Refused when it leads elsewhere now, when that is not what came, or when it cannot be sealed; then the
    old file is there as before. For how many seconds everything else was held still."""
    with world.still() as moment:
        expect()
        os.chmod(temporary, 0o600)  # whose it is may have shut it
        _anew(temporary, real, mode, hold, sha256)
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return moment.held_s


def again(world: "World | Nobody", real: str, hold: Hold) -> bool:
    """Whether what lies there is sealed, as a person once put it: without the other names and the open files through
    which it could still be written. These keep the old file."""
    with world.still():
        found = os.lstat(real)
        if not stat.S_ISREG(found.st_mode):
            return False
        if found.st_nlink == 1 and not world.writes(found):
            return hold.seal()
        mode = stat.S_IMODE(found.st_mode) | stat.S_IRUSR
        if mode != stat.S_IMODE(found.st_mode):
            os.chmod(real, mode)
        _anew(real, real, mode, hold)
    return True


class Nobody:
    """Instead of a World, before the first command."""

    def still(self) -> "Nobody":
        return self

    def __enter__(self) -> Moment:
        return Moment()

    def __exit__(self, *raised: object) -> None:
        pass

    def writes(self, file: os.stat_result) -> bool:
        return False


def _anew(source: str, real: str, mode: int, hold: Hold, sha256: str = "") -> None:
    anew, fd = beside(real)
    try:
        try:
            os.fchmod(fd, mode)
            if _copied(source, fd) != sha256 and sha256:
                raise Refused("busy", "somebody changed it while it came, so nothing was written; try again")
            os.fsync(fd)
        finally:
            os.close(fd)
        _replace(anew, real, hold)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(anew)
        raise


def _replace(anew: str, real: str, hold: Hold) -> None:
    old = f"{anew}.old"
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(real).st_mode):
            raise Refused("not_a_file", "it is no regular file any more")
    try:
        hold.lift()
        with suppress(FileNotFoundError):
            os.rename(real, old)
        try:
            os.rename(anew, real)
            if not hold.seal():
                os.unlink(real)
                raise Refused("busy", "it could not be sealed, so nothing was written; try again")
        except BaseException:
            with suppress(FileNotFoundError):
                os.rename(old, real)
            raise
    except BaseException:
        hold.back()
        raise
    with suppress(FileNotFoundError):
        os.unlink(old)


def _copied(source: str, target: int) -> str:
    """The SHA-256 of what was copied."""
    import hashlib

    found = hashlib.sha256()
    fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while data := os.read(fd, PIECE_BYTES):
            found.update(data)
            view = memoryview(data)
            while view:
                view = view[os.write(target, view) :]
    finally:
        os.close(fd)
    return found.hexdigest()
