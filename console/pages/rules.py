"""Rules: the list, packs, grants that run, a dry run. Acts are in `approvals.rules`; making and changing one is in
`rule_form`. GET changes nothing."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from approvals import packs
from approvals.models import Grant, Rule
from approvals.rules import acts, grants, proving, replay, suggesting, ticking
from console.workspaces import permissions
from console.workspaces.errors import NotFound, SandgateError
from console.workspaces.models import Agent

from . import granting, rows
from .shell import complain, member_page, say
from .words import number

EFFECTS = {"allow": ("go", "check"), "ask": ("wait", "circle-question-mark"), "deny": ("stop", "ban")}


@dataclass(frozen=True)
class Shown:
    """A rule as the list has it: its tests are run when they are looked at."""

    rule: Rule
    level: str
    icon: str

    @property
    def tests(self) -> str:
        """`3 tests`; empty for none."""
        count = len(self.rule.matches) + len(self.rule.does_not_match)
        return number(count, "test") if count else ""


@member_page("rules", permissions.RULES_MANAGE)
def listed(request: Any) -> HttpResponseBase:
    """`?part=suggestions`: those alone, which read hundreds of lines; without scripts `?suggestions=1` has them too."""
    workspace, get = request.here.workspace, request.GET
    if get.get("part") == "suggestions":
        return render(request, "rules/_suggestions.html", {"suggestions": suggesting.suggest(workspace)})
    found = Rule.objects.kept().filter(workspace=workspace).select_related("agent", "owner__user")
    if q := get.get("q", "").strip():
        found = found.filter(Q(pattern__icontains=q) | Q(owner__user__name__icontains=q) | Q(agent__name__icontains=q))
    if get.get("effect") in EFFECTS:
        found = found.filter(effect=get["effect"])
    own = [Shown(rule, *EFFECTS[rule.effect]) for rule in found.filter(pack="").order_by("-created_at")]
    context = {
        "own": own,
        "packed": _by_pack(found.exclude(pack="").order_by("pattern")),
        "packs": ticking.listed(workspace),
        "grants": granting.in_force(request),
        "suggestions": suggesting.suggest(workspace) if "suggestions" in get else None,
        "q": q,
        "effect": get.get("effect", ""),
        "is_filtered": bool(q or get.get("effect")),
    }
    return render(request, "rules/list.html", context)


@member_page("rules", permissions.RULES_MANAGE)
def tests(request: Any, rule_id: str) -> HttpResponseBase:
    """What came of the rule's own tests, for its place on the list."""
    found = proving.run(rule_in(request, rule_id))
    failing = sum(not test.passes for test in found)
    told = f"{number(len(found), 'test')}, {f'{failing} fail' if failing else 'all pass'}"
    return render(request, "rules/_proved.html", {"tests": found, "failing": failing, "told": told})


def _by_pack(rules: Any) -> list[tuple[str, list[Rule]]]:
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.pack, []).append(rule)
    titles = {name: pack.title for name, pack in packs.packs().items()}
    return [(titles.get(name, name), group) for name, group in sorted(found.items())]


@member_page("rules", permissions.RULES_MANAGE)
def dry_run(request: Any) -> HttpResponseBase:
    """The rules of now on the last calls of agents."""
    return render(request, "rules/dry_run.html", replayed(request))


def replayed(request: Any, candidate: Rule | None = None) -> dict[str, Any]:
    found = replay.replay(request.here.workspace, candidate=candidate)
    listed = rows.of([each.action for each in found])
    by = candidate.pk if candidate else ""
    return {
        "counts": replay.counts(found),
        "total": len(found),
        "replayed": [
            (row, each.verdict, *EFFECTS[each.verdict.effect], by in each.names)
            for row, each in zip(listed, found, strict=True)
        ],
    }


@member_page("rules", permissions.RULES_MANAGE, methods=("POST",))
def pack(request: Any, pack: str) -> HttpResponseBase:
    """Ticks a pack, or unticks it."""
    by, wanted = request.here.member, bool(request.POST.get("on"))
    try:
        changed = ticking.tick(pack, by=by) if wanted else ticking.untick(pack, by=by)
        what = ("on", "made") if wanted else ("off", "ended")
        say(request, f"{packs.named(pack).title} is {what[0]}: {number(changed, 'rule')} {what[1]}.")
    except NotFound:
        raise Http404 from None
    except SandgateError as error:
        complain(request, error.detail)
    return redirect("rules", request.here.workspace.pk)


@member_page("rules", permissions.RULES_MANAGE, methods=("POST",))
def end(request: Any, rule_id: str) -> HttpResponseBase:
    rule = rule_in(request, rule_id)
    acts.disable(rule, by=request.here.member)
    say(request, f"The rule `{rule}` has ended. The next call does not meet it.")
    return redirect("rules", request.here.workspace.pk)


@member_page("rules", permissions.RULES_MANAGE, methods=("POST",))
def adopt(request: Any, rule_id: str) -> HttpResponseBase:
    try:
        rule = acts.adopt(rule_in(request, rule_id), by=request.here.member)
        say(request, f"You answer for the rule `{rule}` from now on.")
    except SandgateError as error:
        complain(request, error.detail)
    return redirect("rules", request.here.workspace.pk)


@member_page("queue", permissions.APPROVALS_REVIEW, methods=("POST",))
def end_grant(request: Any, grant_id: str) -> HttpResponseBase:
    """By who reviews; back to where they were."""
    grant = Grant.objects.filter(workspace=request.here.workspace, pk=grant_id).first()
    if grant is None:
        raise Http404
    ended = grants.end(grant, by=request.here.member)
    say(request, "The grant has ended. The next call asks." if ended else "That grant was over already.")
    return redirect("rules" if request.POST.get("from") == "rules" else "queue", request.here.workspace.pk)


def rule_in(request: Any, rule_id: str) -> Rule:
    kept = Rule.objects.kept().select_related("agent", "owner__user", "workspace")
    rule = kept.filter(workspace=request.here.workspace, pk=rule_id).first()
    if rule is None:
        raise Http404
    return rule


def agents_in(request: Any) -> Any:
    return Agent.objects.current().filter(workspace=request.here.workspace).order_by("name")
