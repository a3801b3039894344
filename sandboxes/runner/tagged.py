"""A part of a text with its numbers and tags, in one pass over all of it: only the whole file has a version.

Pure. Must never hold more than the part that is shown, a piece of the file and a bound of one line.
"""

from .hints import Any
from .lines import BOM, SHOWN_CHARACTERS, Tagger

LINES, TEXT_BYTES = 2000, 50 << 10
_HEAD_BYTES = 4 * SHOWN_CHARACTERS + 4
"""Enough of a line to know whether it is shown whole."""


class NotText(Exception):
    """`offset`: of the first byte that is a NUL, or no UTF-8."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class Part:
    """Lines `first` to at most `first + limit - 1` out of pieces that begin with the line before `first`, if there is
    one."""

    def __init__(self, first: int, limit: int) -> None:
        self.lines: list[list[Any]] = []
        self.cut: list[int] = []
        self.is_full = False
        self._first, self._limit = first, limit
        self._number = max(first - 1, 1)
        self._tagger = Tagger()
        self._head = bytearray()
        self._return = b""  # a CR that belongs to the line's ending, if an LF follows
        self._ended: tuple[int, bytes] | None = None
        self._left_bytes = TEXT_BYTES

    def feed(self, data: bytes) -> None:
        at = 0
        while not self.is_full and (end := data.find(b"\n", at)) >= 0:
            self._piece(data[at:end])
            self._return = b""
            self._end_line()
            at = end + 1
        if not self.is_full:
            self._piece(data[at:])

    def finish(self, *, terminated: bool) -> None:
        if not terminated:
            self._piece(b"\0")  # makes it put a CR it holds back; no text has a NUL
            self._end_line()
        if self._ended is not None:
            self._put(self._tagger.last())

    def _piece(self, data: bytes) -> None:
        data = self._return + data
        self._return = b"\r" if data.endswith(b"\r") else b""
        data = data.removesuffix(b"\r").removesuffix(b"\0")
        self._tagger.feed(data)
        if len(self._head) < _HEAD_BYTES:
            self._head += data[: _HEAD_BYTES - len(self._head)]

    def _end_line(self) -> None:
        tag = self._tagger.end()
        if self._ended is not None:
            self._put(tag)
        self._ended = (self._number, bytes(self._head))
        self._number += 1
        self._head.clear()

    def _put(self, tag: str) -> None:
        assert self._ended is not None
        number, head = self._ended
        if number < self._first or self.is_full:
            return
        text = head.decode(errors="ignore")  # it may end in half a character
        is_cut = len(text) > SHOWN_CHARACTERS
        text = text[:SHOWN_CHARACTERS]
        self._left_bytes -= len(text.encode())
        if self.lines and self._left_bytes < 0:
            self.is_full = True
            return
        if is_cut:
            self.cut.append(number)
        self.lines.append([number, "" if is_cut else tag, text])
        self.is_full = len(self.lines) >= self._limit


class Scan:
    """The pass. `feed` raises NotText."""

    def __init__(self, first: int, limit: int) -> None:
        import codecs
        from hashlib import sha256

        self._first = first
        self._part = Part(first, max(1, min(limit, LINES)))
        self._skip = max(0, first - 2)  # so many lines end before the part begins
        self._sha256 = sha256()
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._size = self._ends = self._returns = 0
        self._has_bom = False
        self._last = b""

    def feed(self, data: bytes) -> None:
        """Some more of the file, in order; at least three bytes at first, if it has as many."""
        self._sha256.update(data)
        self._check(data)
        ends = data.count(b"\n")
        self._returns += data.count(b"\r\n") + (self._last == b"\r" and data.startswith(b"\n"))
        if not self._part.is_full:
            self._show(data, ends)
        self._ends += ends
        self._size += len(data)
        self._last = data[-1:] or self._last

    def _check(self, data: bytes) -> None:
        held = len(self._decoder.getstate()[0])
        if (nul := data.find(b"\0")) >= 0:
            data = data[: nul + 1]
        try:
            self._decoder.decode(data)
        except UnicodeDecodeError as error:
            raise NotText(self._size - held + error.start) from error
        if nul >= 0:
            raise NotText(self._size + nul)

    def _show(self, data: bytes, ends: int) -> None:
        at = 0
        if self._size == 0 and data.startswith(BOM):
            self._has_bom, at = True, len(BOM)
        if self._ends >= self._skip:
            self._part.feed(data[at:] if at else data)
        elif self._ends + ends >= self._skip:
            for _ in range(self._skip - self._ends):
                at = data.index(b"\n", at) + 1
            self._part.feed(data[at:])

    def result(self) -> dict[str, Any]:
        """At the end of the file."""
        try:
            self._decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise NotText(self._size - len(error.object)) from error
        start = len(BOM) if self._has_bom else 0
        is_terminated = self._size == start or self._last == b"\n"
        if not self._part.is_full:
            self._part.finish(terminated=is_terminated)
        lines = [line for line in self._part.lines if line[0] >= self._first]
        count = self._ends + (not is_terminated)
        to = lines[-1][0] if lines else 0
        return {
            "version": self._sha256.hexdigest()[:12],
            "size": self._size,
            "line_count": count,
            "from": lines[0][0] if lines else 0,
            "to": to,
            "newline": self._newline(),
            "final_newline": self._size > start and is_terminated,
            "bom": self._has_bom,
            "lines": lines,
            "cut": self._part.cut,
            "truncated": 0 < to < count,
            "next": to + 1 if 0 < to < count else None,
        }

    def _newline(self) -> str:
        if not self._ends:
            return "none"
        return {0: "LF", self._ends: "CRLF"}.get(self._returns, "mixed")
