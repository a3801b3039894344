"""The collected cases of `glob` and `grep`, in one sandbox, with the image's own ripgrep."""

import json
import time

import pytest

from sandboxes.engine import GlobRequest, GrepRequest
from sandboxes.errors import FileError
from tests import search_cases
from tests.gvisor.engines import OnePass

CASES = [*search_cases.cases("glob"), *search_cases.cases("grep")]
ANSWERED = {
    "matches", "must_include", "truncated", "count_max", "max_reply_bytes", "max_seconds", "no_raw_nul",
    "result", "reason", "any_of_results", "policy",
}  # fmt: skip
REASONS = {"pattern": "bad_pattern", "missing": "file_not_found"}


@pytest.fixture(scope="module")
def cases_box(bench):
    """A hostile variable for ripgrep lies in the sandbox's own environment, where every command has it."""
    env = {name: value for case in CASES for name, value in case["setup"].get("env", {}).items()}
    assert "RIPGREP_CONFIG_PATH" in env
    box = bench.create(env=env)
    bench.write(box, "/work/cases.tar", search_cases.packed(CASES))
    assert bench.bash(box, "mkdir /work/cases && tar xf /work/cases.tar -C /work/cases").code == 0
    return box


def asked(bench, box, case) -> dict:
    call = dict(case["call"])
    tool, place = call.pop("op"), f"/work/cases/{case['id']}"
    request = (GlobRequest if tool == "glob" else GrepRequest)(
        **{**call, "path": f"{place}/{call['path']}" if "path" in call else place}
    )
    answer = bench.do(getattr(box, tool)(OnePass(box.sandbox_id, tool), request))
    return json.loads(json.dumps(answer).replace(f"cases/{case['id']}/", ""))


@pytest.mark.parametrize("case", search_cases.cases("glob"), ids=lambda case: case["id"])
def test_glob_case(bench, cases_box, case):
    began = time.monotonic()
    answer = asked(bench, cases_box, case)
    assert time.monotonic() - began < case["expect"].get("max_seconds", 30) + 20  # a machine that is busy
    search_cases.check_paths(case["expect"], answer["paths"], truncated=answer["truncated"])


@pytest.mark.parametrize("case", search_cases.cases("grep"), ids=lambda case: case["id"])
def test_grep_case(bench, cases_box, case):
    expect = case["expect"]
    assert set(expect) <= ANSWERED, "a case that asks for what nothing here checks"
    if expect.get("result") == "refused":
        with pytest.raises(FileError) as refused:
            asked(bench, cases_box, case)
        assert refused.value.code == REASONS[expect["reason"]]
        return
    began = time.monotonic()
    answer = asked(bench, cases_box, case)
    assert time.monotonic() - began < expect.get("max_seconds", 30) + 20
    check(expect, answer)
    if case["id"] == "grep-015":  # the ignore rules are honoured, so they are without a repository too
        assert ([match["path"] for match in answer["matches"]], answer["left_out"]) == (["src/a.js"], ["dist/"])


def check(expect: dict, answer: dict) -> None:
    places = [[match["path"], match["line"]] for match in answer["matches"]]
    text = json.dumps(answer)
    assert places == expect.get("matches", places)
    assert all(place in places for place in expect.get("must_include", []))
    assert answer["truncated"] == expect.get("truncated", answer["truncated"])
    assert len(places) <= expect.get("count_max", 100)
    assert len(text.encode()) <= expect.get("max_reply_bytes", 60_000)
    assert "\\u0000" not in text
