"""How ripgrep is asked, and what it answers, read record by record as it comes.

Owns its arguments and the shape of a Hit. Must never believe a record: in a sandbox with a root file system that can be
written, the program may be anything. Must never hold a longer record than RECORD_BYTES: of one, only what `overlong`
keeps.
"""

import base64
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from .hints import Any
from .overlong import PART_BYTES, Record
from .programs import ENV

RECORD_BYTES = 4 << 20
WINDOW_BYTES = 400
MEMORY_KB = 400_000
THREADS = 4
"""More than processors, most often: to open a file is to wait. 20,000 of them: 3.1 s, with two threads 3.8."""
_FLAG = re.compile(r"--(multiline|pcre2|engine|auto-hybrid-regex|regex-size-limit|dfa-size-limit)\b")
_ADVICE = re.compile(r"^Consider enabling .*", re.DOTALL | re.MULTILINE)
_LIMITED = f'ulimit -v {MEMORY_KB}; exec "$0" "$@"'


class Hit:
    """`column` counts characters from 1. `text` and the lines around it are cut to WINDOW_BYTES; `around`: what comes
    before and after it, as [line, text]. `place`, of a match in a line too long to be held: the byte of the file where
    the line begins, and the first and the last byte in it of a match that begins with `match`. Until somebody looks
    there, `text` is of the match alone, and `column` counts bytes."""

    def __init__(self, line: int, column: int, text: str, before: Sequence[tuple[int, str]] = ()) -> None:
        self.line, self.column, self.text = line, column, text
        self.before = list(before)
        self.after: list[tuple[int, str]] = []
        self.place: tuple[int, int, int] | None = None
        self.match = b""


class FileHits:
    """`count`: of matching lines. A file with a NUL is not text, whatever was found in it."""

    def __init__(self, path: bytes, count: int = 0) -> None:
        self.path = path
        self.hits: list[Hit] = []
        self.count = count
        self.is_binary = False


class Wanted:
    """What is looked for, as the host asked. `most`: so many matching lines of one file, and no more."""

    def __init__(self, pattern: str, literal: bool, ignore_case: bool, context: int, mode: str) -> None:
        self.pattern, self.literal, self.ignore_case = pattern, literal, ignore_case
        self.context, self.mode = context, mode


def found() -> str | None:
    """Where it is in this image."""
    return shutil.which("rg", path=ENV["PATH"])


def command(rg: str, wanted: Wanted, files: Sequence[str], *, most: int, in_order: bool) -> list[str]:
    """Files are named one by one, so no rules of its own apply. In order: one after the other, as they are named."""
    how = ["--no-config", "--no-ignore", "--hidden", "--crlf", "--no-mmap", "--color=never", "--with-filename"]
    how.append("--ignore-case" if wanted.ignore_case else "--case-sensitive")
    if wanted.literal:
        how.append("--fixed-strings")
    if wanted.mode == "count":
        how += ["--count", "--null"]
    else:
        how += ["--json", f"--max-count={1 if wanted.mode == 'files' else most}"]
        how.append(f"--context={wanted.context if wanted.mode == 'lines' else 0}")
    how.append(f"--threads={1 if in_order else THREADS}")
    return ["/bin/sh", "-c", _LIMITED, rg, *how, f"--regexp={wanted.pattern}", "--", *files]


