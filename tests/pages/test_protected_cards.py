"""Cards about protected files: an unsealing says which file and what it opens; an exempt path says that it is one."""

from datetime import timedelta

import pytest
from django.utils import timezone

from console.pages import cards, fates, rows
from console.workspaces import agents
from tests.api.conftest import make_sandbox
from tests.approvals.proposals import pending

pytestmark = pytest.mark.django_db
UNSEAL = {"path": "/work/.env\u202e"}
WRITE = {"path": "/work/.env", "content": "A=1\n", "mode": None}


def asked(cast, tool, arguments, **more):
    sandbox = make_sandbox(cast.scout)
    return pending(cast.caller(cast.scout), tool=tool, kind="write", arguments=arguments, sandbox_id=sandbox.pk, **more)


def test_an_unsealing_shows_the_whole_path_and_what_it_opens(cast):
    action = asked(cast, "unseal", UNSEAL)
    found = cards.matter(action)
    assert (found.wants, found.undrawable) == ("wants to have a protected file unsealed", "")
    (sheet,) = found.sheets
    assert sheet.about == ["commands can change it until the sandbox starts again"]
    assert "/work/.env" in sheet.html
    assert "202E" in sheet.html, "what cannot be seen is drawn"
    (flag,) = (flag for flag in found.flags if flag.word == "Protected file")
    assert (flag.level, "Environment file, by its path." in flag.why, "until the sandbox starts again" in flag.why) == (
        "stop", True, True,
    )  # fmt: skip
    facts = dict(found.facts)
    assert ("commands" in facts["Allows"], "Runs as" in facts) == (True, False)
    (row,) = rows.of([action])
    assert (row.words, row.code) == ("unseal", UNSEAL["path"])


def test_an_exempt_path_is_flagged_on_its_card(cast):
    found = cards.matter(asked(cast, "write", WRITE, flags=("exempt_path",)))
    assert [(flag.level, flag.word) for flag in found.flags] == [("stop", "Protected, exempt")]


def test_an_exempt_path_says_who_exempted_it_why_and_until_when(cast):
    until = timezone.now() + timedelta(hours=8)
    given = [{"path": "/work/.env", "expires_at": until.isoformat(), "reason": "rotate\u202e it"}]
    agents.change_tools(cast.scout, by=cast.alice, protected_exempt=given)
    (flag,) = cards.matter(asked(cast, "write", WRITE, flags=("exempt_path",))).flags
    for said in ("Alice", f"{until:%H:%M} UTC", "rotate⟨U+202E⟩ it"):
        assert said in flag.why


def test_an_unsealing_of_a_file_that_the_settings_protect_names_their_pattern(cast):
    agents.change_tools(cast.scout, by=cast.alice, protected_more=["*.crypt"])
    found = cards.matter(asked(cast, "unseal", {"path": "/work/a.crypt"}))
    assert any("*.crypt" in flag.why for flag in found.flags)


def test_what_was_unsealed_says_so(cast):
    action = asked(cast, "unseal", UNSEAL)
    action.status, action.result = "succeeded", {"path": "/work/.env", "was_sealed": True}
    assert fates.fate(action).word == "unsealed"
