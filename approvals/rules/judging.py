"""Whether rules and grants let a call through. Pure: plain data in, verdict out.

The strictest wins: one that denies, then one that asks, then those that allow; what none allows asks. A line is
allowed when each of its commands is; it is denied when anything that it may run is. Must never let through what it
cannot read whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from approvals import shell
from approvals.policy import Verdict

from . import patterns, trusting

LINE_BYTES = 64 << 10
"""So far a line is read for what denies; nothing allows one of more than 8 KiB."""
WHAT = {"run": "this line", "write": "this write", "edit": "this edit"}


@dataclass(frozen=True)
class Standing:
    """A rule in force, or a grant: then `pattern` is empty, and it allows the path that `exactly` names, or the one
    command whose `arguments` are these."""

    id: str
    version: int
    effect: Literal["allow", "ask", "deny"]
    tool: str
    pattern: str = ""
    note: str = ""
    exactly: tuple[tuple[str, ...], ...] = ()
    pack: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def is_grant(self) -> bool:
        return bool(self.exactly)

    @property
    def named(self) -> dict[str, Any]:
        """As the action and the audit log name it."""
        return {"grant": self.id} if self.is_grant else {"rule": self.id, "version": self.version}


@dataclass(frozen=True)
class Call:
    """`environment`: all that its caller set, with it or with its sandbox."""

    tool: str
    arguments: Mapping[str, Any]
    environment: Mapping[str, str]


def judge(call: Call, standing: Sequence[Standing]) -> Verdict:
    about = [each for each in standing if each.tool == call.tool]
    return _command(call, about) if call.tool == "run" else _file(call, about)


def asks(why: str, *used: Standing) -> Verdict:
    return Verdict("ask", "rule", f"Asked because {why}", tuple(each.named for each in used))


def no_rule(tool: str) -> Verdict:
    return asks(f"no rule allows {WHAT.get(tool, 'this')}.")


def denies(rule: Standing) -> Verdict:
    why = rule.note or "A rule of this workspace denies this."
    return Verdict("deny", "rule", why, (rule.named,))


def allows(used: Sequence[Standing]) -> Verdict:
    found = list(dict.fromkeys(used))
    by = "grant" if any(each.is_grant for each in found) else "rule"
    words = "a grant" if by == "grant" else "a rule"
    is_quiet = all(each.pack in trusting.QUIET_PACKS for each in found)
    return Verdict("allow", by, f"Let through by {words}.", tuple(each.named for each in found), is_quiet)


def _file(call: Call, about: Sequence[Standing]) -> Verdict:
    path = str(call.arguments["path"])
    named = [each for each in about if each.pattern and patterns.names_path(each.pattern, path)]
    if stricter := _stricter(named):
        return stricter
    for each in about:
        if each.effect == "allow" and _allows_path(each, path):
            why = trusting.why_not_unseen(path)
            return asks(why) if why else allows([each])
    return no_rule(call.tool)


def _allows_path(each: Standing, path: str) -> bool:
    return (path,) in each.exactly if each.is_grant else patterns.allows_path(each.pattern, path)


def _stricter(named: Sequence[Standing]) -> Verdict | None:
    for effect in ("deny", "ask"):
        for each in named:
            if each.effect == effect:
                return denies(each) if effect == "deny" else asks("a rule says so.", each)
    return None


def read(arguments: Mapping[str, Any]) -> shell.Read | None:
    """None for a line that is too long to be judged: its text is elsewhere."""
    if "argv" in arguments:
        return shell.read_argv(tuple(arguments["argv"]))
    line = arguments["command"]
    return shell.read(line) if isinstance(line, str) else None


def _command(call: Call, about: Sequence[Standing]) -> Verdict:
    line = read(call.arguments)
    if line is None:
        return asks("no rule can allow so long a line.")
    tighter = [each for each in about if each.effect != "allow"]
    named = [each for each in tighter if any(patterns.names_command(each.pattern, argv) for argv in line.reached)]
    if stricter := _stricter(named):
        return stricter
    if len(tighter) == len(about):
        return no_rule(call.tool)
    if why := why_no_rule(call, line):
        return asks(f"no rule can allow this line: {why[:1].lower()}{why[1:]}")
    used = [_allowing(each.argv, about) for each in line.plain or ()]
    if used and all(used):
        return allows([each for each in used if each])
    granted = next((each for each in about if each.is_grant and is_again(each.arguments, call.arguments)), None)
    return allows([granted]) if granted else no_rule(call.tool)


def why_no_rule(call: Call, line: shell.Read) -> str:
    """A sentence when no rule or grant may let this through, whatever it says."""
    if line.plain is None or not line.plain:
        return line.why_not or "It runs no plain command."
    if call.environment:
        return "It is given variables of its own."
    if call.arguments.get("stdin"):
        return "It is given input."
    cwd = str(call.arguments.get("cwd", ""))
    if cwd != "/work" and not cwd.startswith("/work/") or ".." in cwd.split("/"):
        return "It does not run below /work."
    return next(filter(None, (shell.never_by_rule(each.argv) for each in line.plain)), "")


def _allowing(argv: tuple[str, ...], about: Sequence[Standing]) -> Standing | None:
    """Rules alone: a grant is of a whole line, whose parts do something else in another place or order."""
    for each in about:
        if each.effect == "allow" and each.pattern and patterns.allows_command(each.pattern, argv):
            return each
    return None


def is_again(granted: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """The same line or words in the same place and manner; how long it may take is no part of what it does."""
    names = (granted.keys() | asked.keys()) - {"timeout_s"}
    return bool(granted) and all(granted.get(name) == asked.get(name) for name in names)
