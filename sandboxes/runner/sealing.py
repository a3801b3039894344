"""Seals: a protected file mounted read-only over itself, and every folder above it pinned by a mount on itself.

Owns these mounts and nothing else that is mounted. Must only be called on the guard's thread, which alone may mount and
has a working directory of its own. It never follows a link: names are looked up one by one from a root that the
sandbox's user cannot move. Mounts on files are made by name, so whatever makes one must be asked while all else in the
sandbox is still: a link put there meanwhile would be followed, and nothing could tell what it had led to. A folder is
pinned from within, without its name. What is unmounted is never what a link leads to.

The mode loses its write bits too: on a volume this gVisor empties a file that is opened with O_TRUNC before it looks at
the mount, but not before it looks at the mode, which nobody can change through a read-only mount.

A pin keeps a folder from being renamed. Who stood in it before it was pinned still sees what lies below that mount, so
a file is sealed there too, in each layer of each folder above it.

A cover is a file of ours mounted read-only in the place of another, for as long as a command runs it.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from . import rights
from .files import Refused

MOST_SEALS = 1000
MOST_PINS = 2000
"""Of what commands made. What a person put there has as much room again for itself."""
COVERED = "a command that a person approved runs it now; wait for that command, or stop it"
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Seals:
    """`roots`: folders that are mounts already, real paths."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self._pins: dict[str, int] = {}  # folder → itself, below the pin
        self._sealed: dict[str, int] = {}  # path → its mode before
        self._firm: set[str] = set()  # of these, those that a person put there
        self._covered: dict[str, os.stat_result] = {}  # path → the file that stands there

    def __contains__(self, path: str) -> bool:
        return path in self._sealed

    def is_firm(self, path: str) -> bool:
        return path in self._firm

    def loose(self) -> list[str]:
        """Those that no person put there."""
        return [path for path in self._sealed if path not in self._firm]

    def is_covered(self, path: str) -> bool:
        return path in self._covered

    def can_hold(self, path: str) -> bool:
        """Whether it lies where there are seals."""
        return self._root_of(path) is not None

    def top(self, path: str) -> str | None:
        """The root above it, which no command can move."""
        return self._root_of(path)

    def make_way(self, path: str) -> None:
        """Past modes of the sandbox's user."""
        if (root := self._root_of(path)) is not None:
            make_passable(root, os.path.dirname(path))

    def seal(self, path: str, *, firm: bool = False) -> bool:
        """Whether it is sealed now; `firm`: a person put it there. Not a link, a folder, what lies outside the
        roots, and what has another name too: through that one it could still be written. To be asked while all else is
        still."""
        root = self._root_of(path)
        if root is None or path in self._covered or (path not in self._sealed and not self._has_room(firm)):
            return False
        make_passable(root, os.path.dirname(path))
        if path not in self._sealed:
            names = path[len(root) + 1 :].split("/")
            with suppress(OSError), self._reached(root, names[:-1]) as folder:
                self._seal(root, folder, names)
        if path not in self._sealed:
            self._let_go(path)
        elif firm:
            self._firm.add(path)
        return path in self._sealed

    def may_take(self, path: str) -> bool:
        """Whether it is worth asking `seal`, as it seems while others move."""
        if path in self._sealed:
            return True
        if path in self._covered or not self.can_hold(path) or not self._has_room(firm=False):
            return False
        self.make_way(path)
        try:
            return _is_alone(os.lstat(path))
        except OSError as error:  # its owner may shut a folder above it again and again
            return error.errno == errno.EACCES

    def _has_room(self, firm: bool) -> bool:
        if firm:
            return True  # who remembers them counts them
        return len(self._sealed) - len(self._firm) < MOST_SEALS and len(self._pins) < MOST_PINS

    @contextmanager
    def _reached(self, root: str, names: Sequence[str]) -> Iterator[int]:
        """That folder, open, and each one on the way to it pinned."""
        folder, at = root, os.open(root, _FOLDER)
        try:
            for name in names:
                folder = f"{folder}/{name}"
                below, at = at, self._pinned(at, folder, name)
                os.close(below)
            yield at
        finally:
            os.close(at)
            os.chdir("/")

    def _seal(self, root: str, at: int, names: list[str]) -> None:
        found = os.stat(names[-1], dir_fd=at, follow_symlinks=False)
        if not _is_alone(found):
            return
        mode = _take_write_bits(at, names[-1], found)
        if not _mount_all([*self._layers(root, names), (at, names[-1])], found):
            _give_mode(at, names[-1], found, mode)
            return
        self._sealed["/".join([root, *names])] = mode

    def _pinned(self, above: int, folder: str, name: str) -> int:
        """The folder as it is reached from now on."""
        found = os.open(name, _FOLDER, dir_fd=above)
        if folder in self._pins:
            return found
        try:
            now = _pin(above, found, name)
        except BaseException:
            os.close(found)
            raise
        self._pins[folder] = found
        return now

    def _layers(self, root: str, names: list[str]) -> Iterator[tuple[int, str]]:
        for upto in range(1, len(names)):
            folder = "/".join([root, *names[:upto]])
            yield self._pins[folder], "/".join(names[upto:])

    def lift(self, path: str) -> bool:
        """Whether there was a seal. Pins that hold nothing any more go too. Raises Refused while it is covered."""
        if path in self._covered:
            raise Refused("busy", COVERED)
        if path not in self._sealed:
            return False
        root = self._root_of(path)
        assert root is not None
        make_passable(root, os.path.dirname(path))
        names = path[len(root) + 1 :].split("/")
        for layer, rest in self._layers(root, names):
            os.fchdir(layer)
            rights.unmount(rest)
        os.chdir("/")
        found = os.lstat(path)
        rights.unmount(path)
        mode = self._sealed.pop(path) | stat.S_IWUSR
        with suppress(OSError):  # who waited for this moment may have put something else there
            _give_mode(None, path, found, mode)
        self._firm.discard(path)
        self._let_go(path)
        return True

    def cover(self, path: str, source: int, name: str) -> None:
        """The file `name` of the open folder `source` stands at `path` until `uncover`, read-only, and no folder above
        it can be moved. To be asked while all else is still. OSError, and then nothing is other than before."""
        root = self._root_of(path)
        assert root is not None
        make_passable(root, os.path.dirname(path))
        copy = os.stat(name, dir_fd=source, follow_symlinks=False)
        self._covered[path] = copy
        try:
            with self._reached(root, path[len(root) + 1 :].split("/")[:-1]):
                os.fchdir(source)
                _mount_read_only(name, path, copy)
        except BaseException:
            del self._covered[path]
            self._let_go(path)
            raise

    def has_cover(self, path: str) -> bool:
        """Whether what covers it is what lies there now. OSError when somebody shut a folder above it."""
        copy = self._covered.get(path)
        try:
            return copy is not None and os.path.samestat(copy, os.lstat(path))
        except FileNotFoundError:
            return False

    def uncover(self, path: str) -> None:
        """OSError, and then it is covered as before, when somebody shut a folder above it meanwhile."""
        root = self._root_of(path)
        assert root is not None
        make_passable(root, os.path.dirname(path))
        if self.has_cover(path):
            rights.unmount(path)
        self._covered.pop(path, None)
        self._let_go(path)

    def _let_go(self, path: str) -> None:
        """Of the folders above, the last first, all that hold nothing."""
        root = self._root_of(path)
        while root is not None and (path := os.path.dirname(path)) != root:
            self._unpin(path)

    def _holds(self, folder: str) -> bool:
        return any(path.startswith(folder + "/") for path in (*self._sealed, *self._covered))

    def _unpin(self, folder: str) -> None:
        if folder in self._pins and not self._holds(folder):
            with suppress(OSError):  # somebody stands in it: it stays pinned
                rights.unmount(folder, in_use=False)
                os.close(self._pins.pop(folder))

    def _root_of(self, path: str) -> str | None:
        return next((root for root in self._roots if path.startswith(root + "/")), None)


