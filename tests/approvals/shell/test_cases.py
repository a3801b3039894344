"""Each case of the shared list of lines, judged by its rules with what this package offers to rules."""

import json
from pathlib import Path
from typing import Any

import pytest

from approvals import shell

ROWS = [json.loads(row) for row in (Path(__file__).parents[2] / "data/shell-lines.jsonl").read_text().splitlines()]
RULES = {effect: [tuple(text.split()) for text in texts] for effect, texts in ROWS[0]["rules"].items()}


def verdict(line: str) -> str:
    read = shell.read(line)
    if any(shell.forbids(pattern, argv) for pattern in RULES["deny"] for argv in read.reached):
        return "deny"
    allowed = read.plain is not None and all(
        any(shell.allows(pattern, simple.argv) for pattern in RULES["allow"]) for simple in read.plain
    )
    return "allow" if allowed else "ask"


@pytest.mark.parametrize("case", ROWS[1:], ids=[row["id"] for row in ROWS[1:]])
def test_each_line_gets_its_verdict(case: dict[str, Any]) -> None:
    assert verdict(case["line"]) == case["verdict"]


@pytest.mark.parametrize("case", [row for row in ROWS[1:] if row["verdict"] == "ask"], ids=lambda row: row["id"])
def test_what_is_not_plain_says_why_in_one_sentence(case: dict[str, Any]) -> None:
    read = shell.read(case["line"])
    assert (read.plain is None) == bool(read.why_not)
    assert not read.why_not or (read.why_not.endswith(".") and len(read.why_not) < 120)
