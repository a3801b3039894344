"""Whatever somebody does to stored rows, also together with the workspace's own numbers: verify finds it. On SQLite,
whose file anybody who can write to it can change by hand."""

import json
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from console.workspaces import audit
from console.workspaces.chain import Head, content, link_hash
from console.workspaces.models import AuditEntry, Workspace

ROWS = 6
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
FIELDS = {
    "actor": TEXTS, "actor_id": TEXTS, "event": TEXTS, "subject_id": TEXTS, "prev_hash": TEXTS, "hash": TEXTS,
    "data": st.dictionaries(TEXTS, JSONS, max_size=3) | JSONS,
    "at": st.timedeltas(timedelta(microseconds=1), timedelta(days=9)),
    "seq": st.integers(ROWS + 1, 2**40) | st.integers(-9, 0),
}  # fmt: skip
EDITS = st.sampled_from(sorted(FIELDS)).flatmap(lambda name: st.tuples(st.just(name), FIELDS[name]))


@pytest.fixture
def chain(db):
    with unchecked():
        workspace = Workspace.objects.create(name="Harbour Works")
        for number in range(ROWS):
            audit.append(workspace_id=workspace.pk, actor=audit.SYSTEM, event="x", number=number, text="ünï")
        workspace.refresh_from_db()
        yield workspace


