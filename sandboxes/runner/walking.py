"""The files of a tree, in order, as a search sees them: without `.git`, without what .gitignore leaves out.

Owns the order (part by part, by bytes), the rules and what is counted. Must never follow a link, and never go on when
nobody waits or time is over. On a file thread, with the rights of `agent`.
"""

import os
import time
from collections.abc import Callable, Iterator

from .ignoring import FILE_NAME, Ignored, rules_in

NAMES = 100_000
"""Of one directory; what is beyond is not seen."""
LOOK_EACH = 256
LEFT_OUT_SHOWN = 5
HIDDEN = ".git"


class Found:
    """`path` is below the tree's top. What is neither a file nor a link is not found."""

    __slots__ = ("is_file", "path")

    def __init__(self, path: str, is_file: bool) -> None:
        self.path = path
        self.is_file = is_file


class Tree:
    """`matches`: of a path, whether it is wanted at all. `base`: from where on .gitignore files count; the top itself
    when it does not lie below."""

    def __init__(
        self, top: str, matches: Callable[[str], bool], *, base: str, ignores: bool, until: float,
        wanted: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.left_out = 0
        self.left_out_first: list[str] = []
        self.unreadable = 0
        self.is_cut = False
        self._top = top
        self._matches = matches
        self._ignores = ignores
        self._until = until
        self._wanted = wanted
        self._looked = 0
        above = os.path.relpath(top, base) if os.path.commonpath((top, base)) == base else "."
        self._above = () if above == "." else tuple(above.split("/"))

    @property
    def is_over(self) -> bool:
        if not self.is_cut and (time.monotonic() > self._until or not self._wanted()):
            self.is_cut = True
        return self.is_cut

    def files(self) -> Iterator[Found]:
        """Files and links. Directories are entered in their turn, however deep they lie."""
        levels = [self._level("", self._rules_above())]
        while levels:
            try:
                found, rules = next(levels[-1])
            except StopIteration:
                levels.pop()
                continue
            if rules is None:
                yield found
            else:
                levels.append(self._level(found.path, rules))

    def _rules_above(self) -> Ignored:
        rules: Ignored | None = None
        folder = self._top
        for _ in self._above:
            folder = os.path.dirname(folder)
        for depth, part in enumerate(self._above):
            rules = Ignored(rules_in(folder) if self._ignores else None, depth, rules)
            folder = os.path.join(folder, part)
        return rules or Ignored(None, 0, None)

    def _level(self, folder: str, above: Ignored) -> Iterator[tuple[Found, Ignored | None]]:
        """What lies in one directory; with rules: a directory to enter."""
        entries = self._entries(folder)
        parts = (*self._above, *folder.split("/")) if folder else self._above
        rules = above
        if self._ignores and FILE_NAME in entries:
            rules = Ignored(rules_in(os.path.join(self._top, folder)), len(parts), above)
        for name in sorted(entries, key=os.fsencode):
            entry = entries[name]
            path = f"{folder}/{name}" if folder else name
            is_dir = entry.is_dir(follow_symlinks=False)
            if not is_dir and not self._matches(path):
                continue
            if self._ignores and rules.leaves_out((*parts, name), is_dir=is_dir):
                self._leave_out(path, is_dir)
            elif is_dir:
                yield Found(path, is_file=False), rules
            elif (is_file := entry.is_file(follow_symlinks=False)) or entry.is_symlink():
                yield Found(path, is_file), None

    def _entries(self, folder: str) -> dict[str, "os.DirEntry[str]"]:
        entries: dict[str, os.DirEntry[str]] = {}
        if self.is_over:
            return entries
        try:
            with os.scandir(os.path.join(self._top, folder)) as found:
                for entry in found:
                    self._looked += 1
                    if (self._looked % LOOK_EACH == 0 and self.is_over) or len(entries) >= NAMES:
                        self.is_cut = True
                        break
                    if entry.name != HIDDEN:
                        entries[entry.name] = entry
        except OSError:  # gone meanwhile, or not the agent's to read
            self.unreadable += 1
        return entries

    def _leave_out(self, path: str, is_dir: bool) -> None:
        self.left_out += 1
        if len(self.left_out_first) < LEFT_OUT_SHOWN:
            self.left_out_first.append(path + "/" * is_dir)
