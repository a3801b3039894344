"""A rule's own tests: lines or paths that it must match, and such as it must not. Pure.

A test goes the way a call does. Of a rule that allows, to match is to be let through by it alone; of one that asks or
denies, to be asked about or denied, wherever in the line.
"""

from dataclasses import dataclass
from typing import NamedTuple

from approvals import shell

from .finding import standing
from .judging import Call, Standing, judge
from .keeping import kept_if_sure
from .models import Rule


@dataclass(frozen=True)
class Test:
    """`should`: whether it is to match."""

    text: str
    should: bool
    does: bool

    @property
    def passes(self) -> bool:
        return self.should == self.does


def run(rule: Rule) -> list[Test]:
    """Each takes milliseconds, and pages show them again and again: what came of the last few rules' is kept."""
    wanted = [(text, True) for text in rule.matches] + [(text, False) for text in rule.does_not_match]
    return list(_proved(_Asked(rule.effect, rule.tool, rule.pattern, tuple(wanted))))


class _Asked(NamedTuple):
    effect: str
    tool: str
    pattern: str
    wanted: tuple[tuple[str, bool], ...]


@kept_if_sure(256)
def _proved(asked: _Asked) -> tuple[tuple[Test, ...], bool]:
    rule = standing(Rule(effect=asked.effect, tool=asked.tool, pattern=asked.pattern))
    tests, is_sure = [], True
    for text, should in asked.wanted:
        tests.append(Test(text, should, _does_match(rule, text)))
        is_sure = is_sure and not (rule.tool == "run" and shell.read(text).is_unsure)
    return tuple(tests), is_sure


def _does_match(rule: Standing, text: str) -> bool:
    verdict = judge(call_of(rule.tool, text), [rule])
    return verdict.effect == rule.effect and bool(verdict.under)


def call_of(tool: str, text: str) -> Call:
    """As an agent would make it, in /work and with nothing else."""
    if tool != "run":
        return Call(tool, {"path": text}, {})
    return Call(tool, {"command": text, "cwd": "/work", "env": {}, "stdin": ""}, {})
