"""Whether audit rows chain: row by row, from the first that is there to the head, and through heads noted elsewhere.

Pure: rows and heads in, sentences out, one row at a time however many there are. The same for the table and for an
export. A chain that lost its beginning holds only if a row of it (`PRUNED`) names the head up to which rows were
exported and removed. Must never repair anything.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rfc8785

if TYPE_CHECKING:
    from .models import AuditEntry

START = "0" * 64
PRUNED = "audit.pruned"
HEAD_FORMAT = "sandgate-audit-head-v1"


@dataclass(frozen=True)
class Head:
    """The last row of a chain as it was `at` a time: who noted it elsewhere can prove that nothing before changed."""

    workspace_id: str
    seq: int
    hash: str
    at: str = ""

    def line(self) -> str:
        said = {"format": HEAD_FORMAT, "workspace": self.workspace_id, "seq": self.seq, "hash": self.hash}
        return json.dumps({**said, "at": self.at}, sort_keys=True)


def heads_in(lines: Iterable[str]) -> Iterator[Head]:
    """As `Head.line` wrote them, whatever a log put before them. Raises ValueError for one that cannot be read."""
    for number, line in enumerate(lines, 1):
        if HEAD_FORMAT not in line:
            continue
        try:
            said = json.loads(line[line.index("{") :])
            yield Head(str(said["workspace"]), int(said["seq"]), str(said["hash"]), str(said.get("at", "")))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"Line {number} is no head as `audit head` writes it ({error}).") from error


def content(entry: "AuditEntry") -> dict[str, Any]:
    """What a row's hash covers: all of it, the hash before included."""
    return {
        "workspace": entry.workspace_id,
        "seq": entry.seq,
        "at": entry.at.isoformat(timespec="microseconds"),
        "actor": entry.actor,
        "actor_id": entry.actor_id,
        "event": entry.event,
        "subject_id": entry.subject_id,
        "data": entry.data,
        "prev_hash": entry.prev_hash,
    }


def link_hash(entry: "AuditEntry") -> str:
    """SHA-256 of RFC 8785 JSON over every stored field, the hash before included."""
    return hashlib.sha256(rfc8785.dumps(content(entry))).hexdigest()


def is_whole(entry: "AuditEntry") -> bool:
    """False too for what no row of ours can hold."""
    try:
        return link_hash(entry) == entry.hash
    except (rfc8785.CanonicalizationError, ValueError, TypeError, AttributeError, RecursionError):
        return False


class Walk:
    """`step` through the rows of one chain in order, then `end`; each gives a sentence for what does not hold."""

    def __init__(self, heads: Iterable[Head] = (), *, stands_at: Head | None = None) -> None:
        """`stands_at`: the row that the chain had at least, by what is kept beside it."""
        self.seq, self.head, self.first, self.proven = 0, START, 0, 0
        self._has_begun = False  # a forged row may have any number, 0 too
        self._stands_at = stands_at
        self._removed: list[tuple[Any, Any]] = []
        self._before_first = START
        self._heads: dict[int, list[Head]] = {}
        for head in heads:
            self._heads.setdefault(head.seq, []).append(head)

    def step(self, entry: "AuditEntry") -> Iterator[str]:
        if not self._has_begun:
            self._has_begun, self.first, self._before_first = True, entry.seq, entry.prev_hash
        else:
            yield from self._follows(entry)
        if not is_whole(entry):
            yield f"Row {entry.seq} is not what was written."
        elif entry.event == PRUNED and isinstance(entry.data, dict):
            self._removed.append((entry.data.get("through"), entry.data.get("head")))
        for noted in self._heads.pop(entry.seq, ()):
            if noted.hash == entry.hash:
                self.proven = entry.seq
            else:
                yield f"Row {entry.seq} is another than the one noted as head{_when(noted)}: it was rewritten."
        if (at := self._stands_at) and at.seq == entry.seq and at.hash != entry.hash:
            yield f"Row {entry.seq} is not the head that its workspace names."
        self.seq, self.head = entry.seq, entry.hash

    def _follows(self, entry: "AuditEntry") -> Iterator[str]:
        if entry.seq != self.seq + 1:
            yield f"Rows {self.seq + 1} to {entry.seq - 1} are missing."
        if entry.prev_hash != self.head:
            yield f"Row {entry.seq} does not follow row {self.seq}."

    def end(self, *, is_part: bool = False) -> Iterator[str]:
        """`is_part`: of an export, which begins and ends where its maker wanted."""
        if self._stands_at and self._stands_at.seq > self.seq:
            yield f"The chain ends at row {self.seq}; the workspace says {self._stands_at.seq}."
        left = [head for noted in self._heads.values() for head in noted]
        for head in left:
            if self._has_begun and self.first <= head.seq <= self.seq:
                yield f"Row {head.seq}, noted as head{_when(head)}, is missing."
        if not is_part:
            yield from self._beginning()
            yield from self._whole(left)

    def _whole(self, left: list[Head]) -> Iterator[str]:
        for head in left:
            if head.seq > self.seq:
                yield f"The chain ends at row {self.seq}; its head{_when(head)} was row {head.seq}. Rows are missing."
        if self.seq and left and not self.proven and all(head.seq < self.first for head in left):
            yield f"All heads noted are of rows before {self.first}, which are not here: none proves this chain."

    def _beginning(self) -> Iterator[str]:
        if self._has_begun and self.first < 1:
            yield f"Row {self.first} is before the first there can be, which is row 1: it was put there."
        if self.first > 1 and (self.first - 1, self._before_first) not in self._removed:
            yield f"Rows 1 to {self.first - 1} are missing, and no row says that they were exported and removed."
        if self.first == 1 and self._before_first != START:
            yield "Row 1 does not begin the chain: it names a row before it."


def _when(head: Head) -> str:
    return f" at {head.at}" if head.at else ""
