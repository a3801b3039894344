"""Insights: how much is asked, how fast it is decided and by whom, drawn on the server, and the same as a table.

Owns how numbers become shapes and words. Must never judge anybody: it counts.
"""

from datetime import timedelta
from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import render

from approvals import insights
from approvals.insights import Numbers, Times
from console.workspaces import permissions
from console.workspaces.models import Agent, Member

from . import words
from .shell import member_page

PERIODS = (7, 30, 90)
WIDTH, HEIGHT = 700, 176
FILLS = ("f-rule", "f-go", "f-stop", "f-wait")


@member_page("insights", permissions.AUDIT_READ, permissions.APPROVALS_REVIEW)
def shown(request: Any) -> HttpResponseBase:
    workspace, asked = request.here.workspace, request.GET.get("days", "")
    days = int(asked) if asked in map(str, PERIODS) else PERIODS[1]
    found = insights.numbers(workspace.pk, days=days)
    people = {member.pk: str(member) for member in Member.objects.filter(workspace=workspace).select_related("user")}
    agents = dict(Agent.objects.filter(workspace=workspace).values_list("pk", "name"))
    return render(
        request,
        "insights/insights.html",
        {
            "days": days,
            "periods": PERIODS,
            "now": found_words(found),
            "before": before_words(insights.before(found, workspace.pk)),
            "groups": (
                ("By reviewer", "Reviewer", True, _rows(found.by_reviewer, people, found)),
                ("By agent", "Agent", False, _rows(found.by_agent, agents, found)),
            ),
            **plot(found),
        },
    )


def found_words(found: Numbers) -> dict[str, Any]:
    """As numbers of a period and of the one before it are shown."""
    return {
        "numbers": found,
        "median": seconds(found.times.p50_s),
        "most": seconds(found.times.p95_s),
        "asked_share": words_share(found.asked, found.calls),
        "rule_share": words_share(found.by_rule, found.calls),
        "denied_share": words_share(found.denied, found.asked),
        "expired_share": words_share(found.expired, found.asked),
    }


def before_words(before: Numbers) -> dict[str, str]:
    """What stands below each number of now."""
    said, times = found_words(before), before.times
    counts = {name: words.count(getattr(before, name)) for name in ("denied", "expired")}
    return {
        "asked": said["asked_share"],
        "by_rule": said["rule_share"],
        "time": f"{said['median']}, 95 of 100 within {said['most']}" if times.count else "none",
        **{name: f"{count}, {said[f'{name}_share']}" if before.asked else "none" for name, count in counts.items()},
        "hasty": f"{words.count(times.hasty)} of {words.count(times.count)}" if times.count else "none",
    }


def _rows(groups: dict[str, Times], names: dict[str, str], found: Numbers) -> list[dict[str, Any]]:
    return [
        {
            "name": names.get(pk, "somebody who left"),
            "count": times.count,
            "share": round(100 * times.count / found.times.count),
            "median": seconds(times.p50_s),
            "most": seconds(times.p95_s),
            "hasty": times.hasty,
        }
        for pk, times in groups.items()
    ]


def seconds(length_s: float | None) -> str:
    if length_s is None:
        return "none"
    return f"{length_s:.1f} s" if length_s < 10 else words.span(timedelta(seconds=length_s))


def words_share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


def plot(found: Numbers) -> dict[str, Any]:
    """Stacked bars, a day each; coordinates as text, so that no language's comma gets in."""
    top = _round_up(max((sum(counts) for counts in found.days.values()), default=0))
    step = WIDTH / len(found.days)
    bars = []
    for at, counts in enumerate(found.days.values()):
        y = float(HEIGHT)
        for fill, count in zip(FILLS, counts, strict=True):
            height = HEIGHT * count / top
            y -= height
            if count:
                box = (step * at + step * 0.14, y, step * 0.72, height)
                bars.append({"fill": fill, **dict(zip("xywh", (f"{each:.1f}" for each in box), strict=True))})
    return {"bars": bars, "top": top, "half": f"{top / 2:g}", "table": [(day, *row) for day, row in found.days.items()]}


def _round_up(most: int) -> int:
    """2, 5, 10, 20, 50 …: the first that everything fits under."""
    factor = 1
    while True:
        for step in (2, 5, 10):
            if step * factor >= most:
                return step * factor
        factor *= 10
