"""Cards of commands in the background and of input to them: what runs, how long, and what would be typed into it."""

import pytest

from approvals import payloads
from approvals.digest import INLINE_BYTES
from approvals.models import Action
from console.pages import cards, fates, rows
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
    (row,) = rows.of([action])
    assert (row.fate.level, row.fate.word, row.command) == ("live", "running", command.pk)
    assert fates.said(action, command) == "It runs in the background."
    Command.objects.filter(pk=command.pk).update(status="timed_out", exit_code=124)
    command.refresh_from_db()
    assert fates.said(action, command) == "It ran in the background: timed out, exit 124."


@pytest.mark.parametrize(
    ("status", "exit_code", "level", "word"),
    [
        ("exited", 0, "go", "exit 0"),
        ("exited", 3, "stop", "exit 3"),
        ("signalled", 137, "stop", "signalled, exit 137"),
        ("timed_out", 124, "stop", "timed out, exit 124"),
        ("stopped", 143, "stop", "stopped, exit 143"),
        ("lost", None, "stop", "lost"),
    ],
)
def test_its_colour_is_that_of_its_own_end_on_card_row_and_sandbox(
    cast, browser, command, status, exit_code, level, word
) -> None:
    begun = {"status": "succeeded", "started_at": command.started_at, "ended_at": command.started_at}
    Action.objects.filter(pk=command.action_id).update(**begun, result={"background": True})
    Command.objects.filter(pk=command.pk).update(status=status, exit_code=exit_code)
    client, here = browser(cast.alice), f"/w/{cast.workspace.pk}"
    card = client.get(f"{here}/queue/{command.action_id}").content.decode()
    assert card.count(f'badge {level}"') == 2
    assert card.count(word) >= 3, "badge, outcome and row"
    assert "data-command" not in card
    sandbox = client.get(f"{here}/sandboxes/{command.sandbox_id}").content.decode()
    assert f'<span class="state {level}">{word}</span>' in sandbox
    assert "started</span>" not in card + sandbox


def test_while_it_runs_its_card_and_row_are_live_and_say_what_to_listen_for(cast, browser, command) -> None:
    begun = {"status": "succeeded", "started_at": command.started_at, "ended_at": command.started_at}
    Action.objects.filter(pk=command.action_id).update(**begun, result={"background": True})
    page = browser(cast.alice).get(f"/w/{cast.workspace.pk}/queue/{command.action_id}").content.decode()
    assert page.count(f'data-command="{command.pk}"') == 2
    assert page.count('badge live"') == 2
    assert '<span class="state live"><span class="dot"></span><b>Live</b></span>' in page


def test_rows_of_input_name_the_command_that_reads_it(cast, command) -> None:
    def row_of(**arguments) -> rows.Row:
        sent = {"id": command.pk, "data": "", "eof": False, **arguments}
        sent_by = cast.caller(cast.scout)
        action = pending(sent_by, tool="stdin", arguments=sent, sandbox_id=command.sandbox_id, conversation=str(sent))
        return rows.of([action])[0]

    to = f"to {command.pk}"
    assert row_of(data="print(1)\n").label == f"send print(1) {to}"
    assert row_of(data="a\nb\n", eof=True).size == "4 bytes, then its end"
    assert row_of(data="a\nb\n").label == f"send input {to}"
    assert row_of(data=payloads.keep(payloads.hold(b"\x00" * 5000))).size == "5\u2009000 bytes"
    assert row_of(eof=True).label == f"end the input {to}"


@pytest.mark.parametrize("tool", ["read", "list", "publish"])
def test_rows_of_reads_say_which_path(cast, browser, command, tool) -> None:
    arguments = {"path": "/work/notes.txt"}
    action = pending(cast.caller(cast.scout), tool=tool, arguments=arguments, sandbox_id=command.sandbox_id)
    assert rows.of([action])[0].label == f"{tool} /work/notes.txt"
    page = browser(cast.alice).get(f"/w/{cast.workspace.pk}/sandboxes/{command.sandbox_id}").content.decode()
    assert '<code class="cmd">/work/notes.txt</code>' in page


@pytest.mark.parametrize("size", [3, INLINE_BYTES, INLINE_BYTES + 1])
def test_a_nul_is_drawn_where_it_stands_in_what_is_short_and_the_rest_is_shown_by_hash(cast, command, size):
    content = b"a\0b".ljust(size, b"x")
    kept = payloads.keep(payloads.hold(content))
    arguments = {"path": "/work/a", "content": kept, "mode": None}
    written = cards.matter(pending(cast.caller(cast.scout), tool="write", kind="write", arguments=arguments))
    for sheet in (written.sheets[0], card_of(cast, command, data=kept).sheets[0]):
        if size <= INLINE_BYTES:
            assert "U+0000" in sheet.html
            assert sheet.survey
            assert sheet.survey.hidden["\0"] == 1
        else:
            assert "binary, shown by size and hash" in sheet.about
            assert not sheet.html
