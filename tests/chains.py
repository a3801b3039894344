"""Long chains, written as fast as a database takes them, with hashes as `audit.link` makes them."""

from datetime import timedelta

from django.utils import timezone

from console.workspaces.chain import link_hash
from console.workspaces.models import AuditEntry, Workspace

BATCH = 5000


def lengthen(workspace, count, made=lambda seq: {}, *, hashed=True):
    """`count` rows more, a second apart, the last one now; `made(seq)` gives fields of each. Without `hashed` they are
    as long as real ones and chain nothing, which is much faster."""
    workspace.refresh_from_db()
    seq, head, begun = workspace.audit_seq, workspace.audit_head, timezone.now() - timedelta(seconds=count)
    rows = []
    for number in range(count):
        seq += 1
        fields = {"actor": "system", "event": "x", "data": {"number": number}, **made(seq)}
        row = AuditEntry(workspace=workspace, seq=seq, at=begun + timedelta(seconds=number), prev_hash=head, **fields)
        row.hash = head = link_hash(row) if hashed else f"{seq:064}"
        rows.append(row)
        if len(rows) == BATCH or number == count - 1:
            AuditEntry.objects.bulk_create(rows)
            rows = []
    Workspace.objects.filter(pk=workspace.pk).update(audit_seq=seq, audit_head=head)
    workspace.refresh_from_db()
