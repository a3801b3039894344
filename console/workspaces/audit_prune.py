"""Removing old audit rows: exported first, checked as they lie in the file, and only then deleted.

The chain goes on: a row says up to which head rows were removed and which file has them. The only code that deletes an
audit row. Must never run by itself, and never touch a chain that does not hold.
"""

import hashlib
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction

from . import audit, audit_export
from .chain import PRUNED, Head
from .errors import Conflict
from .models import AuditEntry, Workspace

PIECE_BYTES = 1 << 20


def prune(workspace: Workspace, *, before: datetime, file: Path, actor: audit.Actor) -> int:
    """How many rows were removed: all those before the first that is not older than `before`. Raises Conflict, with
    nothing removed, when the chain does not hold or `file` is there already."""
    if fault := next(audit.broken_links(workspace), None):
        raise Conflict(f"The chain of {workspace.pk} does not hold, so nothing is removed from it. {fault}")
    last = _last_before(workspace, before)
    if last is None:
        return 0
    _write(workspace, last, file)
    return _remove(workspace, last, actor=actor, export_sha256=_checked(file), before=before.isoformat())


def _last_before(workspace: Workspace, before: datetime) -> AuditEntry | None:
    own = AuditEntry.objects.filter(workspace=workspace).order_by("seq")
    young = own.filter(at__gte=before).values_list("seq", flat=True).first()
    return (own.filter(seq__lt=young) if young else own).last()


def _write(workspace: Workspace, last: AuditEntry, file: Path) -> None:
    own = AuditEntry.objects.filter(workspace=workspace, seq__lte=last.seq).order_by("seq")
    head, rows = Head(workspace.pk, last.seq, last.hash), 0
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise Conflict(f"{file} cannot be made ({error.strerror}). Name a file that is not there yet.") from error
    with os.fdopen(handle, "w") as out:
        out.write(audit_export.first_line(workspace.pk, head=head, filters={}, complete=True))
        for rows, entry in enumerate(own.iterator(), 1):  # noqa: B007  (counted for the last line)
            out.write(audit_export.row_line(entry))
        out.write(audit_export.last_line(rows))
        out.flush()
        os.fsync(out.fileno())


def _checked(file: Path) -> str:
    """Its SHA-256, once what lies on the disk has been read back and holds."""
    with file.open() as lines:
        if fault := next(audit_export.Check().faults(lines), None):
            raise Conflict(f"{file} is not what was written to it, so nothing is removed. {fault}")
    found = hashlib.sha256()
    for piece in _pieces(file):
        found.update(piece)
    return found.hexdigest()


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as out:
        while piece := out.read(PIECE_BYTES):
            yield piece


@transaction.atomic
def _remove(workspace: Workspace, last: AuditEntry, *, actor: audit.Actor, **about: Any) -> int:
    own = AuditEntry.objects.filter(workspace=workspace, seq__lte=last.seq)
    removed = own.count()
    own._raw_delete(own.db)  # nothing hangs on these rows, and there may be a million
    audit.append(
        workspace_id=workspace.pk, actor=actor, event=PRUNED, through=last.seq, head=last.hash, rows=removed, **about
    )
    return removed
