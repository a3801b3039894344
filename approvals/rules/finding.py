"""What is in force over a call, and its verdict. The gate asks here, inside its own transaction.

Must never let a call through because judging it failed: that denies, and is in the log.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from django.db.models import F
from django.utils import timezone

from approvals import memory, payloads
from approvals.policy import Verdict
from console.workspaces import audit

from . import judging, trust
from .judging import Call, Standing
from .models import TOOLS, Grant, Rule

_log = logging.getLogger(__name__)
FAILED = Verdict("deny", "system", "Judging this call by the workspace's rules failed, so it was denied. It is logged.")


@dataclass(frozen=True)
class Asked:
    """What an agent wants, and where: of a proposal, or of an action."""

    workspace_id: str
    agent_id: str
    conversation: str
    sandbox_id: str
    tool: str
    arguments: Mapping[str, Any]
    profile: Mapping[str, Any]

    @property
    def call(self) -> Call:
        """A line that is kept elsewhere for its length is read, up to where one can be judged."""
        arguments = dict(self.arguments)
        line = arguments.get("command")
        if isinstance(line, Mapping) and line["size"] <= judging.LINE_BYTES:
            arguments["command"] = payloads.content(line).decode()
        env = {**(self.profile.get("env") or {}), **(arguments.get("env") or {})}
        return Call(self.tool, arguments, env)


def judge(asked: Asked, *, only_tighter: bool = False) -> Verdict:
    """`only_tighter`: for what a person has approved or always decides; nothing is allowed by it."""
    if asked.tool not in TOOLS:
        return judging.no_rule(asked.tool)
    try:
        standing = rules_over(asked.workspace_id, asked.agent_id, asked.conversation, asked.tool)
        if only_tighter or memory.suspended(asked.agent_id):
            standing = [each for each in standing if each.effect != "allow"]
        else:
            standing += grants_over(asked)
        if not standing:
            return judging.no_rule(asked.tool)
        call = asked.call
        verdict = judging.judge(call, standing)
        return trust.check(call, verdict, sandbox_id=asked.sandbox_id) if verdict.effect == "allow" else verdict
    except Exception:
        _log.exception("Judging a call of %s by rules failed; it is denied", asked.agent_id)
        return FAILED


def rules_over(workspace_id: str, agent_id: str, conversation: str, tool: str) -> list[Standing]:
    found = Rule.objects.in_force().over(agent_id, conversation).filter(workspace_id=workspace_id, tool=tool)
    return list(map(standing, found.order_by("created_at")))


def grants_over(asked: Asked) -> list[Standing]:
    """Given under the Agent Tools of now: who changes those takes back what was granted under the old."""
    where = {name: getattr(asked, name) for name in ("agent_id", "conversation", "sandbox_id", "tool")}
    found = Grant.objects.in_force().filter(**where).select_related("action").order_by("created_at")
    version = asked.profile.get("settings_version")
    return [_granted(grant) for grant in found if grant.action.profile.get("settings_version") == version]


def standing(rule: Rule) -> Standing:
    effect = cast(Literal["allow", "ask", "deny"], rule.effect)
    return Standing(rule.pk, rule.version, effect, rule.tool, rule.pattern, rule.note, pack=rule.pack)


def _granted(grant: Grant) -> Standing:
    exactly = tuple(tuple(words) for words in grant.exactly)
    return Standing(grant.pk, 1, "allow", grant.tool, exactly=exactly, arguments=grant.action.arguments)


def actor(verdict: Verdict) -> audit.Actor:
    """Who is said to have done it."""
    return audit.Actor("rule", verdict.under[0]["rule"]) if verdict.under else audit.SYSTEM


def used(verdict: Verdict) -> None:
    """Counted in the transaction of what it decided."""
    for name, model in (("rule", Rule), ("grant", Grant)):
        if ids := [each[name] for each in verdict.under if name in each]:
            rows: Any = model
            rows.objects.filter(pk__in=ids).update(use_count=F("use_count") + 1, last_used_at=timezone.now())
