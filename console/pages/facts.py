"""What stands beside the text of a card: what it may reach and change, as whom, for how long, and what it needs.

Plain words; the template draws them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from approvals import votes
from approvals.models import Action

from .words import listed, number


def of(action: Action) -> Iterator[tuple[str, str]]:
    profile, arguments = action.profile, action.arguments
    network = str(profile.get("network", "none"))
    yield "Network", "public, jailed" if network == "public" else network
    if action.tool == "run":
        yield "Can change", "/work, home"
        yield "Runs as", f"{profile.get('user', 'agent')}, {_for_how_long(arguments)}"
        ended = "stays open" if arguments.get("background") else "empty"
        env = "set, see below" if action.environment else "default"
        yield "Env, stdin", f"{env}, {'given, see below' if arguments.get('stdin') else ended}"
    elif action.tool == "install":
        yield "Can change", "all of the sandbox's system"
        yield "Runs as", f"root without capabilities, {_for_how_long(arguments)}"
    elif action.tool == "unseal":
        yield "Allows", "commands to change this file; tools still never write it"
        yield "Ends", "when the sandbox starts again"
    elif action.tool in ("write", "edit"):
        yield "Can change", str(arguments["path"])
        yield "Runs as", str(profile.get("user", "agent"))
    if action.status == "pending":
        yield "Needs", number(action.approvals_needed, "approval")
    elif given := [str(vote.by) for vote in votes.given(action)]:
        yield "Approved", f"by {listed(given)}"


def _for_how_long(arguments: Mapping[str, Any]) -> str:
    limit_s = arguments["timeout_s"]
    return "until it is stopped or the sandbox ends" if limit_s is None else f"up to {limit_s:g} s"
