"""What became of an action, in words for people: the state, who decided, what was printed.

Reads output from its files, at most SHOWN_BYTES of each stream; the rest is a download. Must never say that something
ran when nobody knows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from approvals.models import Action, Decision
from console.workspaces.models import Member
from sandboxes import outputs
from sandboxes.models import Command
from sandboxes.toolsets import COMMANDS

from . import words

SHOWN_BYTES = 64 << 10
STATES: dict[str, tuple[str, str, str]] = {
    "pending": ("wait", "hourglass", "waiting"),
    "approved": ("go", "check", "approved, starting"),
    "running": ("live", "circle-dot", "running"),
    "succeeded": ("go", "circle-check", "done"),
    "failed": ("stop", "circle-x", "failed"),
    "unknown": ("wait", "circle-question-mark", "unknown"),
    "denied": ("stop", "ban", "denied"),
    "expired": ("", "timer", "expired"),
    "cancelled": ("", "circle-slash", "cancelled"),
    "superseded": ("", "circle-slash", "superseded"),
}
DONE = {"publish": "kept", "write": "written", "edit": "edited", "stdin": "sent", "unseal": "unsealed"}
LOST = "It started, and the host was lost before its end was known. It is never run again by itself."
NOW = {
    "approved": "It starts as soon as its sandbox is ready.",
    "running": "It is running.",
    "failed": "It failed.",
    "unknown": "Nobody knows how it ended.",
}
ENDED_UNDECIDED = {"cancelled": "This was taken back", "superseded": "This was no longer what was asked"}


@dataclass
class Fate:
    """A badge: level, icon and word."""

    level: str
    icon: str
    word: str


@dataclass
class Stream:
    name: str
    head: str
    left_out: int
    tail: str
    total_bytes: int


def commands_of(actions: Iterable[Action]) -> dict[str, Command]:
    """Of those in the background, by action: their start is not their end."""
    ids = [action.pk for action in actions if _is_in_background(action)]
    return {command.action_id: command for command in Command.objects.filter(action_id__in=ids)} if ids else {}


def _is_in_background(action: Action) -> bool:
    return action.status == "succeeded" and bool((action.result or {}).get("background"))


def fate(action: Action, command: Command | None = None) -> Fate:
    """`command` is that of an action in the background, as `commands_of` has it."""
    if command is not None and _is_in_background(action):
        return _of_command(command)
    level, icon, word = STATES[action.status]
    result = action.result or {}
    if action.status == "succeeded" and "exit_code" in result:
        good = result["exit_code"] == 0
        return Fate("go" if good else "stop", icon if good else "circle-x", exit_words(result))
    if action.status == "succeeded":
        word = "started" if result.get("background") else DONE.get(action.tool, word)
    return Fate(level, icon, word)


def _of_command(command: Command) -> Fate:
    if command.status == "running":
        return Fate(*STATES["running"])
    good = command.status == "exited" and command.exit_code == 0
    return Fate("go" if good else "stop", "circle-check" if good else "circle-x", _how(command))


def _how(command: Command) -> str:
    """`exit 0`, `stopped, exit 143`, `lost`."""
    parts = [] if command.status == "exited" else [command.status.replace("_", " ")]
    parts += [f"exit {command.exit_code}"] if command.exit_code is not None else []
    return ", ".join(parts) or command.status


def exit_words(result: dict[str, Any]) -> str:
    return f"timed out, exit {result['exit_code']}" if result.get("timed_out") else f"exit {result['exit_code']}"


def headline(action: Action, *, viewer: Member, decision: Decision | None) -> str:
    """`Approved by Ines`, `Denied by you`, `Nobody decided`."""
    if decision:
        who = "you" if decision.by_id == viewer.pk else str(decision.by)
        return f"{'Approved' if decision.verdict == 'approve' else 'Denied'} by {who}"
    return {
        "expired": "Nobody decided",
        "cancelled": "Halted" if (action.error or {}).get("code") == "halted" else "Taken back",
        "superseded": "No longer what was asked",
        "pending": "Waits for a person",
    }.get(action.status, "Let through")


def said(action: Action, command: Command | None) -> str:
    """What happened, in words of ours alone: nothing of an agent's is in them, so they are not drawn. `command`: as for
    `fate`."""
    result = action.result or {}
    if action.status == "succeeded" and "duration_ms" in result:
        return f"Ran {words.duration(result['duration_ms'])}.{_found(result)}"
    if action.status == "succeeded" and result.get("background"):
        return _in_background(command)
    if action.status == "succeeded" and action.tool in ("write", "edit"):
        size = result.get("size", 0)
        return f"{words.number(size, 'byte')} {'is' if size == 1 else 'are'} in place."
    return NOW["approved"] if action.status == "approved" else ""


def _found(result: dict[str, Any]) -> str:
    """Files under protected names that it made. Their paths are the agent's words: the audit log has them."""
    found = result.get("protected", [])
    if not found:
        return ""
    sealed = sum(bool(each.get("sealed")) for each in found)
    made = words.number(len(found) + int(result.get("protected_more", 0)), "protected file")
    return f" It made {made}; {sealed} of them {'is' if sealed == 1 else 'are'} sealed."


