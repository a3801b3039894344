"""A file's bytes as lines: where they begin, how they end, what a reader may call them by.

Only LF ends a line; a CR right before it belongs to the ending. Must never change a byte, and never cut a large file
into a list of its lines: that would take many times its size.
"""

from bisect import bisect_left

from .hints import Any

BOM = b"\xef\xbb\xbf"
CONSONANTS = "bcdfghjklmnpqrstvwxz"
TAG_LETTERS = 4
VERSION_DIGITS = 12
SHOWN_CHARACTERS = 2000
"""A longer line is shown cut, and nobody who saw a part of it may change it."""
_BLOCK = 4 << 10
_STEP = 64 << 10


def version_of(data: bytes) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()[:VERSION_DIGITS]


def is_tag(text: str) -> bool:
    return len(text) == TAG_LETTERS and all(letter in CONSONANTS for letter in text)


class Tagger:
    """Tags of lines that come in pieces, however long they are. A line's tag is of the line before it, itself and the
    line after it, so it is known one line later."""

    def __init__(self) -> None:
        from hashlib import blake2b

        self._new = blake2b
        self._above: Any = None  # of the line before the one under way
        self._this = blake2b(b"\0", digest_size=8)
        self._below = blake2b(digest_size=8)

    def feed(self, piece: bytes) -> None:
        if self._above is not None:
            self._above.update(piece)
        self._this.update(piece)
        self._below.update(piece)

    def end(self) -> str:
        """The line under way is over: the tag of the one before it, "" when there was none."""
        known = self.last()
        self._above, self._this, self._below = self._this, self._below, self._new(digest_size=8)
        self._above.update(b"\0")
        self._this.update(b"\0")
        return known

    def last(self) -> str:
        """The tag of the last line that was ended, if no other follows."""
        return "" if self._above is None else _letters(self._above.digest())


def _letters(digest: bytes) -> str:
    number, letters = int.from_bytes(digest, "big"), ""
    for _ in range(TAG_LETTERS):
        number, at = divmod(number, len(CONSONANTS))
        letters += CONSONANTS[at]
    return letters


def tag_of(above: bytes, line: bytes, below: bytes) -> str:
    from hashlib import blake2b

    return _letters(blake2b(b"\0".join((above, line, below)), digest_size=8).digest())


def fault_at(data: bytes) -> int | None:
    """The offset of the first byte that makes this no text: a NUL, or what is no UTF-8."""
    nul = data.find(b"\0")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start if nul < 0 else min(error.start, nul)
    return nul if nul >= 0 else None


class Text:
    """Lines count from 1. A byte order mark is before the first line, and part of none."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.start = len(BOM) if data.startswith(BOM) else 0
        self._ends = [0]  # how many lines have ended before each block
        for at in range(self.start, len(data), _BLOCK):
            self._ends.append(self._ends[-1] + data.count(b"\n", at, at + _BLOCK))
        self.is_terminated = len(data) == self.start or data.endswith(b"\n")
        self.count = self._ends[-1] + (not self.is_terminated)

    def begin(self, number: int) -> int:
        """Where line `number` begins; the end of it all for any number beyond the last."""
        if number <= 1:
            return self.start
        if number > self.count:
            return len(self.data)
        block = bisect_left(self._ends, number - 1) - 1
        at = self.start + block * _BLOCK
        for _ in range(number - 1 - self._ends[block]):
            at = self.data.index(b"\n", at) + 1
        return at

    def ending(self, number: int) -> bytes:
        """b"" of a last line that has none."""
        begin, end = self.begin(number), self.begin(number + 1)
        if self.data[end - 1 : end] != b"\n" or end == begin:
            return b""
        return b"\r\n" if end - begin > 1 and self.data[end - 2] == 13 else b"\n"

    def line(self, number: int) -> bytes:
        """Without its ending; b"" before the first and behind the last."""
        if not 1 <= number <= self.count:
            return b""
        end = self.begin(number + 1)
        return self.data[self.begin(number) : end - len(self.ending(number))]

    def tag(self, number: int) -> str:
        return tag_of(self.line(number - 1), self.line(number), self.line(number + 1))

    def has(self, number: int, tag: str) -> bool:
        return 1 <= number <= self.count and self.tag(number) == tag

    def is_long(self, number: int) -> bool:
        line = self.line(number)
        return len(line) > SHOWN_CHARACTERS and len(line.decode(errors="replace")) > SHOWN_CHARACTERS

    def shown(self, number: int) -> list[Any]:
        """[number, tag, text]; a line that is shown cut has the tag ""."""
        text = self.line(number).decode(errors="replace")
        if len(text) > SHOWN_CHARACTERS:
            return [number, "", text[:SHOWN_CHARACTERS]]
        return [number, self.tag(number), text]


def common_ends(old: Text, new: Text) -> tuple[int, int]:
    """How many whole lines at the beginning, and how many at the end, are the same bytes in both."""
    head = _common(old.data, new.data, old.start, new.start)
    above = old.data.count(b"\n", old.start, old.start + head)
    tail = _common_tail(old, new)
    begin, other = len(old.data) - tail, len(new.data) - tail
    below = old.data.count(b"\n", begin) + (tail > 0 and not old.data.endswith(b"\n"))
    if tail and not (_is_begin(old, begin) and _is_begin(new, other)):
        below -= 1
    return above, below


def _is_begin(text: Text, at: int) -> bool:
    return at == text.start or text.data[at - 1] == 10


def _common(one: bytes, two: bytes, at: int, other: int) -> int:
    """How many bytes are the same from `at` and `other` on."""
    most, known = min(len(one) - at, len(two) - other), 0
    step = _STEP
    while known < most and step:
        size = min(step, most - known)
        if one[at + known : at + known + size] == two[other + known : other + known + size]:
            known += size
        else:
            step = size // 2
    return known


def _common_tail(old: Text, new: Text) -> int:
    one, two = old.data, new.data
    most, known = min(len(one) - old.start, len(two) - new.start), 0
    step = _STEP
    while known < most and step:
        size = min(step, most - known)
        if one[len(one) - known - size : len(one) - known] == two[len(two) - known - size : len(two) - known]:
            known += size
        else:
            step = size // 2
    return known
