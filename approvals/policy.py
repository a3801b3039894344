"""Whether a call asks. Pure: plain data in, verdict out; the strictest wins, and what no rule allows asks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["command", "write", "read"]
NEVER_ASK = {"stop": "Stopping never asks."}
ALWAYS_ASK = {"unseal": "Asked because lifting the seal of a protected file always asks."}


@dataclass(frozen=True)
class Verdict:
    """`ask` needs a person; the others were decided by `by` (rule, grant, system); `why` is a sentence for the card,
    and what the agent is told of a denial. `under`: which rules, in which version, and which grants."""

    effect: Literal["allow", "ask", "deny"]
    by: str
    why: str
    under: tuple[Mapping[str, Any], ...] = ()
    is_quiet: bool = False  # all that let it through is known to change no file that a program would run


def judge(*, kind: Kind, tool: str, gated: bool, mode: str, by_rules: Callable[[bool], Verdict]) -> Verdict:
    """`gated` is False for a workspace key, which is the programmatic door; `mode` is the agent's for this kind.
    `by_rules(True)` is what those rules say that tighten: what always asks a person can be denied by one."""
    if kind == "read":
        return Verdict("allow", "system", NEVER_ASK.get(tool, "Reads never ask."))
    if not gated:
        return Verdict("allow", "system", "Calls by workspace keys are recorded, not gated.")
    if tool in ALWAYS_ASK:
        return Verdict("ask", "rule", ALWAYS_ASK[tool])
    if mode == "never":
        return Verdict("allow", "rule", f"Agent Tools say that a {kind} by this agent never asks.")
    found = by_rules(mode == "always")
    if mode == "always" and found.effect != "deny":
        return Verdict("ask", "rule", f"Asked because Agent Tools say that every {kind} by this agent asks.")
    return found
