"""Making, changing, adopting and ending rules. Each change is another version, and the audit log has every one whole.

Must never keep a rule whose own tests do not pass, and never change one without `rules:manage`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from console.workspaces import audit, ledger, permissions
from console.workspaces.errors import Conflict, Invalid
from console.workspaces.members import by_need
from console.workspaces.models import Agent, Member

from . import patterns, proving
from .models import EFFECTS, TOOLS, Rule

FIELDS = ("effect", "tool", "pattern", "note", "matches", "does_not_match", "agent", "conversation", "expires_at")
MOST_RULES = 200
MOST_TESTS, TEST_CHARS, NOTE_CHARS = 100, 1000, 500


def make(*, by: Member, pack: str = "", pack_version: int | None = None, **fields: Any) -> Rule:
    """A rule that `by` owns. Raises Invalid naming the field; its tests have passed when it is there."""
    by_need(by, permissions.RULES_MANAGE)
    rule = Rule(workspace=by.workspace, owner=by, pack=pack, pack_version=pack_version)
    _fill(rule, fields)  # its tests may take seconds: before the transaction, which holds the one writer
    _insert(rule, by)
    return rule


@transaction.atomic
def _insert(rule: Rule, by: Member) -> None:
    _begin(rule, by)
    if Rule.objects.kept().filter(workspace=by.workspace).count() >= MOST_RULES:
        raise Conflict(f"{by.workspace} has {MOST_RULES} rules. End one first.")
    rule.save(force_insert=True)
    _audit(rule, by, "rule.made")


def drafted(*, by: Member, untested: bool = False, **fields: Any) -> Rule:
    """As it would be, checked and not kept: for trying it out. `untested`: its own tests may fail."""
    rule = Rule(workspace=by.workspace, owner=by)
    _fill(rule, fields, untested=untested)
    return rule


def change(rule: Rule, *, by: Member, version: int | None = None, **fields: Any) -> Rule:
    """Another version of it. `version`: the one that was looked at; Conflict when somebody changed it since."""
    by_need(by, permissions.RULES_MANAGE)
    before = _whole(rule)
    _fill(rule, fields)
    if _whole(rule) == before:
        return rule
    _update(rule, by, rule.version if version is None else version, before)
    return rule


@transaction.atomic
def _update(rule: Rule, by: Member, version: int, before: Mapping[str, Any]) -> None:
    """Under the version that was tested, or not at all."""
    _begin(rule, by)
    rows = Rule.objects.kept().filter(pk=rule.pk, version=version)
    kept = {name: getattr(rule, name) for name in FIELDS}
    if not rows.update(**kept, version=F("version") + 1, pack="", pack_version=None):
        raise Conflict(f"Somebody changed or ended rule {rule.pk} meanwhile. Look at it again; nothing was saved.")
    rule.refresh_from_db()
    _audit(rule, by, "rule.changed", before=before)


@transaction.atomic
def disable(rule: Rule, *, by: Member) -> bool:
    """False when it was ended before. It stays as a row: actions name it."""
    _begin(rule, by)
    if not Rule.objects.kept().filter(pk=rule.pk).update(disabled_at=timezone.now(), version=F("version") + 1):
        return False
    rule.refresh_from_db()
    _audit(rule, by, "rule.ended")
    return True


def adopt(rule: Rule, *, by: Member) -> Rule:
    """`by` answers for it from here on; its tests pass, or it stays as it was."""
    by_need(by, permissions.RULES_MANAGE)
    check_tests(rule)
    _take_over(rule, by)
    return rule


@transaction.atomic
def _take_over(rule: Rule, by: Member) -> None:
    _begin(rule, by)
    rows = Rule.objects.kept().filter(pk=rule.pk, version=rule.version)
    if not rows.update(owner=by, suspended_at=None, version=F("version") + 1):
        raise Conflict(f"Somebody changed or ended rule {rule.pk} meanwhile. Look at it again.")
    before = rule.owner_id
    rule.refresh_from_db()
    _audit(rule, by, "rule.adopted", former_owner=before)


def _begin(rule: Rule, by: Member) -> None:
    """Asked in the transaction: what took a while before it may have outlived the right to it."""
    ledger.hold(rule.workspace_id)
    by_need(by, permissions.RULES_MANAGE)


@transaction.atomic
def suspend_of(owner: Member, *, by: Member | None) -> int:
    """What they own allows nothing until somebody adopts it; for who leaves."""
    found = list(Rule.objects.kept().filter(owner=owner, suspended_at=None))
    Rule.objects.filter(pk__in=[rule.pk for rule in found]).update(suspended_at=timezone.now())
    for rule in found:
        _audit(rule, by, "rule.suspended")
    return len(found)


def check_tests(rule: Rule) -> None:
    if failing := [each for each in proving.run(rule) if not each.passes]:
        first = failing[0]
        says = "does match" if first.should else "does not match"
        raise Invalid(
            f"Its own tests fail, so nothing was saved: `{first.text}` {says}, says one; the pattern says otherwise.",
            field="matches" if first.should else "does_not_match",
        )


def _fill(rule: Rule, fields: Mapping[str, Any], *, untested: bool = False) -> None:
    if unknown := sorted(set(fields) - set(FIELDS)):
        raise Invalid(f"A rule has no `{unknown[0]}`.", field=unknown[0])
    for name, value in fields.items():
        setattr(rule, name, value)
    _check_words(rule)
    _check_scope(rule, changed="expires_at" in fields)
    if not untested:
        check_tests(rule)


def _check_words(rule: Rule) -> None:
    if rule.effect not in EFFECTS:
        raise Invalid(f"`effect` is one of {', '.join(EFFECTS)}.", field="effect")
    if rule.tool not in TOOLS:
        raise Invalid(f"`tool` is one of {', '.join(TOOLS)}.", field="tool")
    if why := patterns.check(rule.tool, rule.pattern, allows=rule.effect == "allow"):
        raise Invalid(f"A pattern of {rule.tool} {why}.", field="pattern")
    if len(rule.note) > NOTE_CHARS or not rule.note.isprintable():
        raise Invalid(f"`note` is one line of at most {NOTE_CHARS} characters.", field="note")
    for name in ("matches", "does_not_match"):
        tests = getattr(rule, name)
        if not isinstance(tests, list) or len(tests) > MOST_TESTS or not all(map(_is_test, tests)):
            raise Invalid(f"`{name}` is a list of at most {MOST_TESTS} lines or paths.", field=name)


def _is_test(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= TEST_CHARS and bool(text.strip())


def _check_scope(rule: Rule, *, changed: bool) -> None:
    agent: Agent | None = rule.agent
    if agent is not None and agent.workspace_id != rule.workspace_id:
        raise Invalid("There is no such agent here.", field="agent")
    if rule.conversation and agent is None:
        raise Invalid("A conversation is one of an agent: name the agent, too.", field="agent")
    if changed and rule.expires_at is not None and rule.expires_at <= timezone.now():
        raise Invalid("`expires_at` lies in the future.", field="expires_at")


def _whole(rule: Rule) -> dict[str, Any]:
    found = {name: getattr(rule, name) for name in FIELDS if name != "agent"} | {"agent": rule.agent_id or ""}
    ends: datetime | None = rule.expires_at
    return found | {"expires_at": ends.isoformat() if ends else ""}


def _audit(rule: Rule, by: Member | None, event: str, **data: Any) -> None:
    actor = audit.Actor("member", by.pk) if by else audit.SYSTEM
    pack = {"pack": f"{rule.pack} {rule.pack_version}"} if rule.pack else {}
    audit.append(
        workspace_id=rule.workspace_id, actor=actor, event=event, subject_id=rule.pk, version=rule.version,
        rule=_whole(rule), **pack, **data,
    )  # fmt: skip
