"""Rules, grants, packs, and what a dry run finds."""

from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field

from approvals.rules import models as rows
from approvals.rules.proving import Test
from approvals.rules.ticking import Ticked

from .shared import Answer, Body, OneLine, Time, shown

Effect = Literal["allow", "ask", "deny"]
RuleTool = Literal["run", "write", "edit"]
Tests = Annotated[list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(max_length=100)]
Pattern = Annotated[str, Field(min_length=1, max_length=500)]


class NewRule(Body):
    model_config = shown(effect="allow", tool="run", pattern="git status", matches=["git status --short"])
    effect: Effect
    tool: RuleTool
    pattern: Pattern = Field(
        description="Of `run`: how a command begins, word by word; else a full path, with * and **."
    )
    note: OneLine = Field("", max_length=500, description="Of a deny, the agent is told it.")
    agent_id: str | None = Field(None, max_length=40, description="One agent, else the whole workspace.")
    conversation: str = Field("", max_length=200, description="One conversation of that agent, else all.")
    expires_at: AwareDatetime | None = Field(None, strict=False)
    matches: Tests = Field(default_factory=list, description="Lines or paths that it must match, or it is not kept.")
    does_not_match: Tests = Field(default_factory=list, description="And such as it must not.")


class RuleChange(Body):
    """Fields left out stay as they are."""

    model_config = shown(note="Looked at again in March.")
    version: int | None = Field(None, ge=1, description="The one that you looked at: 409 when there is a newer.")
    effect: Effect | None = None
    pattern: Pattern | None = None
    note: OneLine | None = Field(None, max_length=500)
    expires_at: AwareDatetime | None = Field(None, strict=False, description="null: no end.")
    matches: Tests | None = None
    does_not_match: Tests | None = None


class Rule(Answer):
    id: str
    version: int
    effect: Effect
    tool: str
    pattern: str
    note: str
    scope: Literal["workspace", "agent", "conversation"]
    agent_id: str | None
    conversation: str | None
    owner: str = Field(description="The member who answers for it.")
    suspended: bool = Field(description="Its owner has left: an allow lets nothing through until somebody adopts it.")
    pack: str | None
    pack_version: int | None
    matches: list[str]
    does_not_match: list[str]
    use_count: int
    last_used_at: Time | None
    created_at: Time
    expires_at: Time | None

    @classmethod
    def of(cls, row: rows.Rule) -> Self:
        made = ("owner", "suspended", "conversation", "pack")
        plain: dict[str, Any] = {name: getattr(row, name) for name in cls.model_fields if name not in made}
        more = {"conversation": row.conversation or None, "pack": row.pack or None}
        return cls.model_validate({**plain, **more, "owner": row.owner_id, "suspended": row.is_suspended})


class Rules(Answer):
    items: list[Rule]
    next_cursor: str | None


class NewDryRun(Body):
    model_config = shown(rule={"effect": "allow", "tool": "run", "pattern": "git status"})
    rule: NewRule | None = Field(None, description="One more than there are; without it, those that there are.")
    last: int = Field(100, ge=1, le=200)


class Replayed(Answer):
    action_id: str
    tool: str
    status: str = Field(description="What became of it then.")
    would: Effect
    why: str
    rules: list[str]


class DryRun(Answer):
    allow: int
    deny: int
    ask: int
    items: list[Replayed]


class NewRuleTests(Body):
    model_config = shown(effect="allow", tool="run", pattern="git status", matches=["git status"])
    effect: Effect
    tool: RuleTool
    pattern: Pattern
    matches: Tests = Field(default_factory=list)
    does_not_match: Tests = Field(default_factory=list)


class RuleTest(Answer):
    text: str
    should_match: bool
    matches: bool
    passes: bool

    @classmethod
    def of(cls, test: Test) -> Self:
        return cls(text=test.text, should_match=test.should, matches=test.does, passes=test.passes)


class RuleTests(Answer):
    passes: bool
    items: list[RuleTest]


class NewGrant(Body):
    """Approves this action, and lets its conversation do exactly the same again for some minutes."""

    model_config = shown(action_id="act_…", digest="0" * 64, minutes=15)
    action_id: str = Field(max_length=40)
    digest: str = Field(min_length=64, max_length=64, description="Of what you looked at.")
    minutes: int = Field(15, ge=1, le=60)


class Grant(Answer):
    id: str
    agent_id: str
    conversation: str | None
    sandbox_id: str
    tool: str
    exactly: list[list[str]] = Field(description="The words of each command of the one line, or the path.")
    given_by: str
    action_id: str
    use_count: int
    created_at: Time
    expires_at: Time
    last_used_at: Time | None

    @classmethod
    def of(cls, row: rows.Grant) -> Self:
        made = ("conversation", "given_by")
        plain: dict[str, Any] = {name: getattr(row, name) for name in cls.model_fields if name not in made}
        return cls.model_validate({**plain, "conversation": row.conversation or None, "given_by": row.given_by_id})


class Grants(Answer):
    items: list[Grant]
    next_cursor: str | None


class Pack(Answer):
    name: str
    title: str
    about: str
    version: int
    version_on: int | None
    rules: int
    tests: int

    @classmethod
    def of(cls, ticked: Ticked) -> Self:
        pack = ticked.pack
        same = {name: getattr(pack, name) for name in ("name", "title", "about", "version", "tests")}
        return cls(**same, version_on=ticked.version, rules=len(pack.rules))


class Packs(Answer):
    items: list[Pack]


class Suggestion(Answer):
    agent_id: str
    tool: Literal["run"] = "run"
    pattern: str
    approvals: int


class Suggestions(Answer):
    items: list[Suggestion]
