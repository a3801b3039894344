"""The two numbered records of a workspace, its changes and its audit chain, under one lock and one write-back."""

from collections.abc import Iterator
from contextlib import contextmanager

from .models import Workspace


@contextmanager
def opened(workspace_id: str) -> Iterator[Workspace]:
    """The row, locked; its numbers are written back at the end. Must be inside the transaction of what is recorded:
    the lock is what keeps both records without gaps."""
    rows = Workspace.objects.select_for_update().only("change_seq", "audit_seq", "audit_head")  # each act opens it
    workspace = rows.get(pk=workspace_id)
    yield workspace
    Workspace.objects.filter(pk=workspace_id).update(
        change_seq=workspace.change_seq, audit_seq=workspace.audit_seq, audit_head=workspace.audit_head
    )
