"""The card of a command that runs a script: its text is there, whole, and nobody approves without having it."""

import re
from dataclasses import replace

import pytest

from approvals import decisions, payloads
from approvals.models import Action, View
from console.pages import cards
from tests.approvals.proposals import pending
from tests.pages.test_queue import queue_url
from tests.sandboxes.test_lifecycle import running

pytestmark = pytest.mark.django_db
TEXT = b"#!/usr/bin/env python3\nprint('<b>run</b>')\n\tif x:\n"


def script(text: bytes, path: str = "/work/x.py") -> dict:
    return {"path": path, **payloads.keep(payloads.hold(text))}


def proposed(cast, text: bytes = TEXT, command: str = "python3 x.py", path: str = "/work/x.py", **more) -> Action:
    return pending(cast.caller(cast.scout), command, script=script(text, path), **more)


def page(browser, cast, action) -> str:
    return browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()


def section(page: str, name: str) -> str:
    return page[page.index(f'aria-label="{name}"') :].split("</section>")[0]


def test_its_text_stands_whole_below_the_command_and_before_the_form(cast, browser) -> None:
    action = proposed(cast)
    shown = page(browser, cast, action)
    text = re.sub("<[^>]*>", "", section(shown, "/work/x.py"))
    for line in ("#!/usr/bin/env python3", "print(&#x27;&lt;b&gt;run&lt;/b&gt;&#x27;)", "if x:", "End of script"):
        assert line in text.replace("&#39;", "&#x27;"), line
    assert "bound by its hash, what it loads is not" in text
    assert shown.index('aria-label="/work/x.py"') < shown.index("data-approve")
    assert "Unpinned code" not in shown
    assert View.objects.get(action=action).digest == action.digest


@pytest.mark.parametrize(
    ("text", "word"), [("a\u200bb\n", "Hidden characters"), ("p\u0430ypal\n", "Look-alike characters")]
)
def test_what_hides_in_it_is_flagged(cast, text, word) -> None:
    assert word in [flag.word for flag in cards.matter(proposed(cast, text.encode())).flags]


def test_a_name_that_a_link_leads_from_says_where_it_runs(cast) -> None:
    about = cards.matter(proposed(cast, command="python3 link.py")).sheets[-1].about
    assert about[-1] == "named by this path when it runs, since a link or `..` leads here from link.py"
    assert not [each for each in cards.matter(proposed(cast)).sheets[-1].about if "link" in each]


def test_a_text_that_is_not_the_one_bound_can_only_be_denied(cast, browser) -> None:
    action = proposed(cast)
    payloads.path(action.script).write_bytes(b"other")
    assert "only be denied" in cards.matter(action).undrawable
    payloads.path(action.script).unlink()
    shown = page(browser, cast, action)
    assert ("only be denied" in shown, "data-approve" in shown) == (True, False)


def test_a_script_written_since_is_said(cast) -> None:
    action = proposed(cast)
    arguments = {"path": "/work/x.py", "content": "x", "mode": None}
    later = pending(cast.caller(cast.scout), tool="write", kind="write", arguments=arguments)
    Action.objects.filter(pk=later.pk).update(
        status="succeeded", started_at=later.created_at, ended_at=later.created_at, result={"sha256": "1" * 64}
    )
    assert "File changed since" in [flag.word for flag in cards.matter(action).flags]


def test_after_a_denial_the_card_shows_what_differs_in_the_script(cast, browser) -> None:
    denied = proposed(cast, b"rm -rf a\n", conversation="c")
    decisions.decide(denied, "deny", by=cast.bob, digest=denied.digest, reason="not a")
    shown = page(browser, cast, proposed(cast, b"rm -rf b\n", conversation="c"))
    rows = re.findall(
        r'<tr class="(\w+)".*?<td class="txt">(.*?)</td>', section(shown, "Difference from what was denied")
    )
    found = [(kind, re.sub("<[^>]*>", "", text).strip()) for kind, text in rows]
    assert {("del", "rm -rf a"), ("add", "rm -rf b")} <= set(found)


def test_an_edit_previews_the_script_that_its_line_runs(committed_cast, browser, monkeypatch) -> None:
    cast = committed_cast
    sandbox = running(cast.caller(cast.scout))
    action = proposed(cast, sandbox_id=sandbox.pk)
    other = script(b"print('other')\n", "/work/y.py")

    async def bound(proposal, *, is_asked):
        assert is_asked
        return replace(proposal, script=other), []

    monkeypatch.setattr("sandboxes.scripts.bound", bound)
    sent = {"text": "python3 y.py", "digest_before": action.digest}
    url, client = queue_url(cast, action.pk, "edit"), browser(cast.bob)
    preview = client.post(url, {**sent, "step": "preview"}).content.decode()
    assert "print(&#x27;other&#x27;)" in preview.replace("&#39;", "&#x27;")
    digest = re.search(r'name="digest" value="([0-9a-f]{64})"', preview)
    assert digest is not None
    assert client.post(url, {**sent, "digest": digest[1], "step": "put"}).status_code == 302
    found = Action.objects.get()
    assert (found.script, found.digest) == (other, digest[1])
