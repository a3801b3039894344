"""What a card says of an action: every argument that the digest binds is on it, whole, or the card can only be denied.

Plain values for templates; text of agents stays text here, or is drawn by `draw.sheet`. Must never fail: what cannot be
shown makes a card without sheets, which nobody can approve.
"""

import codecs
import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from posixpath import normpath
from typing import Any

from django.utils.safestring import SafeString

from approvals import draw, payloads
from approvals.draw import Survey
from approvals.models import Action
from console.workspaces.models import Member
from sandboxes import protection
from sandboxes.models import Command
from sandboxes.toolsets.two import edit

from . import bash, diff
from . import draw as markup
from .marks import Mark
from .words import number

DRAWN_BYTES = 2 << 20  # beyond this a page is too heavy to read in
UNDRAWABLE = "Drawing this text failed, so nobody can see what would run. It can only be denied."
_log = logging.getLogger(__name__)


class Undrawable(Exception):
    """A text that cannot be shown whole; the message says why, for the card."""


@dataclass
class Sheet:
    """A text that would run or be written. Made means drawn: `html` is the whole of it."""

    name: str
    end: str
    about: list[str]
    html: SafeString = SafeString("")
    diff: SafeString = SafeString("")  # instead of html: rows of a table
    anchor: str = "change"  # how the ids of its changes begin
    survey: Survey | None = None

    @property
    def counts(self) -> str:
        return counts(self.survey) if self.survey else ""


@dataclass
class Flag:
    level: str  # stop, wait or nothing
    icon: str
    word: str
    why: str


@dataclass
class Matter:
    wants: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    sheets: list[Sheet] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    undrawable: str = ""


WANTS = {
    "run": "wants to run a command",
    "install": "wants to install system packages",
    "stdin": "wants to send input to a running command",
    "write": "wants to write a file",
    "edit": "wants to change a file",
    "publish": "wants to keep a copy of a file",
    "unseal": "wants a protected file unsealed",
}
FLAGS = {
    "network": ("wait", "globe", "Network", "It may reach hosts outside."),
    "deletes": ("wait", "trash-2", "Deletes", "It removes files."),
    "protected_path": ("stop", "lock", "Protected path", "It names a path that is never written."),
    "exempt_path": ("stop", "lock-open", "Protected, exempt", "It is protected; this agent may write it for a time."),
    "unpinned_code": ("wait", "code-xml", "Unpinned code", "It runs code of the workspace, whose text is not here."),
    "first_time": ("", "sparkles", "First time", "This agent never ran this here."),
    "hidden_characters": ("stop", "eye-off", "Hidden characters", "It holds characters that show nothing."),
    "lookalikes": ("stop", "shield-alert", "Look-alike characters", "It holds characters that pass for others."),
    "binary": ("wait", "binary", "Binary", "It is no text, so it is shown by size and hash."),
    "large": ("wait", "triangle-alert", "Large", "It is too long to be looked through for hidden characters."),
    "carried_over": ("wait", "history", "Comes back", "It was approved for a file that changed elsewhere meanwhile."),
    "after_denial": ("wait", "history", "After denial", "A proposal of this conversation was denied before."),
}


def matter(action: Action) -> Matter:
    """Never raises."""
    found = Matter(wants=WANTS.get(action.tool, f"wants to {draw.one_line(action.tool)}"))
    try:
        found.sheets, found.facts = list(_sheets(action)), list(_facts(action))
    except Undrawable as error:
        found.sheets, found.undrawable = [], str(error)
    except Exception:
        _log.exception("Drawing action %s failed; its card can only be denied", action.pk)
        found.sheets, found.undrawable = [], UNDRAWABLE
    drawn = list(_drawn_flags(found.sheets))
    known = {flag.word for flag in drawn}  # said better by who has drawn it
    found.flags = drawn + [*_protected(action)]
    known |= {flag.word for flag in found.flags}
    found.flags += [flag for flag in map(flag_of, action.flags) if flag.word not in known]
    return found


