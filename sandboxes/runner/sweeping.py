"""Finding what is newly there under a protected name, at the cost of what has changed.

Owns a watch (inotify) on each folder below its roots; reading what they told costs microseconds when nothing was made.
Must only be called on the guard's thread, save `take` and `collect`. Must never follow a link, and never believe that
what was told is still so.

A link or a pipe of such a name is told too, and has no seal.

Packages bring keys and certificates of their own: of what is made inside REPORTED folders the names are told, and no
more, for who removes or renews them must be able to. A folder in there is looked through once, when it appears.
"""

import ctypes
import os
import stat
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from .paths import Folder, Protection, fold
from .sealing import make_passable

REPORTED = frozenset({"node_modules", "site-packages", ".git", ".venv", ".tox"})
MOST_WATCHES = 20_000
WITHIN_S, ALL_WITHIN_S = 5.0, 60.0
"""Of looking at what one command made, and of looking at everything."""
AGAIN_S = 10.0
READ_BYTES, TOLD_BYTES = 64 << 10, 4 << 20
_MADE, _MOVED_HERE, _ONLY_FOLDERS, _NO_LINK = 0x100, 0x80, 0x01000000, 0x02000000
_WATCHED = _MADE | _MOVED_HERE | _ONLY_FOLDERS | _NO_LINK
_IS_FOLDER, _LOST_SOME, _GONE = 0x40000000, 0x4000, 0x8000
_NONBLOCK_CLOEXEC = 0o4000 | 0o2000000
_EVENT = struct.Struct("iIII")
_FILE, _TOLD = stat.S_IFREG, frozenset({stat.S_IFREG, stat.S_IFLNK, stat.S_IFIFO})
_libc = ctypes.CDLL(None, use_errno=True)


class Found:
    __slots__ = ("path", "reported_only")

    def __init__(self, path: str, reported_only: bool) -> None:
        self.path = path
        self.reported_only = reported_only


class Sweeper:
    """`roots`: real paths. What is there already is told by `everything`."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self._fd = _libc.inotify_init1(_NONBLOCK_CLOEXEC)
        self._folders: dict[int, str] = {}
        self._told = bytearray()
        self._protection = Protection()
        self._is_full = False
        self._walked_at = 0.0

    def obey(self, protection: Protection) -> None:
        self._protection = protection

    def take(self) -> bytes:
        """What was told since; on the loop. Empty, nearly always: then there is nothing to look at."""
        self.collect()
        told, self._told = self._told, bytearray()
        return bytes(told)

    def collect(self) -> None:
        """Out of the kernel, which keeps it without a bound. What is too much is forgotten, and everything walked."""
        while self._fd >= 0:
            try:
                self._told += os.read(self._fd, READ_BYTES)
            except BlockingIOError:
                break
            if len(self._told) > TOLD_BYTES:
                self._told[:] = _EVENT.pack(-1, _LOST_SOME, 0, 0)

    @property
    def must_walk(self) -> bool:
        """Not every folder is watched, and the last look at all of them is some time ago."""
        return (self._fd < 0 or self._is_full) and time.monotonic() - self._walked_at > AGAIN_S

    def everything(self) -> Iterator[Found]:
        self._walked_at = time.monotonic()
        self._is_full = False
        self._folders.clear()
        for root in self._roots:
            yield from self._into(root, time.monotonic() + ALL_WITHIN_S, reported=False, look_inside=False)

    def among(self, told: bytes) -> Iterator[Found]:
        """What is found where `told` says that something was made."""
        seen: set[tuple[str, str, bool]] = set()
        until = time.monotonic() + WITHIN_S
        for watch, mask, name in _events(told):
            if mask & _LOST_SOME:
                yield from self.everything()
            elif mask & _GONE:
                self._folders.pop(watch, None)
            elif (folder := self._folders.get(watch)) is not None:
                made = (folder, name, bool(mask & _IS_FOLDER))
                if made not in seen:
                    seen.add(made)
                    yield from self._one(*made, until)

    def _one(self, folder: str, name: str, is_folder: bool, until: float) -> Iterator[Found]:
        path, reported = f"{folder}/{name}", _is_reported(folder)
        if is_folder:
            yield from self._into(path, until, reported=reported, look_inside=True)
        elif Folder(folder, self._protection).check(name) and (kind := self._kind(folder, path)):
            yield Found(path, reported or kind != _FILE)

    def _into(self, top: str, until: float, *, reported: bool, look_inside: bool) -> Iterator[Found]:
        """`look_inside`: also into what is only reported, where nobody watches below its own top."""
        waiting = [(top, reported)]
        while waiting and time.monotonic() < until:
            folder, reported = waiting.pop()
            is_top = not reported and fold(os.path.basename(folder)) in REPORTED
            if not reported:
                self._watch(folder)
            if (reported or is_top) and not look_inside:
                continue
            judge = Folder(folder, self._protection)
            for entry in self._entries(folder, watched=not reported):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, reported or is_top))
                elif judge.check(entry.name) and (kind := self._kind(folder, entry.path)):
                    yield Found(entry.path, reported or is_top or kind != _FILE)
        self._is_full |= bool(waiting)

    def _entries(self, folder: str, *, watched: bool) -> list["os.DirEntry[str]"]:
        try:
            return _scanned(folder)
        except PermissionError:
            make_passable(self._root_of(folder), folder)
        except OSError:  # gone
            return []
        if watched:
            self._watch(folder)
        with suppress(OSError):  # not the agent's to read
            return _scanned(folder)
        return []

    def _kind(self, folder: str, path: str) -> int:
        """Of a file, of a link or of a pipe, which are read under that name too; 0: none of them, or gone again."""
        for is_last in (False, True):
            try:
                kind = stat.S_IFMT(os.lstat(path).st_mode)
                return kind if kind in _TOLD else 0
            except PermissionError:
                if not is_last:
                    make_passable(self._root_of(folder), folder)
            except OSError:
                break
        return 0

    def _root_of(self, folder: str) -> str:
        return next(root for root in self._roots if f"{folder}/".startswith(f"{root}/"))

    def _watch(self, folder: str) -> None:
        """Before it is read: what is made meanwhile is told then."""
        if self._fd < 0 or len(self._folders) >= MOST_WATCHES:
            self._is_full = True
            return
        watch = _libc.inotify_add_watch(self._fd, os.fsencode(folder), _WATCHED)
        if watch >= 0:
            self._folders[watch] = folder


def _is_reported(folder: str) -> bool:
    return any(fold(part) in REPORTED for part in folder.split("/"))


def _scanned(folder: str) -> list["os.DirEntry[str]"]:
    with os.scandir(folder) as found:
        return list(found)


def _events(told: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at + _EVENT.size <= len(told):
        watch, mask, _, size = _EVENT.unpack_from(told, at)
        at += _EVENT.size
        yield watch, mask, os.fsdecode(told[at : at + size].rstrip(b"\0"))
        at += size
