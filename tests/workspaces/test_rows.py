"""Rows inserted by SQL that is written once are those that `save` would have written."""

from contextlib import suppress

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.safestring import SafeString

from approvals.models import Action, Execution
from console.workspaces import agents, rows
from console.workspaces.models import Agent, AuditEntry, Change
from sandboxes.models import Command, Sandbox
from tests.api.conftest import make_sandbox

pytestmark = [pytest.mark.database, pytest.mark.django_db]


def made(cast):
    """One of each that a call writes, each with something in every kind of field."""
    now, nested = timezone.now(), {"a": [1, None, True], "ü": "⟨'\"%s⟩"}
    sandbox = Sandbox.objects.create(
        workspace=cast.workspace, cpus=1, memory_mb=512, disk_mb=1024, idle_timeout_s=900, expires_at=now
    )
    action = Action(
        workspace=cast.workspace, agent=cast.scout, sandbox_id=sandbox.pk, tool="run", arguments=nested,
        digest="0" * 64, status="running", started_at=now, flags=["large"], reason="because",
    )  # fmt: skip
    return [
        action,
        Execution(action=action, nonce="1"),
        Command(sandbox=sandbox, action_id=action.pk, background=True),
        Change(workspace=cast.workspace, seq=10_000, subject="action", subject_id=action.pk, status="running"),
        AuditEntry(workspace=cast.workspace, seq=10_000, at=now, actor="system", event="x", data=nested, hash="h"),
    ]


def stored(model, **which):
    """As the database has it, without the number that it gives itself."""
    table, (name, value) = connection.ops.quote_name(model._meta.db_table), next(iter(which.items()))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} WHERE {name} = %s", [value])
        found = [dict(zip((each[0] for each in cursor.description), row, strict=True)) for row in cursor.fetchall()]
    assert len(found) == 1
    return {name: value for name, value in found[0].items() if name != getattr(model._meta.auto_field, "column", "")}


def key_of(row):
    return {"seq": 10_000} if row._meta.auto_field else {row._meta.pk.column: row.pk}


class Undone(Exception):
    pass


def of_other_types(cast):
    """What a field makes into its own."""
    action, _, command, *_ = made(cast)
    action.digest, action.tool_version, action.asked, action.reason = 12, "3", 1, SafeString("because")
    command.stdout_bytes, command.duration_ms, command.timed_out = "7", 4.0, 0
    return [action, command]


@pytest.mark.parametrize("made", [made, of_other_types])
def test_what_is_inserted_is_what_save_would_have_written(cast, made):
    for row in made(cast):
        with suppress(Undone), transaction.atomic():
            rows.insert(row)
            inserted = stored(type(row), **key_of(row))
            raise Undone
        row.save(force_insert=True)
        assert inserted == stored(type(row), **key_of(row))


def test_it_is_found_again_as_it_was(cast):
    action = rows.insert(made(cast)[0])
    found = Action.objects.get(pk=action.pk)
    assert {field.name: getattr(found, field.attname) for field in Action._meta.concrete_fields} == {
        field.name: getattr(action, field.attname) for field in Action._meta.concrete_fields
    }


def of(cast):
    return {"workspace": cast.workspace, "seq": 10_000, "subject": "action", "subject_id": "act_1", "status": "running"}


def test_what_breaks_a_constraint_is_refused_and_takes_the_transaction_with_it(cast):
    change = of(cast)
    with suppress(IntegrityError), transaction.atomic():
        rows.insert(Change(**change))
        rows.insert(Change(**change))
        pytest.fail("two changes have one number")
    assert not Change.objects.filter(seq=10_000).exists()


def test_a_failure_that_is_swallowed_still_ends_the_transaction(cast):
    change = of(cast)
    with transaction.atomic():
        rows.insert(Change(**change))
        with suppress(IntegrityError):
            rows.insert(Change(**change))
        assert transaction.get_rollback()
        transaction.set_rollback(True)
    assert not Change.objects.filter(seq=10_000).exists()


@rows.Question
def sandbox_of(agent_id, sandbox_id):
    found = Sandbox.objects.filter(agent_id=agent_id, pk=sandbox_id, created_at__lte=Now(), ended_reason=None)
    return found.values_list(*rows.columns(Sandbox))


def test_a_question_written_once_answers_as_the_query_does_for_each_that_asks(cast):
    first, second = make_sandbox(cast.scout, env={"ü": "1"}), make_sandbox(cast.other)
    agentless = make_sandbox(cast.scout)
    Sandbox.objects.filter(pk=agentless.pk).update(agent=None)
    for sandbox, agent_id in ((first, cast.scout.pk), (second, cast.other.pk), (agentless, None)):
        (found,) = (rows.whole(Sandbox, each) for each in sandbox_of(agent_id, sandbox.pk))
        read = Sandbox.objects.get(pk=sandbox.pk)
        assert [getattr(found, name) for name in rows.columns(Sandbox)] == [
            getattr(read, name) for name in rows.columns(Sandbox)
        ]
    assert sandbox_of(cast.other.pk, first.pk) == sandbox_of(None, first.pk) == []
    assert sandbox_of("' OR 1=1 --", first.pk) == sandbox_of(cast.scout.pk, "\x010\x01") == []


def test_the_agent_of_a_call_is_as_its_row_is_now(cast):
    caller, found = cast.caller(cast.scout), []
    for mode in ("never", "always"):
        Agent.objects.filter(pk=cast.scout.pk).update(command_mode=mode, tool_modes={"write": mode}, images=[mode])
        found.append(agents.of(caller))
        assert {field.name: getattr(found[-1], field.attname) for field in Agent._meta.concrete_fields} == {
            field.name: getattr(Agent.objects.get(pk=cast.scout.pk), field.attname)
            for field in Agent._meta.concrete_fields
        }
    assert [each.command_mode for each in found] == ["never", "always"]
    assert agents.of(cast.caller(cast.alice)) is None


def test_a_text_that_the_query_does_not_compare_is_a_mistake(cast):
    forgets = rows.Question(lambda name, unused: Agent.objects.filter(name=name).values_list("pk"))
    with pytest.raises(AssertionError, match="no comparison"):
        forgets("scout", "x")


def test_an_update_written_once_changes_what_the_queryset_would(cast):
    action, other = (rows.insert(made(cast)[0]) for _ in range(2))
    ended = {"status": "succeeded", "ended_at": timezone.now(), "result": {"ü": [1, None]}, "error": None}
    assert rows.update(Action, ended, id=action.pk, status="pending") == 0
    assert rows.update(Action, ended, id=action.pk, status="running", ended_at=None) == 1
    found = Action.objects.get(pk=action.pk)
    assert {name: getattr(found, name) for name in ended} == ended
    assert Action.objects.get(pk=other.pk).status == "running"
    assert rows.update(Action, ended, id=action.pk, ended_at=None) == 0
    assert rows.update(Action, {"digest": 12, "asked": 1}, id=other.pk, tool_version="1") == 1
    assert Action.objects.get(pk=other.pk, digest="12").asked is True
