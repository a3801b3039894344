"""The packs: each pattern holds its own tests, and what agents really propose is let through or asks as it should."""

import json
from pathlib import Path

import pytest

from approvals import gate, packs, shell
from approvals.models import Action, Rule
from approvals.rules import patterns, proving, ticking
from approvals.rules.judging import Call, Standing, judge
from console.workspaces.errors import NotFound, PermissionDenied
from tests.approvals.proposals import run

SAMPLES = [json.loads(line) for line in Path("tests/data/proposals-sample.jsonl").read_text().splitlines()]
RUNS = [each for each in SAMPLES if each["tool"] == "run"]
EVERY = [(pack, rule) for pack in packs.packs().values() for rule in pack.rules]
STANDING = [Standing(f"rul_{at}", 1, "allow", "run", rule.pattern) for at, (_, rule) in enumerate(EVERY)]


def judged(arguments):
    return judge(Call("run", {"cwd": "/work", "env": {}, "stdin": "", **arguments}, {}), STANDING).effect


def test_there_are_the_four():
    assert set(packs.packs()) == {"read_only_shell", "local_git", "search", "package_install"}


@pytest.mark.parametrize(("pack", "rule"), EVERY, ids=lambda each: getattr(each, "pattern", getattr(each, "name", "")))
def test_each_rule_of_a_pack_passes_its_own_tests_and_has_both_kinds(pack, rule):
    assert patterns.check("run", rule.pattern, allows=True) == ""
    assert rule.matches
    assert rule.does_not_match
    row = Rule(tool="run", effect="allow", pattern=rule.pattern, matches=list(rule.matches), pk="rul_x")
    row.does_not_match = list(rule.does_not_match)
    assert [test.text for test in proving.run(row) if not test.passes] == []


@pytest.mark.parametrize(("pack", "rule"), EVERY, ids=lambda each: getattr(each, "pattern", getattr(each, "name", "")))
def test_no_other_rule_of_the_packs_lets_through_what_one_must_not(pack, rule):
    for text in rule.does_not_match:
        assert judged({"command": text}) == "ask", text


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case["id"])
def test_real_proposals_are_let_through_by_the_packs_or_ask(case):
    expected = "allow" if case["must"] == "may_auto_allow_with_packs" else "ask"
    assert judged(case["arguments"]) == expected, case["why"]


def test_a_pack_is_off_until_it_is_ticked_and_off_again_when_it_is_not(cast):
    scout = cast.caller(cast.scout)
    assert not any(each.is_on for each in ticking.listed(cast.workspace))
    assert isinstance(gate.submit(run(scout, "rg main")), gate.Wait)
    made = ticking.tick("search", by=cast.alice)
    assert made == len(packs.named("search").rules)
    assert ticking.tick("search", by=cast.alice) == 0
    assert [each.pack.name for each in ticking.listed(cast.workspace) if each.is_on] == ["search"]
    passed = gate.submit(run(scout, "rg main", idempotency_key="k"))
    assert isinstance(passed, gate.Pass)
    rule = Rule.objects.get(pk=Action.objects.get(pk=passed.action_id).under[0]["rule"])
    assert (rule.pack, rule.pack_version) == ("search", packs.named("search").version)
    assert ticking.untick("search", by=cast.alice) == made
    assert isinstance(gate.submit(run(scout, "rg main", idempotency_key="l")), gate.Wait)


def test_a_pack_is_ticked_in_one_workspace_and_by_who_may(cast):
    with pytest.raises(PermissionDenied):
        ticking.tick("search", by=cast.bob)
    with pytest.raises(NotFound):
        ticking.tick("made up", by=cast.alice)
    ticking.tick("search", by=cast.mallory)
    assert isinstance(gate.submit(run(cast.caller(cast.scout), "rg main")), gate.Wait)


def test_an_older_version_is_replaced_when_the_pack_is_ticked_again(cast):
    ticking.tick("search", by=cast.alice)
    Rule.objects.filter(pack="search").update(pack_version=0)
    found = {each.pack.name: each for each in ticking.listed(cast.workspace)}["search"]
    assert found.is_older
    assert ticking.tick("search", by=cast.alice)
    assert set(Rule.objects.kept().values_list("pack_version", flat=True)) == {packs.named("search").version}


def test_nothing_that_no_rule_can_allow_is_in_a_pack():
    assert not [rule.pattern for _, rule in EVERY if shell.never_by_rule(patterns.words(rule.pattern))]
