"""Grants: for some minutes one conversation may do again exactly what a reviewer has just approved.

Must never be wider than what the reviewer's page showed whole, and never given by who could not approve the action.
"""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from approvals import decisions, payloads
from approvals.models import Action
from console.workspaces import audit, ledger, permissions
from console.workspaces.errors import Invalid
from console.workspaces.keys import Caller
from console.workspaces.members import by_need
from console.workspaces.models import Member

from . import finding, judging, trusting
from .models import TOOLS, Grant

MINUTES, MOST_MINUTES = 15, 60
SHOWN_CHARS = 120
Words = tuple[tuple[str, ...], ...]


def offer(action: Action) -> Words | None:
    """What could be granted of it, whole: words of each command, or its path. None: it is only for this once, as where
    one reviewer alone does not decide."""
    if action.tool not in TOOLS or action.agent is None or _mode_of(action) != "rules" or action.approvals_needed > 1:
        return None
    if action.tool != "run":
        path = str(action.arguments["path"])
        return (
            ((path,),) if _is_short(path) and not _leads_elsewhere(path) and not trusting.why_not_unseen(path) else None
        )
    call = finding.Asked(**{name: getattr(action, name) for name in finding.Asked.__dataclass_fields__}).call
    line = judging.read(call.arguments)
    if line is None or judging.why_no_rule(call, line) or not _is_short(_text(action)):
        return None
    return tuple(dict.fromkeys(each.argv for each in line.plain or ()))


def _mode_of(action: Action) -> str:
    assert action.agent
    return action.agent.mode_of(action.tool, is_write=action.tool != "run")


def _text(action: Action) -> str:
    if "argv" in action.arguments:
        return " ".join(action.arguments["argv"])
    return payloads.content(action.arguments["command"]).decode()


def _is_short(text: str) -> bool:
    return len(text) <= SHOWN_CHARS and text.isascii() and text.isprintable()


def _leads_elsewhere(path: str) -> bool:
    return ".." in path.split("/") or "//" in path


@transaction.atomic
def approve_and_grant(action: Action, *, by: Member, digest: str, minutes: int = MINUTES, **more: Any) -> Grant:
    """Both, or neither. Raises what `decide` raises, and Invalid when there is nothing to grant."""
    exactly = _checked(action, minutes)
    decisions.decide(action, "approve", by=by, digest=digest, **more)
    return _give(action, exactly, by=by, minutes=minutes)


def _checked(action: Action, minutes: int) -> Words:
    if (exactly := offer(action)) is None:
        raise Invalid("This can only be approved once; no grant can show all that it would let through.", field="grant")
    if not 1 <= minutes <= MOST_MINUTES:
        raise Invalid(f"A grant lasts 1 to {MOST_MINUTES} minutes, not {minutes}.", field="minutes")
    return exactly


def _give(action: Action, exactly: Words, *, by: Member, minutes: int) -> Grant:
    same = {name: getattr(action, name) for name in ("workspace_id", "agent_id", "conversation", "sandbox_id", "tool")}
    until = timezone.now() + timedelta(minutes=minutes)
    grant = Grant.objects.create(**same, action=action, exactly=exactly, given_by=by, expires_at=until)
    _audit(
        grant, by, "grant.given", action=action.pk, minutes=minutes, tool=grant.tool, exactly=list(map(list, exactly))
    )
    return grant


@transaction.atomic
def give_by_key(action: Action, *, caller: Caller, digest: str, minutes: int) -> Grant:
    """As `approve_and_grant`, for a member's key, where the workspace has turned deciding by key on."""
    exactly = _checked(action, minutes)
    decisions.decide_by_key(action, "approve", caller=caller, digest=digest)
    return _give(action, exactly, by=Member.objects.get(pk=caller.member_id), minutes=minutes)


@transaction.atomic
def end(grant: Grant, *, by: Member) -> bool:
    """At once: the next call asks. False when it was over."""
    by_need(by, permissions.APPROVALS_REVIEW)
    ledger.hold(grant.workspace_id)
    now = timezone.now()
    if not Grant.objects.filter(pk=grant.pk, ended_at=None, expires_at__gt=now).update(ended_at=now):
        return False
    _audit(grant, by, "grant.ended", uses=grant.use_count)
    return True


def _audit(grant: Grant, by: Member, event: str, **data: Any) -> None:
    audit.append(
        workspace_id=grant.workspace_id, actor=audit.Actor("member", by.pk), event=event, subject_id=grant.pk,
        agent=grant.agent_id, conversation=grant.conversation, **data,
    )  # fmt: skip