@contextmanager
def unchecked():
    """Whoever can write to the file can switch the table's constraints off."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        yield
        cursor.execute("PRAGMA ignore_check_constraints = OFF")


def head_of(workspace):
    return Head(workspace.pk, workspace.audit_seq, workspace.audit_head)


@pytest.mark.parametrize("number", [0, -3])
def test_a_row_before_the_first_there_can_be_hides_no_others(chain, number):
    """Deleted rows, said to be exported; and a row outside of the chain, so that what follows looks like its first."""
    gone = AuditEntry.objects.get(workspace=chain, seq=3)
    AuditEntry.objects.filter(workspace=chain, seq__lte=3).delete()
    audit.append(workspace_id=chain.pk, actor=audit.SYSTEM, event="audit.pruned", through=3, head=gone.hash)
    assert not list(audit.broken_links(chain))
    forged = AuditEntry(workspace=chain, seq=number, at=gone.at, actor="system", event="x", prev_hash="0" * 64)
    forged.hash = link_hash(forged)
    forged.save()
    assert list(audit.broken_links(chain))


def test_a_row_zero_before_a_whole_chain_is_found(chain):
    first = AuditEntry.objects.get(workspace=chain, seq=1)
    forged = AuditEntry(workspace=chain, seq=0, at=first.at, actor="system", event="x", prev_hash="0" * 64)
    forged.hash = link_hash(forged)
    forged.save()
    assert any("Row 0" in said for said in audit.broken_links(chain))


def cover(workspace):
    """Whoever changes rows can make the workspace agree with what is left."""
    last = AuditEntry.objects.filter(workspace=workspace).order_by("-seq").first()
    numbers = (last.seq, last.hash) if last else (0, audit.START)
    Workspace.objects.filter(pk=workspace.pk).update(audit_seq=numbers[0], audit_head=numbers[1])


def rebuild(workspace, first):
    """All hashes anew from row `first` on, as the code that is open to everybody does it."""
    before = AuditEntry.objects.filter(workspace=workspace, seq__lt=first).order_by("-seq").first()
    head = before.hash if before else audit.START
    for row in AuditEntry.objects.filter(workspace=workspace, seq__gte=first).order_by("seq"):
        row.prev_hash = head
        head = row.hash = link_hash(row)
        row.save()
    cover(workspace)


def own(workspace, **which):
    return AuditEntry.objects.filter(workspace=workspace, **which)


def many(test):
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=80, deadline=None, suppress_health_check=checks)(test)


def holds(workspace, *heads):
    return list(audit.broken_links(Workspace.objects.get(pk=workspace.pk), heads)) == []


@many
@given(seq=st.integers(1, ROWS), edit=EDITS, hide=st.booleans())
def test_any_field_of_any_row(chain, seq, edit, hide):
    name, value = edit
    with transaction.atomic():
        row = own(chain, seq=seq).get()
        value = row.at + value if name == "at" else value
        assume(json.dumps(value, default=str) != json.dumps(getattr(row, name), default=str))
        own(chain, seq=seq).update(**{name: value})
        if hide:
            cover(chain)
        assert not holds(chain, head_of(chain))
        transaction.set_rollback(True)


@many
@given(gone=st.sets(st.integers(1, ROWS), min_size=1), hide=st.booleans())
def test_any_rows_taken_away_also_at_the_ends(chain, gone, hide):
    with transaction.atomic():
        own(chain, seq__in=gone).delete()
        if hide:
            cover(chain)
        assert not holds(chain, head_of(chain))
        transaction.set_rollback(True)


@many
@given(pair=st.lists(st.integers(1, ROWS), min_size=2, max_size=2, unique=True), hide=st.booleans())
def test_two_rows_that_change_places(chain, pair, hide):
    with transaction.atomic():
        first, second = (own(chain, seq=seq).get().pk for seq in pair)
        own(chain, pk=first).update(seq=-1)
        own(chain, pk=second).update(seq=pair[0])
        own(chain, pk=first).update(seq=pair[1])
        if hide:
            cover(chain)
        assert not holds(chain, head_of(chain))
        transaction.set_rollback(True)


@many
@given(left=st.integers(0, ROWS - 1), added=st.integers(0, ROWS + 2))
def test_an_end_cut_off_and_written_anew_by_our_own_code(chain, left, added):
    with transaction.atomic():
        noted = head_of(chain)
        own(chain, seq__gt=left).delete()
        cover(chain)
        for number in range(added):
            audit.append(workspace_id=chain.pk, actor=audit.SYSTEM, event="x", number=number, another=True)
        assert holds(chain), "by itself it looks right: that is what heads are for"
        assert not holds(chain, noted)
        transaction.set_rollback(True)


@many
@given(seq=st.integers(1, ROWS))
def test_history_written_anew_with_all_its_hashes(chain, seq):
    with transaction.atomic():
        noted = head_of(chain)
        own(chain, seq=seq).update(event="forged")
        rebuild(chain, seq)
        assert holds(chain)
        assert not holds(chain, noted)
        transaction.set_rollback(True)


@pytest.mark.parametrize(("column", "value"), [("at", "never"), ("data", "{no json"), ("data", "[" * 3000)])
def test_a_column_that_cannot_even_be_read(chain, column, value):
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {AuditEntry._meta.db_table} SET {column} = %s WHERE seq = 3", [value])
    faults = " ".join(audit.broken_links(chain))
    assert "cannot be read" in faults or "Row 3 is not what was written" in faults


@pytest.mark.parametrize("data", [[], "x", {"through": []}, {"through": {}, "head": []}])
def test_a_forged_row_of_a_pruning_excuses_nothing(chain, data):
    own(chain, seq__lt=3).delete()
    own(chain, seq=4).update(event="audit.pruned", data=data)
    rebuild(chain, 4)
    assert not holds(chain)


def test_a_row_that_came_while_it_was_looked_at_is_no_fault(chain, monkeypatch):
    looked = iter(audit.broken_links(chain))
    append = audit.Walk.step

    def step(walk, entry):
        if entry.seq == ROWS and walk.seq == ROWS - 1:
            audit.append(workspace_id=chain.pk, actor=audit.SYSTEM, event="late")
        return append(walk, entry)

    monkeypatch.setattr(audit.Walk, "step", step)
    assert list(looked) == []


def test_a_row_of_another_workspace_is_a_fault_in_both(chain):
    other = Workspace.objects.create(name="Elsewhere")
    own(chain, seq=ROWS).update(workspace=other)
    assert not holds(chain)
    assert not holds(other)


def test_the_hash_covers_every_field_that_is_stored(chain):
    stored = {field.attname for field in AuditEntry._meta.concrete_fields} - {"id", "hash"}
    assert {name.replace("workspace", "workspace_id") for name in content(own(chain).first())} == stored
