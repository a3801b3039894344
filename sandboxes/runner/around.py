"""The part of a file that a match is shown with, where its line was too long to be held.

On a file thread, with the rights of `agent`. Must never read a file without end; nor show what is no match, because the
file is not what was searched any more, or is in another encoding.
"""

import codecs
import os

from .batches import UTF_16
from .lines import BOM
from .ripgrep import WINDOW_BYTES, Hit, window

COLUMN_BYTES = 256 << 20
"""The longest way through a line on which characters are counted; a longer line is too long for ripgrep, too."""
READ_BYTES = 1 << 20


def look(path: str, hit: Hit) -> None:
    """What stands around it, and its column in characters. It stays as it is where the file does not have it there: it
    changed since, or is in another encoding."""
    assert hit.place is not None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _look(fd, hit, *hit.place)
    except OSError:
        return
    finally:
        os.close(fd)


def _look(fd: int, hit: Hit, line_at: int, start: int, end: int) -> None:
    head = os.pread(fd, len(BOM), 0)
    if head.startswith(UTF_16):
        return
    line_at += len(BOM) * (head == BOM)  # ripgrep counts without it
    if os.pread(fd, len(hit.match), line_at + start) != hit.match:
        return
    begin = max(0, start - 2 * WINDOW_BYTES)
    before = os.pread(fd, start - begin, line_at + begin)
    after = os.pread(fd, 2 * WINDOW_BYTES, line_at + start).partition(b"\n")[0].removesuffix(b"\r")
    hit.text = window(before + after, start - begin, end - begin)
    if start <= COLUMN_BYTES:
        hit.column = _characters(fd, line_at, start) + 1


def _characters(fd: int, at: int, size: int) -> int:
    decoder, count, end = codecs.getincrementaldecoder("utf-8")("replace"), 0, at + size
    while at < end and (data := os.pread(fd, min(READ_BYTES, end - at), at)):
        count += len(decoder.decode(data))
        at += len(data)
    return count + len(decoder.decode(b"", final=True))