def _sheets(action: Action) -> Iterator[Sheet]:
    # What a sheet or a fact shows is taken out of `rest`; what is left is shown as it is, so nothing is ever missing.
    rest = dict(action.arguments)
    if action.tool == "run":
        rest["env"] = action.environment
        yield from _command(rest)
    elif action.tool == "install":
        rest.pop("timeout_s")
        text = "\n".join(rest.pop("packages")) + "\n"
        yield sheet("Packages", "End of packages", ["of the image's package sources"], text)
    elif action.tool == "stdin":
        yield from _input(action, rest)
    elif action.tool == "unseal":
        about = ["commands can change it until the sandbox starts again"]
        yield sheet("Protected file", "End of path", about, f"{rest.pop('path')}\n")
    elif action.tool == "write":
        yield _file(rest, action.bases)
    elif action.tool == "edit" and edit.BECOMES in action.bases:
        yield from _edited(action, rest)
    if rest:
        yield sheet("Arguments", "End of arguments", ["JSON"], _json(rest))


def _command(rest: dict[str, Any]) -> Iterator[Sheet]:
    where = f"in {draw.one_line(rest.pop('cwd'))}"
    where += ", in the background" if rest.pop("background", False) else ""
    rest.pop("timeout_s")
    if "argv" in rest:
        yield sheet("Command", "End of command", ["these words, without a shell", where], _json(rest.pop("argv")))
    else:
        command = text_of(rest.pop("command"))
        yield sheet("Command", "End of command", [f"bash {where}"], command, bash.marks(command))
    if env := rest.pop("env", None):
        yield sheet("Environment", "End of environment", ["JSON"], _json(env))
    if stdin := rest.pop("stdin", None):
        yield sheet("Standard input", "End of input", [], text_of(stdin))


def _input(action: Action, rest: dict[str, Any]) -> Iterator[Sheet]:
    """What is sent, and to what: input means nothing without the program that reads it."""
    data, command_id = rest.pop("data"), str(rest.pop("id"))
    about = [f"to {draw.one_line(command_id)}"] + (["then its end"] if rest.pop("eof") else [])
    if not isinstance(data, str) and not _is_text(data):
        yield Sheet("Input", "End of input", [*about, *_binary(data)])
    else:
        yield sheet("Input", "End of input", about, text_of(data))
    command = Command.objects.get(pk=command_id, sandbox_id=action.sandbox_id)
    read_by = dict(Action.objects.get(pk=command.action_id).arguments)
    for each in _command({name: read_by[name] for name in read_by if name not in ("env", "stdin")}):
        yield replace(each, name="Command that reads it")


def _binary(content: Mapping[str, Any]) -> list[str]:
    return ["binary, shown by size and hash", number(int(content["size"]), "byte"), f"SHA-256 {content['sha256']}"]


def _file(rest: dict[str, Any], bases: Mapping[str, str | None]) -> Sheet:
    path, content, mode = str(rest.pop("path")), rest.pop("content"), rest.pop("mode", None)
    if path in bases and rest.get("version") == str(bases[path] or "")[:12]:
        rest.pop("version")  # it says what `_replaces` says
    about = [_replaces(path, bases)] + ([f"mode {mode:04o}"] if mode is not None else [])
    name = draw.one_line(path)
    if not isinstance(content, str) and "sha256" not in content:  # a member's: nobody had to look at it first
        return Sheet(name, "End of file", [*about, "streamed, so it was not kept; the result has its size and hash"])
    if not isinstance(content, str) and not _is_text(content):
        return Sheet(name, "End of file", about + _binary(content))
    old = kept_text(bases.get(path))
    return (
        sheet(name, "End of file", about, text_of(content))
        if old is None
        else _diff(name, about, old, text_of(content))
    )


def _edited(action: Action, rest: dict[str, Any]) -> Iterator[Sheet]:
    """What it makes of the file, which the digest binds; its edits say the same in an agent's way."""
    before = Action.objects.filter(pk=action.parent_action).first() if "carried_over" in action.flags else None
    path, _, _ = str(rest.pop("path")), rest.pop("version"), rest.pop("edits")
    yield _change(draw.one_line(path), path, action)
    if before is not None:
        yield _change(f"{draw.one_line(path)}, as approved in {before.pk}", path, before, "change-before")


