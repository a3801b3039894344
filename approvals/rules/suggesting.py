"""What reviewers always approved, as rules to make: "these 14 approvals would have matched; 0 denials would".

Reads decisions of people alone. Must never make a rule, and never suggest what would have let through a denied line.
"""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from approvals import shell
from approvals.models import Action
from console.workspaces.models import Agent, Workspace

from . import patterns, replay
from .keeping import kept_if_sure
from .models import Rule

WITHIN = timedelta(days=30)
LAST = 500
AT_LEAST = 3
SHOWN = 5
WITH_COMMANDS = frozenset(("git", "hg", "svn", "gh", "ruff"))


@dataclass(frozen=True)
class Suggestion:
    agent: Agent
    pattern: str
    approvals: int


def suggest(workspace: Workspace) -> list[Suggestion]:
    """Those that would have spared most approvals, of one agent each; no denial of that agent would have matched."""
    decided = Action.objects.filter(workspace=workspace, tool="run", decided_by="reviewer", agent__isnull=False)
    recent = decided.filter(decided_at__gt=timezone.now() - WITHIN).select_related("agent").order_by("-decided_at")
    by_agent: dict[Agent, list[Action]] = defaultdict(list)
    for action in recent[:LAST]:
        assert action.agent
        by_agent[action.agent].append(action)
    known = {(rule.agent_id, rule.pattern) for rule in Rule.objects.kept().filter(workspace=workspace)}
    found = [each for agent, actions in by_agent.items() for each in _of(agent, actions)]
    new = [each for each in found if not {(each.agent.pk, each.pattern), (None, each.pattern)} & known]
    return sorted(new, key=lambda each: (-each.approvals, each.pattern))[:SHOWN]


def _of(agent: Agent, actions: list[Action]) -> Iterator[Suggestion]:
    """By its approvals, whose lines are plain; a denial counts by all that it would have reached."""
    counted: Counter[str] = Counter()
    reached: set[tuple[str, ...]] = set()
    for action in actions:
        line = _read(action)
        if action.status == "denied":
            reached |= line.reached
        else:
            counted.update(line.patterns)
    for pattern, approvals in counted.items():
        fits = pattern and approvals >= AT_LEAST and not patterns.check("run", pattern, allows=True)
        if fits and not any(patterns.names_command(pattern, argv) for argv in reached):
            yield Suggestion(agent, pattern, approvals)


@dataclass(frozen=True)
class _Line:
    patterns: frozenset[str] = frozenset()  # of its commands, if it is plain
    reached: frozenset[tuple[str, ...]] = frozenset()


def _read(action: Action) -> _Line:
    """Nothing of a line that is not kept any more."""
    try:
        arguments = replay.asked(action).call.arguments
    except (FileNotFoundError, UnicodeDecodeError):
        return _Line()
    return _line(arguments["command"]) if isinstance(arguments.get("command"), str) else _words(arguments)


def _words(arguments: Mapping[str, Any]) -> _Line:
    return _of_read(shell.read_argv(tuple(arguments["argv"]))) if "argv" in arguments else _Line()


@kept_if_sure(2 * LAST)
def _line(command: str) -> tuple[_Line, bool]:
    """Reading one takes milliseconds, and the next look reads nearly all of them again."""
    read = shell.read(command)
    return _of_read(read), not read.is_unsure


def _of_read(line: shell.Read) -> _Line:
    return _Line(frozenset(_pattern(each.argv) for each in line.plain or ()), frozenset(line.reached))


def _pattern(argv: tuple[str, ...]) -> str:
    """A program, and its sub-command where it has such; empty when it cannot be written down."""
    named = argv[:2] if argv[0] in WITH_COMMANDS and len(argv) > 1 and not argv[1].startswith("-") else argv[:1]
    return shlex.join(named) if all(word.isascii() and word.isprintable() for word in named) else ""
