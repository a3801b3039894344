"""Seals: a protected file mounted read-only over itself, and every folder above it pinned by a mount on itself.

Owns these mounts and nothing else that is mounted. Must only be called on the guard's thread, which alone may mount and
has a working directory of its own. It never follows a link: names are looked up one by one from a root that the
sandbox's user cannot move, and what was mounted is compared with what was found before.

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
        self._covered: set[str] = set()

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
        roots, and what has another name too: through that one it could still be written."""
        root = self._root_of(path)
        if root is None or path in self._covered or (path not in self._sealed and not self._has_room(firm)):
            return False
        make_passable(root, os.path.dirname(path))
        if path not in self._sealed:
            names = path[len(root) + 1 :].split("/")
            with suppress(OSError), self._reached(root, names[:-1]) as folder:
                self._seal(root, folder, names)
        if firm and path in self._sealed:
            self._firm.add(path)
        return path in self._sealed

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
            os.chmod(names[-1], mode, dir_fd=at)
            return
        self._sealed["/".join([root, *names])] = mode

    def _pinned(self, above: int, folder: str, name: str) -> int:
        """The folder as it is reached from now on."""
        found = os.open(name, _FOLDER, dir_fd=above)
        if folder in self._pins:
            return found
        os.fchdir(above)
        rights.bind(name, name)
        now = os.open(name, _FOLDER, dir_fd=above)
        if not os.path.samestat(os.fstat(found), os.fstat(now)):  # somebody put a link or another folder there
            rights.unmount(name)
            os.close(found)
            os.close(now)
            raise OSError(f"{folder} changed while it was pinned")
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
        rights.unmount(path)
        os.chmod(path, self._sealed.pop(path) | stat.S_IWUSR)
        self._firm.discard(path)
        self._let_go(path)
        return True

    def cover(self, path: str, source: int, name: str) -> None:
        """The file `name` of the open folder `source` stands at `path` until `uncover`, read-only, and no folder above
        it can be moved. To be asked while all else is still: a link put there meanwhile would be followed. OSError,
        and then nothing is other than before."""
        root = self._root_of(path)
        assert root is not None
        make_passable(root, os.path.dirname(path))
        self._covered.add(path)
        try:
            with self._reached(root, path[len(root) + 1 :].split("/")[:-1]):
                os.fchdir(source)
                _mount_over(name, path)
        except OSError:
            self._covered.discard(path)
            self._let_go(path)
            raise

    def uncover(self, path: str) -> None:
        root = self._root_of(path)
        assert root is not None
        make_passable(root, os.path.dirname(path))
        rights.unmount(path)
        self._covered.discard(path)
        self._let_go(path)

    def _let_go(self, path: str) -> None:
        """Of the folders above, the last first."""
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


def _mount_all(places: Sequence[tuple[int, str]], found: os.stat_result) -> bool:
    """In every one of them, or in none."""
    for count, (layer, rest) in enumerate(places, 1):
        try:
            is_sealed = _mount_read_only(layer, rest, found)
        except OSError:
            is_sealed = False
        if not is_sealed:
            _undo(places[:count])
            return False
    return True


def _mount_read_only(layer: int, rest: str, found: os.stat_result) -> bool:
    """Whether that very file is sealed, without a second name or a write bit: looked at when nobody can change it any
    more. A link put there meanwhile would have been followed."""
    os.fchdir(layer)
    rights.bind(rest, rest)
    rights.make_read_only(rest)
    now = os.stat(rest, follow_symlinks=False)
    return os.path.samestat(found, now) and _is_alone(now) and not now.st_mode & 0o222


def _mount_over(name: str, path: str) -> None:
    """`name`, here, at `path`, and nowhere else."""
    rights.bind(name, path)
    try:
        rights.make_read_only(path)
        if not os.path.samestat(os.stat(name), os.stat(path, follow_symlinks=False)):
            raise OSError(errno.EBUSY, f"{path} changed while it was covered")
    except OSError:
        rights.unmount(path)
        raise


def _undo(done: Sequence[tuple[int, str]]) -> None:
    for layer, rest in done:
        with suppress(OSError):
            os.fchdir(layer)
            rights.unmount(rest)
