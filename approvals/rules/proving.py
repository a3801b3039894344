"""A rule's own tests: lines or paths that it must match, and such as it must not. Pure.

A test goes the way a call does. Of a rule that allows, to match is to be let through by it alone; of one that asks or
denies, to be asked about or denied, wherever in the line.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from .finding import standing
from .judging import Call, judge
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
    return list(_run(rule))


def _run(rule: Rule) -> Iterator[Test]:
    for should, texts in ((True, rule.matches), (False, rule.does_not_match)):
        for text in texts:
            yield Test(text, should, does_match(rule, text))


def does_match(rule: Rule, text: str) -> bool:
    verdict = judge(call_of(rule.tool, text), [standing(rule)])
    return verdict.effect == rule.effect and bool(verdict.under)


def call_of(tool: str, text: str) -> Call:
    """As an agent would make it, in /work and with nothing else."""
    if tool != "run":
        return Call(tool, {"path": text}, {})
    return Call(tool, {"command": text, "cwd": "/work", "env": {}, "stdin": ""}, {})
