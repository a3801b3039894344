"""One row of the queue: a short command whole, or what kind and how much, never a long one's first words."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from django.db.models import QuerySet

from approvals import draw, twins
from approvals.models import Action
from sandboxes.models import Command
from sandboxes.toolsets.two import edit

from . import bash, diff
from .fates import Fate, commands_of, fate
from .flags import Flag, flag_of
from .texts import kept_text
from .words import number

ROW_CHARS = 120
PATHS = {"read": "file-text", "list": "folder", "publish": "package", "unseal": "lock-open"}
_log = logging.getLogger(__name__)


@dataclass
class Row:
    action: Action
    icon: str
    words: str  # ours
    code: str  # the agent's, drawn by the template
    size: str
    fate: Fate
    to: str = ""  # what it is sent to
    command: str = ""  # its id while it runs in the background: the page hears of its end by that
    flags: list[Flag] = field(default_factory=list)
    looking: str = ""  # which colleagues
    twins: list[str] = field(default_factory=list)  # identical proposals that it stands for too
    items: list[str] = field(default_factory=list)  # of its plan, all that waits with it

    @property
    def label(self) -> str:
        return " ".join(filter(None, (self.words, self.code, self.to)))


@dataclass
class Group:
    """What one conversation of one agent waits for."""

    name: str
    conversation: str
    rows: list[Row]


def of(actions: Iterable[Action]) -> list[Row]:
    """In the order given; what became of those in the background is asked for once."""
    found = list(actions)
    commands, same, planned = commands_of(found), twins.ids_of(found), _planned(found)
    made = [_row(action, commands.get(action.pk)) for action in found]
    for row in made:
        row.twins = same.get(row.action.pk, [])
        row.items = planned.get(row.action.plan_id or "", []) if row.action.status == "pending" else []
    return made


def _planned(actions: list[Action]) -> dict[str, list[str]]:
    """By plan, its items that wait; one question for a whole queue."""
    plans = {action.plan_id for action in actions if action.plan_id and action.status == "pending"}
    found: dict[str, list[str]] = {}
    if plans:
        for action in Action.objects.pending().filter(plan__in=plans).order_by("plan_place"):
            found.setdefault(str(action.plan_id), []).append(action.pk)
    return found


def _row(action: Action, command: Command | None) -> Row:
    """Never raises: a row that cannot be summed up says so, its card says more."""
    try:
        icon, words, code, size = _summary(action)
    except Exception:
        _log.exception("Summing up action %s failed", action.pk)
        icon, words, code, size = "triangle-alert", f"{draw.one_line(action.tool)}, cannot be drawn", "", ""
    flags = [flag_of(word) for word in action.flags]
    running = command.pk if command and command.status == "running" else ""
    return Row(action, icon, words, code, size, fate(action, command), _to(action), running, flags)


def _to(action: Action) -> str:
    """Which command the input is for."""
    return f"to {draw.one_line(str(action.arguments.get('id', '')))}" if action.tool == "stdin" else ""


def groups(waiting: QuerySet[Action], *, most: int | None = None) -> tuple[list[Group], bool]:
    """By conversation, the one that waits longest first; within it in the order of asking. With `most`, conversations
    until there are so many rows, each of them whole; and whether that left any out."""
    by_whose: dict[tuple[str, str], list[str]] = {}
    places = waiting.order_by("created_at", "pk").values_list("pk", "agent_id", "conversation")
    for pk, agent_id, conversation in places:
        by_whose.setdefault((agent_id or "", conversation), []).append(pk)
    listed: list[list[str]] = []
    for pks in by_whose.values():
        if most is not None and sum(map(len, listed)) >= most:
            break
        listed.append(pks)
    actions = waiting.in_bulk([pk for pks in listed for pk in pks])
    found = {row.action.pk: row for row in of(actions.values())}
    batches = [[found[pk] for pk in pks if pk in found] for pks in listed]
    return [_group(batch) for batch in batches if batch], len(listed) < len(by_whose)


def _group(batch: list[Row]) -> Group:
    first = batch[0].action
    return Group(str(first.agent or "A member's key"), first.conversation, batch)


def _summary(action: Action) -> tuple[str, str, str, str]:
    arguments = action.arguments
    if action.tool == "run":
        return ("terminal", *_command(arguments["command"] if "command" in arguments else " ".join(arguments["argv"])))
    if action.tool == "install":
        names = " ".join(arguments["packages"])
        shown = names if len(names) <= ROW_CHARS else ""
        return "package", "install", shown, number(len(arguments["packages"]), "package")
    if action.tool == "write":
        content, path = arguments["content"], str(arguments["path"])
        told = len(content.encode()) if isinstance(content, str) else content["size"]
        size = "streamed" if told is None else number(told, "byte")
        new = action.bases.get(path, "unknown") is None
        return "file-plus" if new else "file-pen", "write", path, f"new, {size}" if new else size
    if action.tool == "edit":
        path = str(arguments["path"])
        size = _changes(action.bases.get(path), action.bases.get(edit.BECOMES))
        return "file-pen", "edit", path, size or number(len(arguments["edits"]), "edit")
    if action.tool in ("glob", "grep"):
        pattern = str(arguments["pattern"])
        return "search", action.tool, pattern if len(draw.one_line(pattern)) <= ROW_CHARS else "", ""
    if action.tool in PATHS:
        return PATHS[action.tool], action.tool, str(arguments["path"]), ""
    if action.tool == "stdin":
        return ("terminal", *_input(arguments["data"], eof=arguments["eof"]))
    return "circle-dot", draw.one_line(action.tool), "", ""


@lru_cache(maxsize=1024)  # both are named by their hashes, so they never change
def _changes(old: str | None, new: str | None) -> str:
    """`+1 −1`; empty where a text is not kept, or none to show."""
    before, after = kept_text(old), kept_text(new)
    return "" if before is None or after is None else diff.counts(diff.rows(before, after))


def _input(data: str | dict[str, int], *, eof: bool) -> tuple[str, str, str]:
    told = number(len(data.encode()) if isinstance(data, str) else data["size"], "byte")
    size = f"{told}, then its end" if eof else told
    if isinstance(data, dict):
        return "send input", "", size
    line = data.removesuffix("\n")
    is_short = line and "\n" not in line and len(draw.one_line(line)) <= ROW_CHARS
    return ("send", line, size) if is_short else ("send input" if data else "end the input", "", size)


def _command(command: str | dict[str, int]) -> tuple[str, str, str]:
    if isinstance(command, dict):
        return "run a long command", "", number(command["size"], "byte")
    line = command.removesuffix("\n")
    if "\n" not in line and len(draw.one_line(line)) <= ROW_CHARS:
        return "", line, "1 line"
    found, programs = draw.survey(command), _programs(command)
    size = f"{number(found.lines, 'line')}, {number(found.size_bytes, 'byte')}"
    return f"run a command{' with' if programs else ''}", programs, size


def _programs(command: str) -> str:
    """`set, cd, python3`: those that it names, each once, in order; nothing when they are not read or not so short."""
    named = dict.fromkeys(command[mark.start : mark.end] for mark in bash.marks(command) if mark.ink == "prog")
    shown = ", ".join(named)
    return shown if len(draw.one_line(shown)) <= ROW_CHARS else ""
