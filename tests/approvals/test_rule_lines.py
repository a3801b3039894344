"""Every case of shell lines, through the judge of rules itself: an argv prefix allows, or denies wherever it is run."""

import json
from pathlib import Path

import pytest

from approvals.rules.judging import Call, Standing, judge

FIRST, *CASES = map(json.loads, Path("tests/data/shell-lines.jsonl").read_text().splitlines())
STANDING = [
    Standing(f"{effect}-{at}", 1, effect, "run", pattern)
    for effect in ("allow", "deny")
    for at, pattern in enumerate(FIRST["rules"][effect])
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_line_is_judged_as_the_case_says(case):
    call = Call("run", {"command": case["line"], "cwd": "/work", "env": {}, "stdin": ""}, {})
    assert judge(call, STANDING).effect == case["verdict"], judge(call, STANDING).why
