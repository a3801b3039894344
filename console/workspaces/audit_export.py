"""Audit rows as a file: a line of JSON for each, between a first line that says what it is and a last that counts.

Owns the format (docs/audit.md) and the check of such a file without the database. Rows are written exactly as they are
hashed, in ASCII; an export that leaves rows out says so, and then proves each of its rows but not that it is all.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from .chain import Head, Walk, content, is_whole
from .models import AuditEntry

FORMAT = "sandgate-audit-v1"
FIELDS = ("seq", "actor", "actor_id", "event", "subject_id", "data", "prev_hash", "hash")


def first_line(workspace_id: str, *, head: Head, filters: Mapping[str, Any], complete: bool) -> str:
    """`complete`: rows follow without a gap, up to `head`."""
    return _line(
        format=FORMAT, workspace=workspace_id, exported_at=timezone.now().isoformat(timespec="seconds"),
        complete=complete, filters=dict(filters), head={"seq": head.seq, "hash": head.hash},
    )  # fmt: skip


def row_line(entry: AuditEntry) -> str:
    return _line(**content(entry), hash=entry.hash)


def last_line(rows: int) -> str:
    return _line(end=True, rows=rows)


def _line(**said: Any) -> str:
    return json.dumps(said) + "\n"


class Check:
    """Reads an export line by line. `faults` gives a sentence for each thing wrong; the counts say what was seen."""

    def __init__(self, heads: Iterable[Head] = ()) -> None:
        self._heads = list(heads)
        self.rows, self.about, self.walk = 0, dict[str, Any](), Walk()

    def faults(self, lines: Iterable[str]) -> Iterator[str]:
        left, ended = iter(lines), False
        try:
            self.about = json.loads(next(left, "{}"))
            if self.about.get("format") != FORMAT:
                yield f"This is no audit export: its first line does not say {FORMAT}."
                return
            self.walk = self._walk()
            for line in left:
                said = json.loads(line)
                if ended := "end" in said:
                    yield from self._counted(said)
                    break
                yield from self._row(said)
            if next(left, None) is not None:
                yield "Something follows the last line."
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield f"The line after {self.rows} rows cannot be read ({error})."
        if not ended:
            yield "The export is not whole: its last line is missing."
        yield from self._end()

    def _walk(self) -> Walk:
        here = [head for head in self._heads if head.workspace_id == self.about["workspace"]]
        head = self.about["head"]
        stands_at = Head(self.about["workspace"], head["seq"], head["hash"]) if self.about["complete"] else None
        return Walk(here, stands_at=stands_at)

    def _row(self, said: Mapping[str, Any]) -> Iterator[str]:
        entry = AuditEntry(workspace_id=said["workspace"], at=datetime.fromisoformat(said["at"]))
        for name in FIELDS:
            setattr(entry, name, said[name])
        self.rows += 1
        if entry.workspace_id != self.about["workspace"]:
            yield f"Row {entry.seq} is of another workspace."
        if self.about["complete"]:
            yield from self.walk.step(entry)
        elif not is_whole(entry):
            yield f"Row {entry.seq} is not what was written."

    def _counted(self, said: Mapping[str, Any]) -> Iterator[str]:
        if said.get("rows") != self.rows:
            yield f"{self.rows} rows are here; the last line says {said.get('rows')}."

    def _end(self) -> Iterator[str]:
        """That it reaches the head which it names; where it begins is its maker's choice."""
        if self.about.get("complete"):
            yield from self.walk.end(is_part=True)