def _in_background(command: Command | None) -> str:
    if command is None or command.status == "running":
        return "It runs in the background."
    return f"It ran in the background: {_how(command)}."


def sentence(action: Action) -> str:
    """What else is to be said of its end, which may hold words of an agent."""
    if action.status == "failed":
        return str((action.error or {}).get("detail", action.end_reason))
    if action.status == "expired" and action.start_by is None and action.expires_at:
        hours = round((action.expires_at - action.created_at) / timedelta(hours=1))
        return f"Expired after {words.number(hours, 'hour')}. It was not run, and this is not a denial."
    return LOST if action.status == "unknown" else action.end_reason


def streams(actions: Iterable[Action]) -> dict[str, list[Stream]]:
    """By action, what it printed so far; nothing for what printed nothing or never ran."""
    ids = [action.pk for action in actions if action.tool in COMMANDS and action.started_at]
    begun = Command.objects.filter(action_id__in=ids).values_list("action_id", flat=True) if ids else ()
    found = {action_id: [_stream(action_id, name) for name in ("stdout", "stderr")] for action_id in begun}
    return {action_id: [each for each in both if each.total_bytes] for action_id, both in found.items()}


def _stream(action_id: str, name: Any) -> Stream:
    kept = outputs.read(action_id, name)
    half = SHOWN_BYTES // 2
    if not kept.truncated and len(kept.content) <= SHOWN_BYTES:
        return Stream(name, _text(kept.content), 0, "", kept.total_bytes)
    tail = kept.tail if kept.tail else kept.head
    return Stream(name, _text(kept.head[:half]), kept.total_bytes - 2 * half, _text(tail[-half:]), kept.total_bytes)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def lost_race(action: Action, *, mine: Member, mine_at: datetime, decision: Decision | None) -> str:
    """`Ines approved this 3 seconds before you. It is running.`"""
    if decision is None:
        return f"{overtaken(action, mine=mine, decision=None)} It was not run."
    gap = max(0, round((mine_at - decision.at).total_seconds()))
    length = words.number(gap, "second") if gap < 60 else words.span(timedelta(seconds=gap))
    when = "already" if decision.by_id == mine.pk else f"{length} before you"
    return f"{_who_did(decision, mine)} this {when}. {_now(action)}"


def _now(action: Action) -> str:
    if action.status == "succeeded":
        found = fate(action, commands_of([action]).get(action.pk))
        if found.level == "live":
            return NOW["running"]
        return f"It ran: {found.word}." if action.tool in COMMANDS else "It is done."
    return NOW.get(action.status, "It was not run.")


def overtaken(action: Action, *, mine: Member, decision: Decision | None) -> str:
    """For whoever still has the card open and writes: `Ines approved this before you.`"""
    if decision:
        return f"{_who_did(decision, mine)} this before you."
    return f"{ENDED_UNDECIDED.get(action.status, 'This expired')} before you decided."


def _who_did(decision: Decision, mine: Member) -> str:
    who = "You" if decision.by_id == mine.pk else str(decision.by)
    return f"{who} {'approved' if decision.verdict == 'approve' else 'denied'}"
