"""The page for agent developers names what there is: tools, states, codes; and nothing that there is not."""

import re
from pathlib import Path
from typing import get_args

from console.api.errors import STATUS
from console.api.schemas.actions import ActionStatus
from sandboxes import toolsets

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_column(text: str) -> set[str]:
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    return {word for row in rows for word in re.findall(r"`(\w+)`", row)}


def test_every_tool_of_the_newest_toolset_stands_in_its_table_and_no_other():
    assert first_column(section("Tools")) == set(toolsets.toolset(toolsets.NEWEST))


def test_the_plain_toolset_is_named_whole():
    named = re.search(r"Toolset 1 \((.+?)\)", PAGE)
    assert named
    assert set(re.findall(r"`(\w+)`", named[1])) == set(toolsets.toolset(1))


def test_every_state_of_an_action_is_told():
    assert first_column(section("Waiting for a person")) == set(get_args(ActionStatus))


def test_each_code_has_the_status_that_the_page_says():
    rows = re.findall(r"^\| ([0-9, ]+)((?:`\w+`(?:, )?)*) \|", section("Errors"), re.MULTILINE)
    told = [(int(row[0].split(",")[0]), code) for row in rows for code in re.findall(r"`(\w+)`", row[1])]
    assert len(told) > 3
    assert all(STATUS[code] == status for status, code in told)
