"""Edit-then-approve: a reviewer's text takes the place of a waiting call's, under a digest of its own.

The approvals that were there name the old digest and count no longer; who edited approves as little as an owner. Both
texts stay. Must never change what has been decided, nor what another edit has changed meanwhile.
"""

from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from console.workspaces import audit, changes, ledger, permissions, reviewers
from console.workspaces.errors import Conflict, Invalid, PermissionDenied
from console.workspaces.members import by_need
from console.workspaces.models import Member

from . import differences, gate, votes
from .decisions import already
from .errors import AlreadyDecided, NoReviewer, WrongDigest
from .models import Action, Edit, PayloadUse

ALLOWED = "A rule would let this edited call through. Somebody edited it, so a person approves it."
OF_THE_TEXT = frozenset({"hidden_characters", "lookalikes", "large", "binary", "exempt_path", "unpinned_code"})


def check_may_edit(action: Action, *, by: Member) -> None:
    """Raises when this member could not put another text there now, or nobody could then approve it."""
    if by.workspace_id != action.workspace_id:
        raise PermissionDenied(f"{by} is no member of the workspace of {action.pk}.")
    by_need(by, permissions.APPROVALS_REVIEW)
    if action.plan_id:
        raise Conflict("An item of a plan is approved as it is or left out. Leave it out; say what to send instead.")
    if action.status != "pending":
        raise AlreadyDecided(already(action.pk))
    agent = action.agent
    if agent is None:
        raise Invalid("A call of a member's key waits for nobody.", field="action")
    if agent.settings_version != action.profile["settings_version"]:
        raise WrongDigest(f"The Agent Tools of {agent.name} changed after {action.pk} was proposed. It cannot run.")
    edited = {by.pk, *action.edits.values_list("by_id", flat=True)}
    able = reviewers.able(agent)
    if (able if agent.self_approval else able.exclude(pk__in=edited)).count() < agent.approvals_needed:
        raise NoReviewer(
            "Whoever edits a call does not approve it, and nobody else could. Deny it and say what to send instead."
        )


def checked(action: Action, proposal: gate.Proposal) -> gate.Proposal:
    """The edited call as its card would show it: judged again, with the flags that its text does not explain."""
    verdict = gate.judge(proposal)
    if verdict.effect == "deny":
        raise Conflict(f"{verdict.why} Nothing was edited.")
    stays = [flag for flag in action.flags if flag not in OF_THE_TEXT]
    return replace(proposal, flags=tuple(dict.fromkeys([*stays, *proposal.flags])))


@transaction.atomic
def put(action: Action, proposal: gate.Proposal, *, by: Member, digest_before: str) -> Action:
    """`proposal` as `checked` made it, its contents kept. Raises AlreadyDecided, or WrongDigest when the text is not
    the one that was edited."""
    ledger.hold(action.workspace_id)
    check_may_edit(action, by=by)
    proposal, digest = checked(action, proposal), proposal.digest()
    if digest == digest_before:
        raise Invalid("Nothing is different from what waits.", field="text")
    reset = votes.ask_again(action)
    waits = Action.objects.filter(pk=action.pk, status="pending", digest=digest_before, expires_at__gt=Now())
    verdict = gate.judge(proposal)
    first = action.edits.order_by("at").first()
    proposed = first.arguments_before if first else action.arguments
    if not waits.update(
        diff_of_edit=differences.between(proposed, proposal.arguments) if digest != action.proposed_digest else "",
        digest=digest, arguments=dict(proposal.arguments), bases=dict(proposal.bases), script=proposal.script,
        flags=list(proposal.flags), why_asked=verdict.why[:200] if verdict.effect == "ask" else ALLOWED,
    ):  # fmt: skip
        raise WrongDigest(f"{action.pk} is not what was on your page any more. Look at it again; nothing was edited.")
    Edit.objects.create(
        action=action, by=by, digest_before=digest_before, arguments_before=action.arguments,
        bases_before=action.bases, script_before=action.script, digest=digest, arguments=dict(proposal.arguments),
        bases=dict(proposal.bases), script=proposal.script,
    )  # fmt: skip
    uses = (PayloadUse(action=action, sha256=sha256, size=size) for sha256, size in proposal.payloads().items())
    PayloadUse.objects.bulk_create(uses, ignore_conflicts=True)
    _tell(action, by, digest_before=digest_before, digest=digest, approvals_reset=reset)
    action.refresh_from_db()
    return action


def _tell(action: Action, by: Member, **told: Any) -> None:
    with ledger.opened(action.workspace_id) as opened:
        changes.record(opened, subject="action", subject_id=action.pk, agent_id=action.agent_id or "", status="pending")
        actor = audit.Actor("member", by.pk)
        audit.link(opened, actor=actor, event="action.edited", subject_id=action.pk, tool=action.tool, **told)
