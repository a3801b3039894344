"""A dry run: what the rules of now, or with one more or another, would have done to the last calls of agents.

Must never change anything, and never count a call that it cannot judge as let through.
"""

import logging
from collections import Counter
from dataclasses import dataclass, replace

from approvals.models import Action
from approvals.policy import Verdict
from console.workspaces.models import Workspace

from . import finding, judging
from .models import TOOLS, Rule

LAST = 100
_log = logging.getLogger(__name__)
_LOST = Verdict("ask", "rule", "Asked because what it was is not kept any more.")


@dataclass(frozen=True)
class Replayed:
    action: Action
    verdict: Verdict

    @property
    def names(self) -> set[str]:
        """The rules that would have decided it."""
        return {str(each["rule"]) for each in self.verdict.under if "rule" in each}


def replay(workspace: Workspace, *, candidate: Rule | None = None, last: int = LAST) -> list[Replayed]:
    """Newest first. `candidate`: a rule as it would be, in the place of the one with its id; not saved. Grants are left
    out: they end by themselves."""
    rules = [rule for rule in Rule.objects.in_force().filter(workspace=workspace) if rule != candidate]
    rules += [candidate] if candidate else []
    actions = Action.objects.filter(workspace=workspace, agent__isnull=False, tool__in=TOOLS)
    return [_replayed(action, rules) for action in actions.order_by("-created_at")[:last]]


def counts(found: list[Replayed]) -> dict[str, int]:
    """`{"allow": 14, "deny": 2, "ask": 84}`."""
    counted = Counter(each.verdict.effect for each in found)
    return {effect: counted[effect] for effect in ("allow", "deny", "ask")}


def _replayed(action: Action, rules: list[Rule]) -> Replayed:
    over = [finding.standing(rule) for rule in rules if _is_over(rule, action)]
    try:
        return Replayed(action, judging.judge(asked(action).call, over))
    except FileNotFoundError:
        return Replayed(action, _LOST)
    except Exception:
        _log.exception("The dry run could not judge action %s", action.pk)
        return Replayed(action, replace(finding.FAILED))


def asked(action: Action) -> finding.Asked:
    return finding.Asked(**{name: getattr(action, name) for name in finding.Asked.__dataclass_fields__})


def _is_over(rule: Rule, action: Action) -> bool:
    if rule.agent_id not in (None, action.agent_id) or rule.tool != action.tool:
        return False
    return rule.conversation in ("", action.conversation)
