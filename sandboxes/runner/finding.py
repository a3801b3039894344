"""`glob`: which files have a name like this. By our own walk, so the image needs nothing.

Owns the order `recent`. On a file thread, with the rights of `agent`; must never hold more than one page of names.
"""

import heapq
import os
import stat
import time
from collections.abc import Iterator

from . import searches
from .files import Pool, Refused
from .hints import Any
from .searches import Page
from .walking import Tree


class Find(searches.Told):
    """Its answer: {paths, found, at_least, incomplete, truncated, next, ignored, left_out, unreadable}."""

    def __init__(self, pool: Pool, ref: int, message: Any) -> None:
        super().__init__(pool, ref, message["path"])
        self._base: str = message["base"]
        self._pattern: str = message["pattern"]
        self._offset, self._limit = int(message["offset"]), int(message["limit"])
        self._recent = message["sort"] == "recent"
        self._ignores = not message["include_ignored"]
        self._found = 0
        self.do(self._find)

    def _find(self) -> None:
        top = searches.beginning(self.path)
        if not stat.S_ISDIR(os.stat(top).st_mode):
            raise Refused("not_a_directory", "it is no directory")
        until = time.monotonic() + searches.WITHIN_S
        matches = searches.globs(self._pattern).matches
        tree = Tree(
            top, matches, base=self._base, ignores=self._ignores, until=until, wanted=lambda: self.ref is not None
        )
        page = Page(self._offset, self._limit)
        for path in self._in_order(tree, top):
            name = searches.shown(top, self._base, path)
            page.put(name, name)
        page.found = self._found
        counts = {"ignored": tree.left_out, "left_out": tree.left_out_first, "unreadable": tree.unreadable}
        self.tell({"paths": page.entries, **page.told(at_least=tree.is_cut), "incomplete": tree.is_cut, **counts})

    def _in_order(self, tree: Tree, top: str) -> Iterator[str]:
        paths = self._counted(tree)
        if not self._recent:
            yield from paths
            return
        wanted = self._offset + self._limit + 1
        yield from (path for _, path in heapq.nsmallest(wanted, ((-_changed_ns(top, path), path) for path in paths)))

    def _counted(self, tree: Tree) -> Iterator[str]:
        for self._found, found in enumerate(tree.files(), start=1):
            yield found.path


def _changed_ns(top: str, path: str) -> int:
    try:
        return os.lstat(os.path.join(top, path)).st_mtime_ns
    except OSError:
        return 0