def make_passable(root: str, folder: str) -> None:
    """Whoever owns a folder may shut themselves out of it, and go on making files there that they know the names of;
    what lies there is found and sealed all the same. Only their own folders: whose else it is, they made nothing."""
    names = folder[len(root) + 1 :].split("/") if folder != root else []
    for upto in range(len(names) + 1):
        at = "/".join([root, *names[:upto]])
        with suppress(OSError):
            found = os.lstat(at)
            if stat.S_ISDIR(found.st_mode) and found.st_mode & 0o700 != 0o700:
                os.chmod(at, stat.S_IMODE(found.st_mode) | 0o700)


def _is_alone(known: os.stat_result) -> bool:
    return stat.S_ISREG(known.st_mode) and known.st_nlink == 1


def _take_write_bits(folder: int, name: str, found: os.stat_result) -> int:
    """What the mode was. OSError for a file of somebody else's that has write bits: those are not ours to take."""
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o222:
        os.chmod(name, mode & ~0o222, dir_fd=folder)
    return mode


def _give_mode(folder: int | None, name: str, found: os.stat_result, mode: int) -> None:
    """Only to that file: a mode is given to what a link leads to."""
    if os.path.samestat(found, os.stat(name, dir_fd=folder, follow_symlinks=False)):
        os.chmod(name, mode, dir_fd=folder)


def _pin(above: int, found: int, name: str) -> int:
    """The open folder `found` as it is reached from then on, with a mount on itself, which keeps it where it is."""
    os.fchdir(found)
    rights.bind(".", ".")
    now = -1
    try:
        now = os.open(name, _FOLDER, dir_fd=above)
        if not os.path.samestat(os.fstat(found), os.fstat(now)):
            raise OSError(errno.EBUSY, f"{name} changed while it was pinned")
    except BaseException:
        if now >= 0:
            os.close(now)
        rights.unmount(".")  # from below it that is the mount on it, whatever its name is now
        raise
    return now


def _mount_all(places: Sequence[tuple[int, str]], found: os.stat_result) -> bool:
    """In every one of them, or in none."""
    for count, (layer, rest) in enumerate(places):
        try:
            os.fchdir(layer)
            _mount_read_only(rest, rest, found)
        except OSError:
            _undo(places[:count])
            return False
    return True


def _mount_read_only(source: str, target: str, found: os.stat_result) -> None:
    """OSError, and nothing is mounted, unless that very file lies at `target` then, without a second name or a write
    bit: looked at when nobody can change it any more."""
    if not stat.S_ISREG(os.stat(target, follow_symlinks=False).st_mode):
        raise OSError(errno.EBUSY, f"{target} is no regular file any more")
    rights.bind(source, target)
    try:
        rights.make_read_only(target)
        now = os.stat(target, follow_symlinks=False)
        if not os.path.samestat(found, now) or not _is_alone(now) or now.st_mode & 0o222:
            raise OSError(errno.EBUSY, f"{target} changed meanwhile")
    except BaseException:
        rights.unmount(target)
        raise


def _undo(done: Sequence[tuple[int, str]]) -> None:
    for layer, rest in done:
        with suppress(OSError):
            os.fchdir(layer)
            rights.unmount(rest)
