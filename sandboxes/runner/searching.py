"""`grep`: ripgrep over the files of our own walk, in batches of growing size, until one page is full.

Owns the order of the batches and the time. Must never go on when its caller has left. The walk and the reading of what
ripgrep prints happen on a file thread, with the rights of `agent`; ripgrep itself has a keeper, as commands have.
"""

import os
import stat
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice

from . import around, batches, ripgrep, searches
from .batches import COLLECTED, Batch
from .files import Pool, Refused
from .hints import Any
from .loop import Timer
from .programs import NOT_STARTED, Ended, Program
from .ripgrep import Hit
from .searches import Page
from .walking import Tree

FIRST_FILES, GROWTH = 100, 8
BATCH_FILES = 10_000
"""When time is over, what the last batch has not told yet is lost."""
BATCH_BYTES = 1_600_000
"""What the kernel takes as arguments."""
PATTERN_BYTES = 8000
PIECES_AHEAD = 4
LATE_S = 0.05
"""So long after its time a search is ended from outside: then it knows by its own clock why."""
LOOKS_S = 1.0
"""So long after its time it still looks around matches in very long lines."""
LARGE_BYTES = 64 << 20
"""Where longer lines than fit into memory made ripgrep give up, it is not given files beyond this any more."""
NOTHING = "/dev/null"
"""Searched where there is no file, so that a pattern that is none is told all the same."""
NO_RIPGREP = "grep needs `rg` (ripgrep), which this sandbox's image does not have; use a command instead"


