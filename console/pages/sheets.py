"""The sheets of a card: every argument that the digest binds, whole. What no sheet and no fact shows is shown as JSON.

Text of agents is drawn here by the one drawing function. Raises Undrawable for what cannot be shown whole.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.safestring import SafeString

from approvals import draw
from approvals.draw import Survey
from approvals.models import Action
from sandboxes.models import Command
from sandboxes.toolsets import run
from sandboxes.toolsets.two import edit

from . import bash, diff
from . import draw as markup
from .marks import Mark
from .texts import Undrawable, is_text, kept_text, text_of
from .words import number


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


def of(action: Action, anchor: str = "change") -> Iterator[Sheet]:
    # What a sheet or a fact shows is taken out of `rest`; what is left is shown as it is, so nothing is ever missing.
    rest = dict(action.arguments)
    if action.tool == "run":
        rest["env"] = action.environment
        yield from _command(rest)
        yield from _script(action)
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
        yield _file(rest, action.bases, anchor)
    elif action.tool == "edit" and edit.BECOMES in action.bases:
        yield from _edited(action, rest, anchor)
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


def _script(action: Action) -> Iterator[Sheet]:
    """The text of the file that it runs, where the digest binds that."""
    if (bound := action.script) is None:
        return
    about = ["the script that this runs, and no other", "bound by its hash, what it loads is not"]
    named = run.script_of(action.arguments)
    if not run.is_straight(action.arguments, named, bound["path"]):
        word = draw.one_line(named.word)
        about.append(f"named by this path when it runs, since a link or `..` leads here from {word}")
    content = text_of({"sha256": bound["sha256"], "size": bound["size"]})
    yield sheet(draw.one_line(bound["path"]), "End of script", about, content)


def _input(action: Action, rest: dict[str, Any]) -> Iterator[Sheet]:
    """What is sent, and to what: input means nothing without the program that reads it."""
    data, command_id = rest.pop("data"), str(rest.pop("id"))
    about = [f"to {draw.one_line(command_id)}"] + (["then its end"] if rest.pop("eof") else [])
    if not isinstance(data, str) and not is_text(data):
        yield Sheet("Input", "End of input", [*about, *_binary(data)])
    else:
        yield sheet("Input", "End of input", about, text_of(data))
    command = Command.objects.get(pk=command_id, sandbox_id=action.sandbox_id)
    read_by = dict(Action.objects.get(pk=command.action_id).arguments)
    for each in _command({name: read_by[name] for name in read_by if name not in ("env", "stdin")}):
        yield replace(each, name="Command that reads it")


def _binary(content: Mapping[str, Any]) -> list[str]:
    return ["binary, shown by size and hash", number(int(content["size"]), "byte"), f"SHA-256 {content['sha256']}"]


def _file(rest: dict[str, Any], bases: Mapping[str, str | None], anchor: str) -> Sheet:
    path, content, mode = str(rest.pop("path")), rest.pop("content"), rest.pop("mode", None)
    if path in bases and rest.get("version") == str(bases[path] or "")[:12]:
        rest.pop("version")  # it says what `_replaces` says
    about = [_replaces(path, bases)] + ([f"mode {mode:04o}"] if mode is not None else [])
    name = draw.one_line(path)
    if not isinstance(content, str) and "sha256" not in content:  # a member's: nobody had to look at it first
        return Sheet(name, "End of file", [*about, "streamed, so it was not kept; the result has its size and hash"])
    if not isinstance(content, str) and not is_text(content):
        return Sheet(name, "End of file", about + _binary(content))
    old = kept_text(bases.get(path))
    return (
        sheet(name, "End of file", about, text_of(content))
        if old is None
        else _diff(name, about, old, text_of(content), anchor)
    )


def _edited(action: Action, rest: dict[str, Any], anchor: str) -> Iterator[Sheet]:
    """What it makes of the file, which the digest binds; its edits say the same in an agent's way."""
    before = Action.objects.filter(pk=action.parent_action).first() if "carried_over" in action.flags else None
    path, _, _ = str(rest.pop("path")), rest.pop("version"), rest.pop("edits")
    yield _change(draw.one_line(path), path, action, anchor)
    if before is not None:
        yield _change(f"{draw.one_line(path)}, as approved in {before.pk}", path, before, "change-before")


def _change(name: str, path: str, action: Action, anchor: str) -> Sheet:
    """From one kept text to the other. Raises Undrawable."""
    old, new = (kept_text(action.bases.get(side)) for side in (path, edit.BECOMES))
    if old is None or new is None:
        raise Undrawable("What it would change is no text that can be shown here. It can only be denied.")
    return _diff(name, [_replaces(path, action.bases)], old, new, anchor)


def _diff(name: str, about: list[str], old: str, new: str, anchor: str) -> Sheet:
    rows = diff.rows(old, new)
    table, about = diff.table(rows, anchor), [*about, diff.counts(rows)]
    survey = draw.survey(new)
    if draw.ends_in_crlf(old) and draw.ends_in_crlf(new):  # drawn all the same; any other U+000D stays one that hides
        about = [*about, "CRLF line endings"]
        survey = replace(draw.survey(new.replace("\r\n", "\n")), size_bytes=survey.size_bytes)
    return Sheet(name, "End of file", about, diff=table, anchor=anchor, survey=survey)


def _replaces(path: str, bases: Mapping[str, str | None]) -> str:
    if path not in bases:
        return "replaces what is there"
    return f"replaces version {str(bases[path])[:12]}" if bases[path] else "new file"


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
