"""Rules: list, make, change, adopt, end; try one out before it is kept."""

from functools import partial
from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from approvals.models import Rule
from approvals.rules import acts, proving, replay
from console.workspaces import db, permissions
from console.workspaces.errors import NotFound
from console.workspaces.keys import Caller
from console.workspaces.models import Workspace

from . import acting, listing, schemas
from .door import caller, door

router = Router(tags=["Rules"])
manages = partial(door, router, keys="workspace", may=(permissions.RULES_MANAGE,))


@manages("GET", "/rules", answers={200: schemas.Rules})
async def list_rules(
    request: HttpRequest, limit: schemas.Limit = 50, cursor: schemas.Cursor | None = None
) -> schemas.Rules:
    """List the workspace's rules. Newest first, those of packs among them; grants are no rules."""
    found, more = await db.read(_list, caller(request), limit, cursor)
    return schemas.Rules(items=[schemas.Rule.of(row) for row in found], next_cursor=more)


def _list(who: Caller, limit: int, cursor: str | None) -> tuple[list[Rule], str | None]:
    rows = Rule.objects.kept().filter(workspace_id=who.workspace_id).select_related("owner__user")
    return listing.page(rows, limit, cursor)


@manages("POST", "/rules", answers={201: schemas.Rule}, fails=("not_found", "conflict"))
async def make_rule(request: HttpRequest, body: schemas.NewRule) -> Status[schemas.Rule]:
    """Make a rule. It is kept only when its own tests pass, and holds from the next call on."""
    return Status(201, await db.write(_make, caller(request), body))


def _make(who: Caller, body: schemas.NewRule) -> schemas.Rule:
    return schemas.Rule.of(acts.make(by=acting.member(who), **_fields(who, body)))


def _fields(who: Caller, body: schemas.NewRule) -> dict[str, Any]:
    agent = acting.agent(who, body.agent_id) if body.agent_id else None
    return {**body.model_dump(exclude={"agent_id"}), "agent": agent}


@manages("POST", "/rules/dry-run", answers={200: schemas.DryRun}, fails=("not_found",))
async def dry_run_rules(request: HttpRequest, body: schemas.NewDryRun) -> schemas.DryRun:
    """Try the rules on the last calls. What they, and one more, would have let through, denied or asked; nothing is
    changed. Grants are left out."""
    return await db.read(_dry_run, caller(request), body)


def _dry_run(who: Caller, body: schemas.NewDryRun) -> schemas.DryRun:
    candidate = acts.drafted(by=acting.member(who), **_fields(who, body.rule)) if body.rule else None
    found = replay.replay(Workspace.objects.get(pk=who.workspace_id), candidate=candidate, last=body.last)
    return schemas.DryRun(
        **replay.counts(found),
        items=[
            schemas.Replayed(
                action_id=each.action.pk, tool=each.action.tool, status=each.action.status,
                would=each.verdict.effect, why=each.verdict.why, rules=sorted(each.names),
            )
            for each in found
        ],
    )  # fmt: skip


@manages("POST", "/rules/tests", answers={200: schemas.RuleTests})
async def run_rule_tests(request: HttpRequest, body: schemas.NewRuleTests) -> schemas.RuleTests:
    """Run a rule's tests. Those of a pattern as it would be; nothing is kept."""
    return await db.read(_tests, caller(request), body)


def _tests(who: Caller, body: schemas.NewRuleTests) -> schemas.RuleTests:
    found = proving.run(acts.drafted(by=acting.member(who), untested=True, **body.model_dump()))
    items = [schemas.RuleTest.of(test) for test in found]
    return schemas.RuleTests(passes=all(test.passes for test in found), items=items)


@manages("GET", "/rules/{rule_id}", answers={200: schemas.Rule})
async def get_rule(request: HttpRequest, rule_id: str) -> schemas.Rule:
    """Get a rule."""
    return schemas.Rule.of(await db.read(_rule, caller(request), rule_id))


def _rule(who: Caller, rule_id: str) -> Rule:
    kept = Rule.objects.kept().select_related("owner__user", "agent", "workspace")
    if (row := kept.filter(pk=rule_id, workspace_id=who.workspace_id).first()) is None:
        raise NotFound("rule", rule_id)
    return row


@manages("PUT", "/rules/{rule_id}", answers={200: schemas.Rule}, fails=("conflict",))
async def change_rule(request: HttpRequest, rule_id: str, body: schemas.RuleChange) -> schemas.Rule:
    """Change a rule. Its version goes up; what is left out stays. One of a pack is the workspace's own from then on."""
    return await db.write(_change, caller(request), rule_id, body)


def _change(who: Caller, rule_id: str, body: schemas.RuleChange) -> schemas.Rule:
    given = body.model_dump(exclude_unset=True)
    fields = {name: value for name, value in given.items() if value is not None or name == "expires_at"}
    return schemas.Rule.of(acts.change(_rule(who, rule_id), by=acting.member(who), **fields))


@manages("POST", "/rules/{rule_id}/adopt", answers={200: schemas.Rule}, fails=("conflict",))
async def adopt_rule(request: HttpRequest, rule_id: str) -> schemas.Rule:
    """Adopt a rule. The key's member answers for it from here on; of one whose owner left, this ends its suspension."""
    return await db.write(_adopt, caller(request), rule_id)


def _adopt(who: Caller, rule_id: str) -> schemas.Rule:
    return schemas.Rule.of(acts.adopt(_rule(who, rule_id), by=acting.member(who)))


@manages("DELETE", "/rules/{rule_id}", answers={200: schemas.Done})
async def end_rule(request: HttpRequest, rule_id: str) -> schemas.Done:
    """End a rule. From the next call on it is not there; the audit log keeps it."""
    await db.write(_end, caller(request), rule_id)
    return schemas.Done()


def _end(who: Caller, rule_id: str) -> None:
    acts.disable(_rule(who, rule_id), by=acting.member(who))