class Search(searches.Told):
    """Its answer: {matches | paths | counts, files_searched, found, at_least, incomplete, truncated, next, ignored,
    left_out, unreadable, binary, large_left_out}."""

    def __init__(self, pool: Pool, ref: int, message: Any) -> None:
        super().__init__(pool, ref, message["path"])
        self._base: str = message["base"]
        self._glob: str | None = message["glob"]
        self._offset, self._limit = int(message["offset"]), int(message["limit"])
        self._needed = self._offset + self._limit + 1
        self._ignores = not message["include_ignored"]
        how = (message["pattern"], message["literal"], message["ignore_case"], int(message["context"]))
        self._wanted = ripgrep.Wanted(*how, mode=message["mode"])
        self._program: Program | None = None
        self._timer: Timer | None = None
        self._unread = 0
        self._careful = self._in_order = False
        self._entries: list[tuple[str, Hit | None, int]] = []
        self._searched = self._binary = self._unreadable = 0
        self.do(self._begin)

    # --- on a file thread ------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._until = time.monotonic() + searches.WITHIN_S
        if (rg := ripgrep.found()) is None:
            raise Refused("no_ripgrep", NO_RIPGREP)
        self._rg = rg
        _check(self._wanted.pattern)
        self._names = self._walked(searches.beginning(self.path))
        self._size = FIRST_FILES
        self._upcoming = self._gathered()
        self._pool.loop.post(lambda: self._watch(self._until))
        self._go_on()

    def _walked(self, top: str) -> Iterator[str]:
        matches = searches.globs(self._glob or "*").matches
        is_dir = stat.S_ISDIR(os.stat(top).st_mode)
        self._top = top if is_dir else os.path.dirname(top)
        self._tree = Tree(
            self._top, matches, base=self._base, ignores=self._ignores, until=self._until,
            wanted=lambda: self.ref is not None,
        )  # fmt: skip
        if not is_dir:
            return iter([os.path.basename(top)])
        return (found.path for found in self._tree.files() if found.is_file)

    def _gathered(self) -> list[str]:
        """The next batch: few files at first, so that what is frequent is found at once."""
        batch, left_bytes = [], BATCH_BYTES
        for name in islice(self._names, self._size):
            batch.append(name)
            left_bytes -= len(os.fsencode(name)) + 16
            if left_bytes < 0:
                break
        self._size = min(self._size * GROWTH, BATCH_FILES)
        return batch

    def _go_on(self) -> None:
        self._batch_files, self._upcoming = self._upcoming, []
        self._in_order = not self._searched  # what is frequent is found in the first few, which are few
        self._search()
        self._upcoming = self._gathered()  # while it works

    def _search(self) -> None:
        if self._careful:
            self._batch_files = [name for name in self._batch_files if not self._is_large(name)]
        files = [f"./{name}" for name in self._batch_files] or [NOTHING]
        argv = ripgrep.command(self._rg, self._wanted, files, most=self._needed, in_order=self._in_order)
        self._batch = Batch(self._top, self._batch_files, self._wanted)
        self._pool.loop.post(lambda: self._start(argv))

    def _is_large(self, name: str) -> bool:
        try:
            return os.lstat(os.path.join(self._top, name)).st_size > LARGE_BYTES
        except OSError:
            return False

    def _parse(self, data: bytes) -> None:
        self._batch.feed(data)
        self._pool.loop.post(self._parsed)
        if self._batch.collected > COLLECTED or (self._in_order and self._is_full):
            self._pool.loop.post(self._kill)

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self._until

    @property
    def _looks(self) -> bool:
        """Whether there is still somebody, and time, to look around a match for: a long line is a long way."""
        return self.ref is not None and time.monotonic() < self._until + LOOKS_S

    @property
    def _is_full(self) -> bool:
        return len(self._entries) + self._batch.collected >= self._needed

    def _judge(self, ended: Ended) -> None:
        if self._is_late:
            self._batch.end_here()
        elif self._again(ended):
            self._search()
            return
        self._take(ended)
        if self._is_late or len(self._entries) >= self._needed or not self._upcoming:
            self._finish()
        else:
            self._go_on()

    def _again(self, ended: Ended) -> bool:
        """Too many hits, in no order: then one file after the other. Out of memory: then without the largest files."""
        if self._batch.collected > COLLECTED and not self._in_order:
            self._in_order = True
            return True
        if ended.code in (0, 1, 2) or (self._in_order and self._is_full):
            return False
        if ended.code == NOT_STARTED or self._careful:
            said = ended.stderr.decode(errors="replace").strip()[:300]
            raise Refused("sandbox_error", f"ripgrep ended with {ended.code} ({said}); narrow `path` or `glob`")
        self._careful = True
        return True

    def _take(self, ended: Ended) -> None:
        batch = self._batch
        self._entries += batch.entries()
        self._binary += batch.binary
        self._searched += len(batch.files) if not self._is_late else len({name for name, _, _ in batch.entries()})
        complaints = batches.unreadable(ended.stderr)
        if complaints is None and ended.code == 2 and not batch.collected:
            said = ripgrep.fault(ended.stderr)
            raise Refused("bad_pattern", f"the pattern {self._wanted.pattern[:200]!r} cannot be searched for: {said}")
        self._unreadable += complaints or 0

    def _finish(self) -> None:
        page, is_late = Page(self._offset, self._limit), self._is_late
        for name, hit, count in self._entries:
            if hit is not None and hit.place is not None and page.takes_next and self._looks:
                around.look(os.path.join(self._top, name), hit)
            self._put(page, searches.shown(self._top, self._base, name), hit, count)
        is_cut = is_late or bool(self._upcoming) or self._tree.is_cut or len(self._entries) >= self._needed
        self.tell({
            {"lines": "matches", "files": "paths", "count": "counts"}[self._wanted.mode]: page.entries,
            "files_searched": self._searched,
            **page.told(at_least=is_cut),
            "incomplete": is_late or self._tree.is_cut,
            "ignored": self._tree.left_out,
            "left_out": self._tree.left_out_first,
            "unreadable": self._unreadable + self._tree.unreadable,
            "binary": self._binary,
            "large_left_out": self._careful,
        })  # fmt: skip

    def _put(self, page: Page, path: str, hit: Hit | None, count: int) -> None:
        if hit is not None:
            around = [*hit.before, *hit.after]
            entry = [path, hit.line, hit.column, hit.text, hit.before, hit.after]
            page.put(entry, path, hit.text, *(text for _, text in around))
        elif self._wanted.mode == "count":
            page.put([path, count], path)
        else:
            page.put(path, path)

    # --- on the loop -----------------------------------------------------------------------------------------------

    def _watch(self, until: float) -> None:
        self._timer = self._pool.loop.later(max(0.0, until - time.monotonic()) + LATE_S, self._kill)

    def _start(self, argv: list[str]) -> None:
        if self.ref is not None:
            ended = partial(self._ended_program)
            self._program = self._pool.programs.start(argv, self._top, self._took, ended)

    def _took(self, data: bytes) -> None:
        self._unread += 1
        self.do(lambda: self._parse(data))
        if self._unread > PIECES_AHEAD and self._program is not None:
            self._program.pause()

    def _parsed(self) -> None:
        self._unread -= 1
        if self._unread <= PIECES_AHEAD and self._program is not None:
            self._program.go_on()

    def _ended_program(self, ended: Ended) -> None:
        self._program = None
        self._unread = 0
        self.do(lambda: self._judge(ended))

    def _kill(self) -> None:
        if self._program is not None:
            self._program.kill()

    def _ended(self, result: dict[str, Any]) -> None:
        self._kill()
        if self._timer is not None:
            self._timer.cancel()
        super()._ended(result)

    def abort(self) -> None:
        super().abort()
        self._kill()


def _check(pattern: str) -> None:
    """What cannot be said to a program at all."""
    try:
        if len(os.fsencode(pattern)) <= PATTERN_BYTES and "\0" not in pattern:
            return
    except UnicodeEncodeError:
        pass
    raise Refused("bad_pattern", f"a pattern is text without a NUL, of up to {PATTERN_BYTES} bytes")
