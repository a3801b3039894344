"""The flags of a card: each a word and why it is there. They explain; they never lower a verdict."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from posixpath import normpath

from approvals import draw
from approvals.models import Action
from console.workspaces.models import Member
from sandboxes import protection

from .sheets import Sheet

_log = logging.getLogger(__name__)


@dataclass
class Flag:
    level: str  # stop, wait or nothing
    icon: str
    word: str
    why: str


FLAGS = {
    "network": ("wait", "globe", "Network", "It may reach hosts outside."),
    "deletes": ("wait", "trash-2", "Deletes", "It removes files."),
    "writes_outside": ("wait", "folder-output", "Writes outside", "It writes outside /work."),
    "piped_shell": ("stop", "terminal", "Pipe into a shell", "It runs whatever another program prints."),
    "protected_path": ("stop", "lock", "Protected path", "It names a path that is never written."),
    "exempt_path": ("stop", "lock-open", "Protected, exempt", "It is protected; this agent may write it for a time."),
    "unpinned_code": ("wait", "code-xml", "Unpinned code", "It runs code of the workspace, whose text is not here."),
    "first_time": ("", "sparkles", "First time", "This agent never ran this here."),
    "hidden_characters": ("stop", "eye-off", "Hidden characters", "It holds characters that show nothing."),
    "lookalikes": ("stop", "shield-alert", "Look-alike characters", "It holds characters that pass for others."),
    "binary": ("wait", "binary", "Binary", "It is no text, so it is shown by size and hash."),
    "large": ("wait", "triangle-alert", "Large", "It is too long to be looked through for hidden characters."),
    "carried_over": ("wait", "history", "Comes back", "It was approved for a file that changed elsewhere meanwhile."),
    "unseen_changes": (
        "stop", "eye-off", "Unseen changes",
        "Files of this sandbox were written without anybody having seen them; approving this trusts them.",
    ),
    "after_denial": ("wait", "history", "After denial", "A proposal of this conversation was denied before."),
}  # fmt: skip


def of(action: Action, sheets: list[Sheet]) -> list[Flag]:
    """Never raises. What the drawing found says more than a word of the action's, and comes first."""
    found = [*_drawn_flags(sheets)]
    found += _protected(action)
    known = {flag.word for flag in found}
    return found + [flag for flag in map(flag_of, action.flags) if flag.word not in known]


def _drawn_flags(sheets: list[Sheet]) -> Iterator[Flag]:
    kinds = (("hidden", "eye-off", "Hidden characters"), ("lookalikes", "shield-alert", "Look-alike characters"))
    for found in (sheet.survey for sheet in sheets if sheet.survey):
        for kind, icon, word in kinds:
            if chars := getattr(found, kind):
                yield Flag("stop", icon, word, f"{sum(chars.values())}: {draw.named(chars, found.first_lines)}.")


def _protected(action: Action) -> Iterator[Flag]:
    """What a flag's word alone would not say: what kind of file it is, and who exempted it. Never raises."""
    try:
        if action.tool == "unseal":
            yield Flag("stop", "lock-open", "Protected file", _unsealed(action))
        elif protection.EXEMPT in action.flags and (why := _exempted(action)):
            yield Flag("stop", "lock-open", FLAGS[protection.EXEMPT][2], why)
    except Exception:
        _log.exception("Saying how action %s is protected failed", action.pk)


def _unsealed(action: Action) -> str:
    what = protection.of(action.agent).protection.finds(str(action.arguments["path"]))
    kind = (
        f"{draw.one_line(what[:1].upper() + what[1:])}, by its path."
        if what
        else "Its name does not say why; its content may."
    )
    return f"{kind} Approved, commands may change or delete it until the sandbox starts again."


def _exempted(action: Action) -> str:
    """As it stands in the settings now; nothing when it is over."""
    path = normpath(str(action.arguments["path"]))
    for each in action.agent.protected_exempt if action.agent else ():
        if each["path"] == path:
            by = Member.objects.filter(pk=each["by"]).select_related("user").first()
            until = datetime.fromisoformat(each["expires_at"]).astimezone(UTC)
            why = f" “{draw.one_line(each['reason'])}”" if each["reason"] else ""
            who = draw.one_line(str(by)) if by else "An admin"
            return f"{who} exempted it until {until:%-d %B, %H:%M} UTC.{why}"
    return ""


def flag_of(word: object) -> Flag:
    known = FLAGS.get(str(word))
    return Flag(*known) if known else Flag("wait", "triangle-alert", draw.one_line(str(word).replace("_", " ")), "")
