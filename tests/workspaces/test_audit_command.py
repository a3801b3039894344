"""`manage.py audit`: what it says, its exit code, and what is left after old rows went."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from console.workspaces import audit
from console.workspaces.models import AuditEntry, Workspace


@pytest.fixture
def chain(db):
    workspace = Workspace.objects.create(name="Harbour ‮Works")
    add(workspace, 5)
    return workspace


def add(workspace, count):
    for number in range(count):
        audit.append(workspace_id=workspace.pk, actor=audit.SYSTEM, event="x", number=number, text="=ü")


def said(*arguments):
    out = StringIO()
    call_command("audit", *map(str, arguments), stdout=out)
    return out.getvalue()


def fails(*arguments):
    """What it says when its exit code is 1."""
    out = StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("audit", *map(str, arguments), stdout=out)
    assert caught.value.code == 1
    return out.getvalue()


def age(workspace, through, days=40):
    """Rows of long ago: written then, so their hashes say so."""
    head = audit.START
    for row in AuditEntry.objects.filter(workspace=workspace).order_by("seq"):
        row.at = timezone.now() - timedelta(days=days) if row.seq <= through else row.at
        row.prev_hash = head
        head = row.hash = audit.link_hash(row)
        row.save()
    Workspace.objects.filter(pk=workspace.pk).update(audit_head=head)


def test_a_chain_that_holds_is_said_to_with_its_head(chain):
    chain.refresh_from_db()
    text = said("verify")
    assert f"{chain.pk} (Harbour ⟨U+202E⟩Works): Rows 1 to 5 hold. Head {chain.audit_head}." in text


def test_the_row_that_was_changed_is_named(chain):
    AuditEntry.objects.filter(seq=3).update(event="y")
    assert "Row 3 is not what was written." in fails("verify")
    assert "Row 3" in fails("verify", "--workspace", chain.pk)


def test_an_end_cut_off_with_the_numbers_that_go_with_it_is_found_by_a_head_noted_before(chain, tmp_path):
    said("head", "--out", tmp_path / "heads")
    AuditEntry.objects.filter(seq__gt=3).delete()
    last = AuditEntry.objects.get(seq=3)
    Workspace.objects.update(audit_seq=3, audit_head=last.hash)
    assert "Rows 1 to 3 hold" in said("verify")
    assert "its head at" in fails("verify", "--head", tmp_path / "heads")
    add(chain, 4)
    assert "Row 5 is another than the one noted as head" in fails("verify", "--head", tmp_path / "heads")


def test_heads_are_read_out_of_a_log_with_whatever_stands_before_them(chain, tmp_path):
    lines = [f"Nov 30 20:00:01 box sandgate: {line}" for line in said("head").splitlines()]
    (tmp_path / "syslog").write_text("\n".join(["Nov 30 19:59:59 box cron: {hello}", *lines]))
    add(chain, 1)
    assert "every head noted is in it (1)" in said("verify", "--head", tmp_path / "syslog")


def test_a_workspace_that_is_gone_is_missed(chain, tmp_path):
    other = Workspace.objects.create(name="Elsewhere")
    add(other, 1)
    said("head", "--out", tmp_path / "heads")
    gone = other.pk
    AuditEntry.objects.filter(workspace=other).delete()
    other.delete()
    assert f"{gone}: Its head was noted, and there is no such workspace." in fails(
        "verify", "--head", tmp_path / "heads"
    )


@pytest.mark.parametrize("content", ["", "nothing\n", '{"format": "sandgate-audit-head-v1", "seq": }\n'])
def test_a_file_without_heads_proves_nothing_and_says_so(chain, tmp_path, content):
    (tmp_path / "heads").write_text(content)
    with pytest.raises(CommandError):
        said("verify", "--head", tmp_path / "heads")
    with pytest.raises(CommandError, match="cannot be read"):
        said("verify", "--head", tmp_path / "not-there")


def test_old_rows_go_into_a_file_that_holds_and_the_chain_goes_on(chain, tmp_path):
    age(chain, through=3)
    file = tmp_path / "old.jsonl"
    day = timezone.now() - timedelta(days=30)
    assert "3 rows are in" in said("prune", "--workspace", chain.pk, "--before", day.date(), "--export", file)
    left = AuditEntry.objects.order_by("seq").values_list("seq", "event")
    assert list(left) == [(4, "x"), (5, "x"), (6, "audit.pruned")]
    assert "Rows 4 to 6 hold" in said("verify")
    assert "rows 1 to 3 hold" in said("verify", "--export", file)
    assert len(file.read_text().splitlines()) == 5


def test_heads_of_rows_that_went_prove_nothing_of_what_is_left_and_those_of_the_export(chain, tmp_path):
    age(chain, through=3)
    said("head", "--out", tmp_path / "early")
    later = timezone.now() + timedelta(seconds=1)
    file = tmp_path / "old.jsonl"
    said("prune", "--workspace", chain.pk, "--before", later.isoformat(), "--export", file)
    assert "none proves this chain" in fails("verify", "--head", tmp_path / "early")
    said("head", "--out", tmp_path / "early")
    assert "Rows 6 to 6 hold" in said("verify", "--head", tmp_path / "early")
    assert "the last is row 5" in said("verify", "--export", file, "--head", tmp_path / "early")


def test_heads_of_no_row_of_an_export_are_said_to_prove_nothing_of_it(chain, tmp_path):
    age(chain, through=3)
    said("head", "--out", tmp_path / "late")
    said("prune", "--workspace", chain.pk, "--before", timezone.now().date(), "--export", tmp_path / "1")
    text = fails("verify", "--export", tmp_path / "1", "--head", tmp_path / "late")
    assert "prove nothing of this export: no row of them is here" in text
    assert "hold" not in text
    lines = (tmp_path / "1").read_text().splitlines()
    selection = [json.dumps({**json.loads(lines[0]), "complete": False}), *lines[1:]]
    (tmp_path / "2").write_text("\n".join(selection) + "\n")
    assert "compared with none" in fails("verify", "--export", tmp_path / "2", "--head", tmp_path / "late")


def test_what_was_pruned_twice_still_holds(chain, tmp_path):
    age(chain, through=3)
    said("prune", "--workspace", chain.pk, "--before", timezone.now().date(), "--export", tmp_path / "1")
    later = timezone.now() + timedelta(seconds=1)
    said("prune", "--workspace", chain.pk, "--before", later.isoformat(), "--export", tmp_path / "2")
    assert "Rows 7 to 7 hold" in said("verify")
    assert "rows 4 to 6 hold" in said("verify", "--export", tmp_path / "2")


def test_a_beginning_that_just_went_is_no_pruning(chain):
    AuditEntry.objects.filter(seq__lt=3).delete()
    assert "no row says that they were exported and removed" in fails("verify")


def test_more_taken_than_the_row_of_the_pruning_says_is_found(chain, tmp_path):
    age(chain, through=3)
    said("prune", "--workspace", chain.pk, "--before", timezone.now().date(), "--export", tmp_path / "1")
    AuditEntry.objects.filter(seq=4).delete()
    assert "Rows 1 to 4 are missing" in fails("verify")


def test_a_chain_that_does_not_hold_is_not_pruned(chain, tmp_path):
    age(chain, through=3)
    AuditEntry.objects.filter(seq=5).update(event="y")
    with pytest.raises(CommandError, match="does not hold"):
        said("prune", "--workspace", chain.pk, "--before", timezone.now().date(), "--export", tmp_path / "1")
    assert AuditEntry.objects.count() == 5


def test_a_file_that_is_there_is_not_written_over_and_nothing_goes(chain, tmp_path):
    age(chain, through=3)
    (tmp_path / "1").write_text("mine")
    with pytest.raises(CommandError, match="not there yet"):
        said("prune", "--workspace", chain.pk, "--before", timezone.now().date(), "--export", tmp_path / "1")
    assert (AuditEntry.objects.count(), (tmp_path / "1").read_text()) == (5, "mine")


def test_nothing_so_old_changes_nothing(chain, tmp_path):
    text = said("prune", "--workspace", chain.pk, "--before", "2020-01-01", "--export", tmp_path / "1")
    assert "nothing was written or removed" in text
    assert not (tmp_path / "1").exists()


@pytest.fixture
def exported(chain, tmp_path):
    age(chain, through=5)
    later = timezone.now() + timedelta(seconds=1)
    said("prune", "--workspace", chain.pk, "--before", later.isoformat(), "--export", tmp_path / "old.jsonl")
    return tmp_path / "old.jsonl"


def changed(row):
    return {**row, "event": "y"}


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:3], json.dumps(changed(json.loads(lines[3]))), *lines[4:]],
        lambda lines: lines[:3] + lines[4:],
        lambda lines: lines[:-1],
        lambda lines: lines[:-2] + lines[-1:],
        lambda lines: [*lines[:-2], json.dumps({"end": True, "rows": 4})],
        lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
        lambda lines: [*lines, lines[1]],
        lambda lines: lines[1:],
        lambda lines: [lines[0], "[]", *lines[1:]],
        lambda lines: [],
    ],
)
def test_an_export_that_was_changed_in_any_way_does_not_hold(exported, change):
    lines = exported.read_text().splitlines()
    exported.write_text("\n".join(change(lines)) + "\n")
    fails("verify", "--export", exported)


def test_the_recipe_of_the_documents_gives_the_hashes(exported):
    """As docs/audit.md has it: by its own words, with nothing of ours."""
    import hashlib

    import rfc8785

    before = "0" * 64
    for line in exported.read_text().splitlines()[1:-1]:
        row = json.loads(line)
        written = row.pop("hash")
        assert row["prev_hash"] == before
        assert hashlib.sha256(rfc8785.dumps(row)).hexdigest() == written
        before = written
