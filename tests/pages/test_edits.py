"""An edit on its card: the difference that the digest binds, whole; come back to its reviewer, also the one before."""

import re
from hashlib import sha256

import pytest

from approvals import again, gate, payloads
from approvals.models import Action
from console.pages import cards, fates, rows
from sandboxes.toolsets.two import edit
from tests.approvals.proposals import pending, run

pytestmark = pytest.mark.django_db
OLD, NEW = b"one\ntwo\nthree\n", b"one\n2\nthree\n"
ARGUMENTS = {
    "path": "/work/a.txt",
    "version": sha256(OLD).hexdigest()[:12],
    "edits": [{"do": "replace", "from": "2bdwm", "lines": ["2"]}],
}


def kept(*contents: bytes) -> dict[str, int]:
    for content in contents:
        payloads.keep(payloads.hold(content))
    return {sha256(content).hexdigest(): len(content) for content in contents}


def bound(old: bytes, new: bytes) -> dict[str, str]:
    return {"/work/a.txt": sha256(old).hexdigest(), edit.BECOMES: sha256(new).hexdigest()}


def proposed(cast, old: bytes = OLD, new: bytes = NEW) -> Action:
    fields = {"tool": "edit", "kind": "write", "arguments": ARGUMENTS}
    return pending(cast.caller(cast.scout), bases=bound(old, new), replaced=kept(old, new), **fields)


def test_its_card_shows_what_it_makes_of_the_file(cast) -> None:
    action = proposed(cast)
    found = cards.matter(action)
    (sheet,) = found.sheets
    assert (found.wants, found.undrawable, sheet.name) == ("wants to change a file", "", "/work/a.txt")
    assert sheet.about == [f"replaces version {ARGUMENTS['version']}", "+1 −1"]
    assert ("Can change", "/work/a.txt") in found.facts
    row = rows.of([action])[0]
    assert (row.icon, row.words, row.code, row.size) == ("file-pen", "edit", "/work/a.txt", "+1 −1")


def test_hidden_characters_among_the_new_lines_are_flagged(cast) -> None:
    found = cards.matter(proposed(cast, new="one\ntw\u200bo\nthree\n".encode()))
    assert "Hidden characters" in [flag.word for flag in found.flags]


@pytest.mark.parametrize("new", [b"a\0b", b"\xff"])
def test_what_cannot_be_shown_can_only_be_denied(cast, new) -> None:
    found = cards.matter(proposed(cast, new=new))
    assert (found.sheets, "only be denied" in found.undrawable) == ([], True)


def test_a_kept_text_that_is_gone_can_only_be_denied(cast) -> None:
    action = proposed(cast)
    payloads.path({"sha256": action.bases[edit.BECOMES]}).unlink()
    assert "only be denied" in cards.matter(action).undrawable


def test_come_back_it_shows_both_differences_and_the_first_one_has_ended(cast, browser) -> None:
    first = proposed(cast)
    now, then = b"zero\n" + OLD, b"zero\n" + NEW
    new_id = again.propose_again(first, bases=bound(now, then), replaced=kept(now, then), why="It changed.")
    first.refresh_from_db()
    second = Action.objects.get(pk=new_id)
    assert (first.status, first.error["code"], first.error["next_action"]) == ("superseded", "stale_edit", new_id)
    assert not first.outcome()["may_retry"], "it waits, as the other"
    assert (second.status, second.parent_action, second.asked) == ("pending", first.pk, True)
    assert second.digest != first.digest
    found = cards.matter(second)
    assert [sheet.name for sheet in found.sheets] == ["/work/a.txt", f"/work/a.txt, as approved in {first.pk}"]
    assert "Comes back" in [flag.word for flag in found.flags]
    page = browser(cast.bob).get(f"/w/{cast.workspace.pk}/queue/{new_id}").content.decode()
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids)), "each change can be jumped to"
    assert set(re.findall(r'href="#(change[^"]*)"', page)) == {"change-1", "change-before-1"} <= set(ids)


def test_its_download_is_the_file_that_it_makes(cast, browser) -> None:
    action = proposed(cast)
    answer = browser(cast.bob).get(f"/w/{cast.workspace.pk}/queue/{action.pk}/raw")
    assert (answer.status_code, answer.content) == (200, NEW)
    assert answer.headers["content-disposition"].startswith("attachment")


def test_the_digest_binds_what_the_file_becomes(cast) -> None:
    assert proposed(cast).digest != proposed(cast, new=b"one\nTWO\nthree\n").digest


def test_one_that_nobody_was_asked_about_shows_its_edits(cast) -> None:
    fields = {"tool": "edit", "kind": "write", "arguments": ARGUMENTS}
    pass_ = gate.submit(run(cast.caller(cast.alice), **fields))
    found = cards.matter(Action.objects.get(pk=pass_.action_id))
    assert found.undrawable == ""
    assert "2bdwm" in found.sheets[0].html


def test_done_it_says_so(cast) -> None:
    action = proposed(cast)
    action.status, action.result = "succeeded", {"size": 12, "path": "/work/a.txt"}
    assert fates.fate(action).word == "edited"
