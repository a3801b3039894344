"""Whether a call asks. Pure: plain data in, verdict out; the strictest wins, and what no rule allows asks."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["command", "write", "read"]
NEVER_ASK = {"stop": "Stopping never asks."}
ALWAYS_ASK = {"unseal": "Asked because lifting the seal of a protected file always asks."}
WHAT = {"run": "this line", "write": "this write", "unseal": "this unsealing"}


@dataclass(frozen=True)
class Verdict:
    """`ask` needs a person; `allow` was decided by `by` (rule, system); `why` is a sentence for the card."""

    effect: Literal["allow", "ask"]
    by: str
    why: str


def judge(*, kind: Kind, tool: str, gated: bool, mode: str) -> Verdict:
    """`gated` is False for a workspace key, which is the programmatic door; `mode` is the agent's for this kind."""
    if kind == "read":
        return Verdict("allow", "system", NEVER_ASK.get(tool, "Reads never ask."))
    if not gated:
        return Verdict("allow", "system", "Calls by workspace keys are recorded, not gated.")
    if tool in ALWAYS_ASK:
        return Verdict("ask", "rule", ALWAYS_ASK[tool])
    if mode == "never":
        return Verdict("allow", "rule", f"Agent Tools say that a {kind} by this agent never asks.")
    if mode == "always":
        return Verdict("ask", "rule", f"Asked because Agent Tools say that every {kind} by this agent asks.")
    return Verdict("ask", "rule", f"Asked because no rule allows {WHAT.get(tool, 'this')}.")