class Counts:
    """Of `--count --null --crlf`: path, NUL, number, the end of a line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[FileHits]:
        *records, self._rest = (self._rest + data).split(b"\n")
        kept = b""
        for record in records:
            path, nul, number = (kept + record.removesuffix(b"\r")).rpartition(b"\0")
            if nul and number.isdigit():
                yield FileHits(path, count=int(number[:18]))
                kept = b""
            else:  # a newline in a name
                kept += record + b"\n"
        self._rest = (kept + self._rest)[-RECORD_BYTES:]


class Records:
    """Of `--json`: yields a file when its end has come."""

    def __init__(self, context: int) -> None:
        self._context = context
        self._buffer = bytearray()
        self._looked = 0
        self._long: Record | None = None
        self._file: FileHits | None = None
        self._before: list[tuple[int, str]] = []

    @property
    def unfinished(self) -> FileHits | None:
        """What was found in the file that it was at."""
        return self._file

    def feed(self, data: bytes) -> Iterator[FileHits]:
        if (long := self._long) is not None:
            piece, newline, data = data.partition(b"\n")
            long.feed(piece)
            if not newline:
                return
            self._long = None
            self._take(long.read, is_cut=True)
        self._buffer += data
        while (end := self._buffer.find(b"\n", self._looked)) >= 0:
            record = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._looked = 0
            if (done := self._take(partial(json.loads, record))) is not None:
                yield done
        self._looked = len(self._buffer)
        if self._looked > RECORD_BYTES:
            self._long = Record()
            self._long.feed(bytes(self._buffer))
            self._buffer.clear()
            self._looked = 0

    def _take(self, read: Callable[[], Any], *, is_cut: bool = False) -> FileHits | None:
        try:
            found = read()
            return self._read(found["type"], found["data"], is_cut)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
            return None

    def _read(self, kind: str, data: Any, is_cut: bool) -> FileHits | None:
        if kind == "begin":
            self._file, self._before = FileHits(_bytes(data["path"])), []
        elif kind == "match" and self._file is not None:
            self._hit(self._file, data, is_cut)
        elif kind == "context" and self._file is not None:
            self._around(self._file, data)
        elif kind == "end" and self._file is not None:
            done, self._file = self._file, None
            done.is_binary = data.get("binary_offset") is not None
            return done
        return None

    def _hit(self, file: FileHits, data: Any, is_cut: bool) -> None:
        line = _bytes(data["lines"]).rstrip(b"\r\n")
        matches = data["submatches"]
        start, end = (int(matches[0]["start"]), int(matches[0]["end"])) if matches else (0, 0)
        column = len(line[:start].decode(errors="replace")) + 1
        number = data.get("line_number")
        hit = Hit(int(number or 0), column, window(line, start, end), before=self._before)
        if is_cut and matches:
            hit.place = int(data["absolute_offset"]), start, end
            hit.match = _bytes(matches[0]["match"])[:PART_BYTES]
            hit.column, hit.text = start + 1, _alone(hit.match, start)
        self._before = []
        file.hits.append(hit)
        file.count += 1

    def _around(self, file: FileHits, data: Any) -> None:
        number = int(data["line_number"])
        line = (number, window(_bytes(data["lines"]).rstrip(b"\r\n"), 0, 0))
        last = file.hits[-1] if file.hits else None
        if last is not None and number - last.line <= self._context:
            last.after.append(line)
        else:
            self._before.append(line)


def _alone(match: bytes, start: int) -> str:
    shown = window(match, 0, 0).removesuffix("…")
    return f"{'…' if start else ''}{shown}…"


def _bytes(value: Any) -> bytes:
    if "text" in value:
        return str(value["text"]).encode("utf-8", "surrogateescape")
    return base64.b64decode(value["bytes"])


def window(line: bytes, start: int, end: int) -> str:
    """Up to WINDOW_BYTES of the line, around a match, cut between characters; `…` where something is missing."""
    if len(line) <= WINDOW_BYTES:
        return line.decode(errors="replace")
    room = max(0, WINDOW_BYTES - (end - start))
    begin = max(0, min(start - room // 2, len(line) - WINDOW_BYTES))
    stop = begin + WINDOW_BYTES
    while begin and begin < stop and line[begin] & 0xC0 == 0x80:
        begin += 1
    while stop < len(line) and stop > begin and line[stop] & 0xC0 == 0x80:
        stop -= 1
    shown = line[begin:stop].decode(errors="replace")
    return ("…" if begin else "") + shown + ("…" if stop < len(line) else "")


def fault(stderr: bytes) -> str:
    """What is wrong with a pattern, without the advice to use flags, which a caller does not have."""
    text = stderr.decode(errors="replace")
    said = _ADVICE.sub("", text)
    lines = [line for line in said.split("\n") if line.strip() and not _FLAG.search(line)]
    where = "; a match lies within one line" if "multiline" in text[len(said) :] else ""
    return "\n".join(lines)[:1000].removeprefix("rg: ").rstrip(".\n ") + where
