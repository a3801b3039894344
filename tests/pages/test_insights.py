"""Insights: numbers worked out by hand, drawn and in a table, of one workspace alone."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from approvals import decisions, gate, insights
from approvals.models import Action, Decision
from console.pages.insights import _round_up
from tests.approvals.proposals import pending, run


def decided(cast, verdict, seconds, *, by=None, agent=None, days=0):
    action = pending(cast.caller(agent or cast.scout), f"echo {verdict} {seconds} {days}")
    decisions.decide(action, verdict, by=by or cast.bob, digest=action.digest, reason="x")
    created = timezone.now() - timedelta(days=days)
    Action.objects.filter(pk=action.pk).update(created_at=created)
    Decision.objects.filter(action=action).update(at=created + timedelta(seconds=seconds))


@pytest.fixture
def lately(cast):
    for seconds in (1, 10, 20, 40, 1000):
        decided(cast, "approve", seconds)
    decided(cast, "deny", 5, by=cast.alice, agent=cast.other)
    decided(cast, "deny", 9, days=20)
    late = pending(cast.caller(cast.scout), "echo late")
    Action.objects.filter(pk=late.pk).update(expires_at=late.created_at)
    gate.expire()
    pending(cast.caller(cast.scout), "echo waits")
    passed = gate.submit(run(cast.caller(cast.scout), tool="read", kind="read", arguments={"path": "/work/a"}))
    assert passed.action_id
    cast.scout.command_mode = "never"
    cast.scout.save()
    gate.submit(run(cast.caller(cast.scout), "echo ruled"))
    return cast


def test_the_numbers_of_a_week(lately):
    found = insights.numbers(lately.workspace.pk, days=7)
    assert (found.calls, found.asked, found.by_rule, found.denied, found.expired) == (9, 8, 1, 1, 1)
    assert (found.times.count, found.times.p50_s, found.times.p95_s, found.times.hasty) == (6, 10, 1000, 1)
    assert [(pk, times.count) for pk, times in found.by_reviewer.items()] == [(lately.bob.pk, 5), (lately.alice.pk, 1)]
    assert found.by_reviewer[lately.bob.pk].p50_s == 20
    assert {pk: times.count for pk, times in found.by_agent.items()} == {lately.scout.pk: 5, lately.other.pk: 1}
    assert len(found.days) == 7
    assert list(found.days.values())[-1] == (1, 5, 1, 1)
    assert insights.numbers(lately.workspace.pk, days=30).denied == 2


def test_nobody_elses_are_in_it(lately):
    found = insights.numbers(lately.elsewhere.pk, days=90)
    assert (found.calls, found.times.count, found.by_reviewer) == (0, 0, {})


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([], 50, None), ([7], 50, 7), ([7], 95, 7), ([1, 2], 50, 1), ([1, 2, 3], 50, 2), (list(range(1, 101)), 95, 95)],
)
def test_a_rank_is_a_value_that_was_there(values, percent, expected):
    assert insights.rank(values, percent) == expected


@pytest.mark.parametrize(
    ("most", "top"), [(0, 2), (2, 2), (3, 5), (6, 10), (11, 20), (21, 50), (180, 200), (501, 1000)]
)
def test_an_axis_ends_at_a_round_number(most, top):
    assert _round_up(most) == top


def page(browser, cast, who, query="", status=200):
    answer = browser(who).get(reverse("insights", args=[cast.workspace.pk]) + query)
    assert answer.status_code == status
    return answer.content.decode()


def test_the_page_draws_what_its_table_says(lately, browser):
    text = page(browser, lately, lately.bob, "?days=7")
    assert '<a href="?days=7" aria-current="true">' in text
    assert text.count('<rect class="f-') == 4
    table = re.sub(r"\s+", " ", text.split("As a table")[1])
    today = timezone.now().date().isoformat()
    (row,) = re.findall(rf"{today}</th>(.*?)</tr>", table)
    assert re.findall(r">(\d+)</td>", row) == list("1511")
    assert "10 s" in text
    assert "16 min" in text  # 1000 s
    assert "Bob" in text
    assert "style=" not in text


def test_who_neither_reviews_nor_reads_the_audit_log_sees_none(lately, browser):
    url = reverse("insights", args=[lately.workspace.pk])
    assert browser(lately.mallory).get(url).status_code == 404
    assert browser().get(url).status_code == 302
    assert browser(lately.bob).post(url).status_code == 405
    lately.bob.permissions.filter(name="audit:read").delete()
    page(browser, lately, lately.bob)
    lately.bob.permissions.filter(name="approvals:review").delete()
    page(browser, lately, lately.bob, status=403)


def test_each_number_stands_beside_the_one_of_the_period_before(lately, browser):
    """Six days ago a week begins; what is 7 to 13 days old is of the week before, and nothing is of both."""
    decided(lately, "deny", 30, days=7, agent=lately.other)
    decided(lately, "approve", 1, days=13, agent=lately.other)
    found = insights.numbers(lately.workspace.pk, days=7)
    before = insights.before(found, lately.workspace.pk)
    assert (before.calls, before.asked, before.denied, before.expired, before.times.hasty) == (2, 2, 1, 0, 1)
    assert (before.times.p50_s, before.times.p95_s) == (1, 30)
    assert not set(before.days) & set(found.days)
    both = insights.numbers(lately.workspace.pk, days=14)
    assert before.calls + found.calls == both.calls
    text = page(browser, lately, lately.bob, "?days=7")
    said = re.findall(r"<small>before: ([^<]*)</small>", text)
    assert said == ["100 %", "0 %", "1.0 s, 95 of 100 within 30 s", "1, 50 %", "0, 0 %", "1 of 2"]
    nothing_before = page(browser, lately, lately.bob, "?days=90")
    assert re.findall(r"<small>before: ([^<]*)</small>", nothing_before) == ["none"] * 6


@pytest.mark.parametrize("query", ["?days=8", "?days=x", "?days=-1", "?days=99999999999999"])
def test_another_period_is_the_usual_one(cast, browser, query):
    text = page(browser, cast, cast.bob, query)
    assert '<a href="?days=30" aria-current="true">' in text
    assert "Nobody decided anything" in text


def test_each_number_of_a_table_has_its_name_where_its_column_has_none(lately, browser):
    page = browser(lately.alice).get(reverse("insights", args=[lately.workspace.pk])).content.decode()
    for table in re.findall(r"<table.*?</table>", page, re.DOTALL):
        assert 'class="table stack' in table
        cells = re.findall(r"<td[^>]*>", table)
        assert cells
        assert [cell for cell in cells if "data-label=" not in cell] == []
