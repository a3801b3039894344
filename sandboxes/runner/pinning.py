"""Scripts bound to a run: until nothing of it is left, the script's place holds a copy of the bytes that a person saw.

Owns the copies, in a folder that no command can reach, and which run holds which. A copy, because nobody has it open
and it has no other name: whatever somebody holds of the file itself changes nothing that runs. Must only be called on
the guard's thread.
"""

import os
import stat
from contextlib import suppress

from . import rights
from .files import Refused
from .hints import TYPE_CHECKING
from .sealing import Seals

if TYPE_CHECKING:
    from .putting import Nobody
    from .stillness import World

NAME = "scripts"
SCRIPT_BYTES = 256 << 10
"""The longest that a person is shown."""
_AGAIN = "so nothing was run; propose it again"


class Pins:
    """`folder`: where copies go, open; without one nothing can be pinned."""

    def __init__(self, seals: Seals, folder: int = -1) -> None:
        self._seals, self._folder = seals, folder
        self._held: dict[str, str] = {}  # run → path
        self._copies: dict[str, str] = {}  # path → name of its copy
        self._left: set[str] = set()  # of these, those that no run holds, and that could not be uncovered
        self._made = 0

    def pin(self, run: str, path: str, sha256: str, world: "World | Nobody") -> None:
        """Raises Refused: `script_changed` when there is anything else at that real path. OSError when it could not be
        covered."""
        if run in self._held:
            return
        if self._folder < 0 or not self._seals.can_hold(path):
            raise Refused("script_changed", f"no file can be bound to a run there, {_AGAIN}")
        with world.still():
            content, mode = _read(path)
            if _sha256(content) != sha256:
                raise Refused("script_changed", f"it is not what was approved any more, {_AGAIN}")
            if not self._seals.has_cover(path):
                self._cover(path, content, mode)
        self._left.discard(path)
        self._held[run] = path

    @property
    def is_owing(self) -> bool:
        """Also on the loop: whether `let_go` is to be asked again."""
        return bool(self._left)

    def release(self, run: str, world: "World | Nobody") -> None:
        path = self._held.pop(run, None)
        if path is not None and path not in self._held.values():
            self._left.add(path)
            self.let_go(world)

    def let_go(self, world: "World | Nobody") -> None:
        """Of what no run holds any more. While all else is still only when somebody shuts its folder again and again;
        when that cannot be, it stays covered until this is asked again."""
        for path in tuple(self._left):
            try:
                self._seals.uncover(path)
            except OSError:
                with suppress(OSError, Refused), world.still():
                    self._seals.uncover(path)
            if not self._seals.is_covered(path):
                self._left.discard(path)
                os.unlink(self._copies.pop(path), dir_fd=self._folder)

    def _cover(self, path: str, content: bytes, mode: int) -> None:
        self._made += 1
        name = str(self._made)
        try:
            self._copy(name, content, mode)
            self._seals.cover(path, self._folder, name)
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=self._folder)
            raise
        if (old := self._copies.get(path)) is not None:
            os.unlink(old, dir_fd=self._folder)
        self._copies[path] = name

    def _copy(self, name: str, content: bytes, mode: int) -> None:
        """Without a bit to write: this gVisor may empty a file that is opened with O_TRUNC before it looks at the
        mount, but not before it looks at the mode."""
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._folder)
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(fd, mode)


def opened(volume: str) -> int:
    """As root, at the start: the folder for the copies, which is empty. The user owns it and cannot come to it."""
    path = os.path.join(volume, NAME)
    os.makedirs(path, mode=0o700, exist_ok=True)
    os.chown(path, 0, 0)  # root here may give away what it owns, and not come into what is others'
    for left in os.listdir(path):  # of a sandbox that was stopped meanwhile
        os.unlink(os.path.join(path, left))
    os.chown(path, rights.AGENT_UID, rights.AGENT_GID)
    return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _read(path: str) -> tuple[bytes, int]:
    """While all else is still. The mode says whether it may be run."""
    try:
        if os.path.realpath(path) != path:
            raise Refused("script_changed", f"it leads through a link now, {_AGAIN}")
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Refused("script_changed", f"it is no regular file any more, {_AGAIN}")
            content = file.read(SCRIPT_BYTES + 1)
        return content, 0o555 if os.access(path, os.X_OK, effective_ids=True) else 0o444
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise Refused("script_changed", f"it cannot be read any more ({why}), {_AGAIN}") from error


def _sha256(content: bytes) -> str:
    from hashlib import sha256  # an idle sandbox need not have it

    return sha256(content).hexdigest()
