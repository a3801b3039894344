"""What ripgrep found in one batch of files, and which of it counts.

Owns the order of the batch and what is binary. Must never take a file for found that it was not asked to search.
"""

import codecs
import os
import re
from collections.abc import Sequence

from .ripgrep import Counts, FileHits, Hit, Records, Wanted

COLLECTED = 20_000
"""Found in one batch, in no order; more is too much to hold."""
BINARY_LOOK_BYTES = 64 << 10
_COMPLAINT = re.compile(r"(rg: )?\./.*\(os error (\d+)\)", re.DOTALL)
_GONE = "2"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Batch:
    """`files`: their names below `top`. `found` has an entry for a file once all of it was searched."""

    def __init__(self, top: str, files: Sequence[str], wanted: Wanted) -> None:
        self.files = files
        self.collected = 0
        self.binary = 0
        self._top = top
        self._wanted = wanted
        self._places = {os.fsencode(f"./{name}"): place for place, name in enumerate(files)}
        self._records: Counts | Records = Counts() if wanted.mode == "count" else Records(wanted.context)
        self._found: dict[int, FileHits] = {}

    def feed(self, data: bytes) -> None:
        for file in self._records.feed(data):
            self._keep(file)

    def _keep(self, file: FileHits) -> None:
        if (place := self._places.get(file.path)) is None or place in self._found:
            return
        if file.is_binary or (self._wanted.mode == "count" and self._has_nul(self.files[place])):
            self.binary += 1
        elif file.count:
            self._found[place] = file
            self.collected += len(file.hits) if self._wanted.mode == "lines" else 1

    def end_here(self) -> None:
        """Time is over in the middle of a file: what was found in it so far counts."""
        if isinstance(self._records, Records) and self._records.unfinished is not None:
            self._keep(self._records.unfinished)

    def entries(self) -> list[tuple[str, Hit | None, int]]:
        """In order: name, hit, count. One for each matching line, or for each file."""
        found = [(self.files[place], self._found[place]) for place in sorted(self._found)]
        if self._wanted.mode != "lines":
            return [(name, None, file.count) for name, file in found]
        return [(name, hit, 1) for name, file in found for hit in file.hits]

    def _has_nul(self, name: str) -> bool:
        """A count does not tell of it."""
        try:
            fd = os.open(os.path.join(self._top, name), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            begin = os.read(fd, BINARY_LOOK_BYTES)
            return b"\0" in begin and not begin.startswith(UTF_16)
        except OSError:
            return False
        finally:
            os.close(fd)


def unreadable(stderr: bytes) -> int | None:
    """How many files it could not read; None when it complains of something else: of the pattern, that is. Files that
    are gone meanwhile do not count."""
    lines = stderr.decode(errors="replace").split("\n")
    found = [_COMPLAINT.fullmatch(line) for line in lines if line]
    if any(complaint is None for complaint in found):
        return None
    return sum(1 for complaint in found if complaint is not None and complaint[2] != _GONE)
