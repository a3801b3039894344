"""Cards of commands in the background and of input to them: what runs, how long, and what would be typed into it."""

import pytest

from approvals import payloads
from approvals.models import Action
from console.pages import cards, fates
from sandboxes.models import Command
from tests.api.conftest import make_sandbox
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db
RUN = {"command": "python -i", "cwd": "/work", "env": {}, "stdin": "", "background": True, "timeout_s": None}


@pytest.fixture
def command(cast):
    sandbox = make_sandbox(cast.scout)
    action = pending(cast.caller(cast.scout), tool="run", arguments=RUN, sandbox_id=sandbox.pk)
    return Command.objects.create(sandbox=sandbox, action_id=action.pk, background=True)


def card_of(cast, command, **arguments):
    sent = {"id": command.pk, "data": "print(1)\n", "eof": False, **arguments}
    return cards.matter(pending(cast.caller(cast.scout), tool="stdin", arguments=sent, sandbox_id=command.sandbox_id))


def test_a_command_in_the_background_says_so_and_for_how_long(cast, command):
    found = cards.matter(Action.objects.get(pk=command.action_id))
    assert (found.undrawable, [sheet.name for sheet in found.sheets]) == ("", ["Command"])
    assert found.sheets[0].about == ["bash in /work, in the background"]
    facts = dict(found.facts)
    assert facts["Runs as"] == "agent, until it is stopped or the sandbox ends"
    assert facts["Env, stdin"] == "default, stays open"


def test_input_is_shown_whole_with_the_command_that_reads_it(cast, command):
    found = card_of(cast, command, eof=True)
    assert found.wants == "wants to send input to a running command"
    assert [(sheet.name, sheet.about) for sheet in found.sheets] == [
        ("Input", [f"to {command.pk}", "then its end"]),
        ("Command that reads it", ["bash in /work, in the background"]),
    ]
    assert "print(1)" in found.sheets[0].html
    assert "python" in found.sheets[1].html


def test_input_that_is_no_text_is_shown_by_size_and_hash(cast, command):
    kept = payloads.keep(payloads.hold(b"\x00\xff" * 10))
    about = card_of(cast, command, data=kept).sheets[0].about
    assert about[1:] == ["binary, shown by size and hash", "20 bytes", f"SHA-256 {kept['sha256']}"]


def test_input_to_a_command_that_is_not_there_can_only_be_denied(cast, command):
    found = card_of(cast, command, id="cmd_none")
    assert (found.sheets, found.undrawable) == ([], cards.UNDRAWABLE)


def test_what_became_of_one_in_the_background_is_its_own_end_not_its_start(cast, command):
    ended = {"status": "succeeded", "started_at": command.started_at, "ended_at": command.started_at}
    Action.objects.filter(pk=command.action_id).update(**ended, result={"background": True})
    action = Action.objects.get(pk=command.action_id)
    assert (fates.fate(action).word, fates.said(action)) == ("started", "It runs in the background.")
    Command.objects.filter(pk=command.pk).update(status="timed_out", exit_code=124)
    assert fates.said(action) == "It ran in the background: timed out, exit 124."