def _change(name: str, path: str, action: Action, anchor: str = "change") -> Sheet:
    """From one kept text to the other. Raises Undrawable."""
    old, new = (kept_text(action.bases.get(side)) for side in (path, edit.BECOMES))
    if old is None or new is None:
        raise Undrawable("What it would change is no text that can be shown here. It can only be denied.")
    return _diff(name, [_replaces(path, action.bases)], old, new, anchor)


def kept_text(sha256: str | None) -> str | None:
    """The text that would be replaced, where it was kept and is one that can be shown."""
    try:
        old = payloads.content({"sha256": sha256}) if sha256 else None
        return old.decode() if old is not None and len(old) <= DRAWN_BYTES and b"\0" not in old else None
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def _diff(name: str, about: list[str], old: str, new: str, anchor: str = "change") -> Sheet:
    rows = diff.rows(old, new)
    table, about = diff.table(rows, anchor), [*about, diff.counts(rows)]
    return Sheet(name, "End of file", about, diff=table, anchor=anchor, survey=draw.survey(new))


def _replaces(path: str, bases: Mapping[str, str | None]) -> str:
    if path not in bases:
        return "replaces what is there"
    return f"replaces version {str(bases[path])[:12]}" if bases[path] else "new file"


def _is_text(reference: Mapping[str, Any]) -> bool:
    """False only for what no editor would show: not UTF-8, or with NUL in it. Large texts are texts."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with payloads.path(reference).open("rb") as file:
            while chunk := file.read(1 << 20):
                if "\0" in decoder.decode(chunk):
                    return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def text_of(value: str | Mapping[str, Any]) -> str:
    """A text argument, fetched where it is kept by its hash and checked against it. Raises Undrawable."""
    size = len(value.encode()) if isinstance(value, str) else int(value["size"])
    if size > DRAWN_BYTES:
        raise Undrawable(
            f"{number(size, 'byte')} are too many for a page, so nobody can read all of it. It can only be denied."
        )
    if isinstance(value, str):
        return value
    content = payloads.content(value)
    if hashlib.sha256(content).hexdigest() != value["sha256"]:
        raise Undrawable("What is kept on disk is not what was proposed. It can only be denied.")
    return content.decode()


def sheet(name: str, end: str, about: list[str], text: str, marks: Sequence[Mark] = ()) -> Sheet:
    text = text_of(text)
    return Sheet(name, end, about, html=markup.sheet(text, marks), survey=draw.survey(text))


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=isinstance(value, dict)) + "\n"


def counts(found: Survey) -> str:
    """`16 lines, 669 bytes, 1 blank, 2 tabs`."""
    parts = [number(found.lines, "line"), number(found.size_bytes, "byte")]
    parts += [f"{found.blank_lines} blank"] if found.blank_lines else []
    parts += [number(found.tabs, "tab")] if found.tabs else []
    parts += [number(found.trailing_blanks, "trailing space")] if found.trailing_blanks else []
    parts += [f"{found.foreign} beyond ASCII"] if found.foreign else []
    return ", ".join(parts)


def _facts(action: Action) -> Iterator[tuple[str, str]]:
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
    yield "Needs", number(action.approvals_needed, "approval")


def _for_how_long(arguments: Mapping[str, Any]) -> str:
    limit_s = arguments["timeout_s"]
    return "until it is stopped or the sandbox ends" if limit_s is None else f"up to {limit_s:g} s"


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


def _drawn_flags(sheets: list[Sheet]) -> Iterator[Flag]:
    kinds = (("hidden", "eye-off", "Hidden characters"), ("lookalikes", "shield-alert", "Look-alike characters"))
    for each in (sheet for sheet in sheets if sheet.survey):
        for kind, icon, word in kinds:
            found: Survey = each.survey  # type: ignore[assignment]
            if chars := getattr(found, kind):
                yield Flag("stop", icon, word, f"{sum(chars.values())}: {draw.named(chars, found.first_lines)}.")
