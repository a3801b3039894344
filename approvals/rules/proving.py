"""A rule's own tests: lines or paths that it must match, and such as it must not. Pure.

A test goes the way a call does. Of a rule that allows, to match is to be let through by it alone; of one that asks or
denies, to be asked about or denied, wherever in the line.
"""

from dataclasses import dataclass
from functools import lru_cache

from .finding import standing
from .judging import Call, Standing, judge
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
    return list(_proved(rule.effect, rule.tool, rule.pattern, tuple(rule.matches), tuple(rule.does_not_match)))


@lru_cache(maxsize=256)
def _proved(
    effect: str, tool: str, pattern: str, matches: tuple[str, ...], does_not_match: tuple[str, ...]
) -> tuple[Test, ...]:
    rule = standing(Rule(effect=effect, tool=tool, pattern=pattern))
    wanted = [(text, True) for text in matches] + [(text, False) for text in does_not_match]
    return tuple(Test(text, should, _does_match(rule, text)) for text, should in wanted)


def _does_match(rule: Standing, text: str) -> bool:
    verdict = judge(call_of(rule.tool, text), [rule])
    return verdict.effect == rule.effect and bool(verdict.under)


def call_of(tool: str, text: str) -> Call:
    """As an agent would make it, in /work and with nothing else."""
    if tool != "run":
        return Call(tool, {"path": text}, {})
    return Call(tool, {"command": text, "cwd": "/work", "env": {}, "stdin": ""}, {})
