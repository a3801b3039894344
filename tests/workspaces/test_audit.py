import threading

import pytest
from django.db import IntegrityError, connection, transaction

from console.workspaces import audit, changes, ledger
from console.workspaces.models import AuditEntry, Change, Workspace

pytestmark = pytest.mark.database


def append(workspace, event="x", **data):
    return audit.append(workspace_id=workspace.pk, actor=audit.SYSTEM, event=event, **data)


@pytest.fixture
def workspace(db):
    found = Workspace.objects.create(name="Harbour Works")
    for number in range(5):
        append(found, number=number, text="ünï", nested={"a": [1, None, True]})
    found.refresh_from_db()
    return found


def test_an_untouched_chain_holds(workspace):
    assert list(audit.broken_links(workspace)) == []


@pytest.mark.parametrize("field", ["event", "actor", "actor_id", "subject_id", "at", "data", "hash", "prev_hash"])
def test_any_changed_field_breaks_it(workspace, field):
    row = AuditEntry.objects.get(workspace=workspace, seq=3)
    value = {"data": {"number": 9}, "at": row.at.replace(microsecond=1)}.get(field, "tampered")
    AuditEntry.objects.filter(pk=row.pk).update(**{field: value})
    assert list(audit.broken_links(workspace))


@pytest.mark.parametrize("seq", [0, -1])
def test_the_database_takes_no_row_before_row_1(workspace, seq):
    with pytest.raises(IntegrityError), transaction.atomic():
        AuditEntry.objects.filter(workspace=workspace, seq=1).update(seq=seq)


@pytest.mark.parametrize("seq", [1, 3, 5])
def test_a_missing_row_breaks_it_wherever_it_stood(workspace, seq):
    AuditEntry.objects.filter(workspace=workspace, seq=seq).delete()
    assert list(audit.broken_links(workspace))


def test_chains_of_two_workspaces_do_not_meet(workspace):
    other = Workspace.objects.create(name="Elsewhere")
    append(other)
    append(workspace)
    assert AuditEntry.objects.get(workspace=other).prev_hash == audit.START


def test_what_is_rolled_back_leaves_no_link(workspace):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        append(workspace, number=1 / 0)
    append(workspace)
    workspace.refresh_from_db()
    assert list(audit.broken_links(workspace)) == []


@pytest.mark.django_db(transaction=True)
def test_many_writers_leave_one_chain_and_changes_without_gaps():
    workspace = Workspace.objects.create(name="Busy")

    def write() -> None:
        for _ in range(10):
            with transaction.atomic():
                with ledger.opened(workspace.pk) as opened:
                    changes.record(opened, subject="action", subject_id="act_1", status="pending")
                    audit.link(opened, actor=audit.SYSTEM, event="x")
                append(workspace)
        connection.close()

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    workspace.refresh_from_db()
    assert list(audit.broken_links(workspace)) == []
    assert list(Change.objects.order_by("pk").values_list("seq", flat=True)) == list(range(1, 61))
