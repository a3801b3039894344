"""What ripgrep says of a line that is too long to be held, taken while it passes. Pure."""

import json
import re

from .hints import Any

PART_BYTES = 4096
"""Of each part of a record."""
_NUMBERS, _PLACE = b',"line_number":', b'},"start":'
"""A quote inside a text is escaped, so that neither stands in one."""
_TEXT = rb'\{"(text|bytes)":"([^"\\]*(?:\\.[^"\\]*)*)'
_LINE = re.compile(rb'"lines":' + _TEXT, re.DOTALL)
_MATCH = re.compile(rb'"submatches":\[\{"match":' + _TEXT, re.DOTALL)
_OFFSETS = re.compile(rb'(\d{1,18}),"absolute_offset":(\d{1,18}),')
_SPAN = re.compile(rb'(\d{1,18}),"end":(\d{1,18})\}')
_ESCAPED_BYTES = 6


class Record:
    """One of ripgrep's for a line, piece by piece: the beginning of the line, of its numbers and of its first place."""

    def __init__(self) -> None:
        self._parts = [bytearray()]
        self._rest = b""

    def feed(self, data: bytes) -> None:
        data = self._rest + data
        for mark in (_NUMBERS, _PLACE)[len(self._parts) - 1 :]:
            if (at := data.find(mark)) < 0:
                at = max(0, len(data) - len(mark))
                self._keep(data[:at])
                self._rest = data[at:]
                return
            self._keep(data[:at])
            self._parts.append(bytearray())
            data = data[at + len(mark) :]
        self._keep(data)
        self._rest = b""

    def _keep(self, data: bytes) -> None:
        part = self._parts[-1]
        part += data[: PART_BYTES - len(part)]

    def read(self) -> dict[str, Any]:
        """As a short one is, with the beginning of its line and its first place alone. Raises what a record of no sense
        raises."""
        line, numbers, place = (bytes(part) for part in (*self._parts, b"", b"")[:3])
        found: dict[str, Any] = {"lines": _begun(_LINE.search(line)), "line_number": 0, "submatches": []}
        if offsets := _OFFSETS.match(numbers):
            found["line_number"], found["absolute_offset"] = int(offsets[1]), int(offsets[2])
        if span := _SPAN.match(place):
            match = _begun(_MATCH.search(numbers))
            found["submatches"] = [{"match": match, "start": int(span[1]), "end": int(span[2])}]
        return {"type": json.loads(line[: line.index(b",")] + b"}")["type"], "data": found}


def _begun(found: Any) -> dict[str, str]:
    """As much of a value as there is, without what may be half of an escaped character."""
    if found is None:
        return {"text": ""}
    if found[1] == b"bytes":
        return {"bytes": found[2][: len(found[2]) // 4 * 4].decode("ascii")}
    text = found[2].decode(errors="ignore")
    for cut in range(_ESCAPED_BYTES):
        try:
            return {"text": json.loads(f'"{text[: len(text) - cut]}"', strict=False)}
        except ValueError:
            continue
    raise ValueError("no JSON")
