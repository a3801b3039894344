"""The queue's pages: who sees what, what deciding takes, and that nothing else decides."""

import re
from datetime import timedelta

import pytest

from approvals import decisions, gate
from approvals.models import Action
from console.pages import rows
from console.workspaces import members, permissions
from tests.approvals.proposals import pending
from tests.pages.test_draw import Read  # noqa: F401

pytestmark = pytest.mark.django_db


def queue_url(cast, *more: str) -> str:
    return "/".join([f"/w/{cast.workspace.pk}/queue", *more])


def form_of(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(digest|seen)" value="([^"]*)">', page))


def card_in(page: str) -> str:
    """What is beside it, the list has a form of its own."""
    return page.partition('id="card"')[2]


def test_a_waiting_action_is_on_the_page_with_its_whole_text(cast, browser) -> None:
    action = pending(cast.caller(cast.scout), "cat <<'E'\na\n<script>alert(1)</script>\nE\n")
    page = browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()
    assert '<span class="s">&lt;script&gt;alert(1)&lt;/script&gt;</span>\n</span>' in page
    assert '<b class="prog">cat</b>' in page
    assert "<script>alert" not in page
    assert page.index("End of command") < page.index('<form class="decide"')
    assert action.digest in page


@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_deciding_takes_a_plain_form(cast, browser, verdict) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    answer = client.post(queue_url(cast, action.pk, "decide"), {**form, "verdict": verdict, "reason": "Use staging"})
    assert answer.status_code == 302
    action.refresh_from_db()
    assert action.status == {"approve": "approved", "deny": "denied"}[verdict]
    decision = action.decisions.get()
    assert (decision.by, decision.via, decision.digest) == (cast.bob, "page", action.digest)
    if verdict == "deny":
        assert action.end_reason == "Use staging"


def test_deny_without_a_reason_decides_nothing(cast, browser) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    page = client.post(queue_url(cast, action.pk, "decide"), {**form, "verdict": "deny"}, follow=True).content.decode()
    assert "Say why" in page
    assert Action.objects.get().status == "pending"


def test_a_chip_is_a_reason_and_words_follow_it(cast, browser) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    data = {**form, "verdict": "deny", "quick": "Not safe", "reason": "Name the tool."}
    client.post(queue_url(cast, action.pk, "decide"), data)
    assert Action.objects.get().end_reason == "Not safe. Name the tool."


@pytest.mark.parametrize("change", [{"digest": "0" * 64}, {"seen": ""}, {"seen": "x:y"}, {"verdict": "maybe"}])
def test_what_was_not_shown_cannot_be_approved(cast, browser, change) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    client.post(queue_url(cast, action.pk, "decide"), {**form, "verdict": "approve", **change})
    assert Action.objects.get().status == "pending"


def test_the_mark_of_one_session_is_worth_nothing_in_another(cast, browser) -> None:
    action = pending(cast.caller(cast.scout))
    form = form_of(browser(cast.bob).get(queue_url(cast, action.pk)).content.decode())
    browser(cast.alice).post(queue_url(cast, action.pk, "decide"), {**form, "verdict": "approve"})
    assert Action.objects.get().status == "pending"


def test_a_lost_race_says_who_was_first(cast, browser) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    decisions.decide(action, "approve", by=cast.alice, digest=action.digest)
    answer = client.post(queue_url(cast, action.pk, "decide"), {**form, "verdict": "deny", "reason": "No"}, follow=True)
    page = answer.content.decode()
    assert re.search(r"Alice approved this \d+ seconds? before you\. It starts as soon as", page)
    assert Action.objects.get().status == "approved"


@pytest.mark.parametrize("htmx", [True, False])
def test_a_reason_that_came_too_late_is_shown_and_not_lost(cast, browser, htmx) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    decisions.decide(action, "approve", by=cast.alice, digest=action.digest)
    sent = {**form, "verdict": "deny", "quick": "Too broad", "reason": "Name <the> file\u202e.\nNot the folder."}
    headers = {"HX-Request": "true"} if htmx else {}
    page = client.post(queue_url(cast, action.pk, "decide"), sent, follow=True, headers=headers).content.decode()
    assert "Your reason was not sent:" in page
    assert 'Too broad. Name &lt;the&gt; file<span class="esc">⟨U+202E⟩</span>.\nNot the folder.' in page


def test_a_reason_that_is_refused_while_the_action_waits_stays_in_its_field(cast, browser) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    data = {"digest": "0" * 64, "verdict": "deny", "reason": "Use <staging>."}
    answer = client.post(queue_url(cast, action.pk, "decide"), data, headers={"HX-Request": "true"})
    assert "Use &lt;staging&gt;.</textarea>" in answer.content.decode()
    assert Action.objects.get().status == "pending"


def test_a_card_says_who_was_first_to_whoever_still_writes(cast, browser) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    assert "data-unsent" not in client.get(queue_url(cast, action.pk)).content.decode()
    decisions.decide(action, "approve", by=cast.alice, digest=action.digest)
    page = client.get(queue_url(cast, action.pk)).content.decode()
    assert re.search(r"data-unsent hidden>.*<p>Alice approved this before you\. Your reason was not sent:</p>", page)


def test_csrf_is_required(cast, browser) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    client.handler.enforce_csrf_checks = True
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    answer = client.post(queue_url(cast, action.pk, "decide"), {**form, "verdict": "approve"})
    assert answer.status_code == 403
    assert Action.objects.get().status == "pending"


def test_no_get_decides(cast, browser) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    for url in (queue_url(cast, action.pk, "decide"), queue_url(cast, action.pk)):
        client.get(url, {**form, "verdict": "approve"})
        client.head(url, {**form, "verdict": "approve"})
    assert Action.objects.get().status == "pending"


@pytest.mark.parametrize("more", [(), ("{id}",), ("{id}", "raw"), ("{id}", "output", "stdout")])
def test_members_of_other_workspaces_get_404_and_strangers_the_sign_in(cast, browser, more) -> None:
    action = pending(cast.caller(cast.scout))
    url = queue_url(cast, *(part.format(id=action.pk) for part in more))
    assert browser(cast.mallory).get(url).status_code == 404
    assert browser().get(url).headers["Location"].startswith("/sign-in")
    # and no way through one's own workspace
    own = url.replace(cast.workspace.pk, cast.elsewhere.pk)
    assert browser(cast.mallory).get(own).status_code == (200 if not more else 404)


def test_mallory_cannot_decide(cast, browser) -> None:
    action = pending(cast.caller(cast.scout))
    for workspace in (cast.workspace, cast.elsewhere):
        url = f"/w/{workspace.pk}/queue/{action.pk}/decide"
        answer = browser(cast.mallory).post(url, {"verdict": "deny", "digest": action.digest, "reason": "x"})
        assert answer.status_code == 404
    assert Action.objects.get().status == "pending"


def test_who_may_only_look_sees_no_buttons_and_cannot_decide(cast, browser) -> None:
    action = pending(cast.caller(cast.scout))
    cast.bob.permissions.filter(name=permissions.APPROVALS_REVIEW).delete()
    client = browser(cast.bob)
    page = client.get(queue_url(cast, action.pk)).content.decode()
    assert "echo hi" in page
    assert 'name="verdict"' not in page
    data = {"verdict": "deny", "digest": action.digest, "reason": "x"}
    client.post(queue_url(cast, action.pk, "decide"), data)
    assert Action.objects.get().status == "pending"


def test_who_may_not_even_look_is_told_what_it_needs(cast, browser) -> None:
    cast.bob.permissions.all().delete()
    members.give(cast.bob, permissions.MEMBERS_MANAGE, by=None)
    answer = browser(cast.bob).get(queue_url(cast))
    assert answer.status_code == 403
    page = answer.content.decode()
    assert re.search(r"Needs <code>(approvals:review|sandboxes:read)</code> in Harbour Works\.", page)
    assert "Alice and Bob can give it." in page


def test_nobody_approves_for_an_agent_they_own(cast, browser) -> None:
    action = pending(cast.caller(cast.scout))
    cast.scout.owner = cast.bob
    cast.scout.save()
    page = browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()
    assert "Nobody approves for an agent they own. Alice can. You can deny it." in page
    assert 'value="approve"' not in card_in(page)
    assert 'value="deny"' in card_in(page)


def test_a_text_that_cannot_be_drawn_can_only_be_denied(cast, browser, monkeypatch) -> None:
    action, client = pending(cast.caller(cast.scout)), browser(cast.bob)
    form = form_of(client.get(queue_url(cast, action.pk)).content.decode())
    monkeypatch.setattr("console.pages.draw.draw.pieces", lambda line: 1 / 0)
    page = client.get(queue_url(cast, action.pk)).content.decode()
    assert "It can only be denied" in page
    assert 'value="approve"' not in card_in(page)
    assert 'value="deny"' in card_in(page)
    assert form_of(page)["seen"] == ""
    assert form["seen"]


@pytest.mark.parametrize("part", ["row", "card", "fate", "list"])
def test_fragments_are_of_the_same_address(cast, browser, part) -> None:
    action = pending(cast.caller(cast.scout))
    answer = browser(cast.bob).get(queue_url(cast, action.pk), {"part": part}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert b"<html" not in answer.content
    assert action.pk.encode() in answer.content


def test_an_expired_action_offers_no_decision(cast, browser) -> None:
    from django.utils import timezone

    action = pending(cast.caller(cast.scout))
    Action.objects.update(expires_at=timezone.now(), created_at=timezone.now() - timedelta(hours=24))
    page = browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()
    assert action.pk in card_in(page)
    assert 'name="verdict"' not in card_in(page)
    gate.expire()
    page = browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()
    assert "Nobody decided" in page
    assert "Expired after 24 hours. It was not run, and this is not a denial." in page


def test_raw_bytes_are_the_bytes_and_never_a_page(cast, browser) -> None:
    command = "printf '\u202e\u200b<b>'\n"
    action = pending(cast.caller(cast.scout), command)
    answer = browser(cast.bob).get(queue_url(cast, action.pk, "raw"))
    assert answer.content == command.encode()
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_pages_allow_no_inline_script_and_no_foreign_source(cast, browser) -> None:
    action = pending(cast.caller(cast.scout))
    answer = browser(cast.bob).get(queue_url(cast, action.pk))
    assert "script-src 'self';" in answer.headers["Content-Security-Policy"]
    page = answer.content.decode()
    assert not re.search(r"<script(?![^>]*\ssrc=)", page)
    assert not re.search(r"\son\w+=|\sstyle=|javascript:|https?://(?!testserver)", page)


def test_every_argument_is_on_the_card(cast, browser) -> None:
    arguments = {
        "argv": ["ls", "a b"],
        "cwd": "/work/x",
        "env": {"A": "1"},
        "stdin": "in\n",
        "timeout_s": 7,
        "new": "later",
    }
    action = pending(cast.caller(cast.scout), arguments=arguments)
    page = browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()
    for word in (
        "&quot;ls&quot;",
        "&quot;a b&quot;",
        "/work/x",
        "&quot;A&quot;",
        "in\n",
        "up to 7 s",
        "&quot;new&quot;",
    ):
        assert word in page


def test_an_install_shows_each_package_and_that_it_is_root(cast, browser) -> None:
    arguments = {"packages": ["gawk", "g++"], "timeout_s": 600}
    action = pending(cast.caller(cast.scout), tool="install", arguments=arguments)
    page = browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()
    assert action.why_asked == "Asked because no rule allows this."
    for words in ("wants to install system packages", "gawk", "g++", "root without capabilities, up to 600 s"):
        assert words in page
    assert "End of packages" in page
    assert "gawk g++" in browser(cast.bob).get(queue_url(cast)).content.decode()


def test_the_variables_of_the_sandbox_are_on_the_card_of_each_command(cast, browser) -> None:
    caller = cast.caller(cast.scout)
    profile = {"image": "sha256:1", "network": "none", "user": "agent", "settings_version": 2}
    action = pending(caller, profile={**profile, "env": {"MONTH": "3", "A": "of the sandbox"}})
    page = browser(cast.bob).get(queue_url(cast, action.pk)).content.decode()
    assert "&quot;MONTH&quot;" in page
    assert "of the sandbox" in page
    assert "set, see below" in page


def test_a_form_that_is_not_ours_is_told_so(cast, browser) -> None:
    client = browser(cast.bob)
    client.handler.enforce_csrf_checks = True
    answer = client.post("/sign-out")
    assert answer.status_code == 403
    assert "Nothing was decided or changed" in answer.content.decode()


@pytest.mark.parametrize(
    ("command", "words", "code"),
    [
        ("set -e\ncd src && python3 -m pytest | tee log\ncd ..\n", "run a command with", "set, cd, python3, tee"),
        ("# nothing\n\n", "run a command", ""),
        ("\n".join(f"program-{n} x" for n in range(40)), "run a command", ""),
    ],
)
def test_a_row_of_many_lines_names_its_programs_whole_or_not_at_all(cast, command, words, code) -> None:
    (row,) = rows.of([pending(cast.caller(cast.scout), command)])
    assert (row.words, row.code) == (words, code)
    assert "bytes" in row.size
