"""An answer to a search that is none, in each way there is: its caller gets BoxGone, nothing of it counts."""

import hashlib
import json

import pytest

from sandboxes.engine import GlobRequest, GrepRequest, searching
from sandboxes.errors import BoxGone
from sandboxes.runner import frames
from tests.engine.test_hostile_runner import play
from tests.gvisor.engines import OnePass

SUMMARY = {
    "found": 1, "at_least": False, "incomplete": False, "truncated": False, "next": None, "ignored": 0,
    "left_out": ["dist/"], "unreadable": 0,
}  # fmt: skip
GLOB = {"paths": ["a"], **SUMMARY}
MATCH = ["a", 1, 1, "needle", [[1, "x"]], []]
GREP = {**SUMMARY, "files_searched": 1, "binary": 0, "large_left_out": False, "matches": [MATCH]}


def glob(box):
    return box.glob(OnePass(box.sandbox_id, "glob"), GlobRequest(path="/work", pattern="*"))


def grep(box, **how):
    return box.grep(OnePass(box.sandbox_id, "grep"), GrepRequest(path="/work", pattern="x", **how))


def tell(answer):
    content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def lie(liar, ref):
        liar.say(frames.INFO, {"size": len(content)}, ref=ref)
        for at in range(0, len(content), frames.CHUNK_BYTES):
            liar.say(frames.CONTENT, content[at : at + frames.CHUNK_BYTES], ref=ref, offset=at)
        end = {"ok": {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}}
        liar.say(frames.RESULT, end, ref=ref)

    return lie


def with_match(at: int, wrong: object) -> dict:
    return GREP | {"matches": [[*MATCH[:at], wrong, *MATCH[at + 1 :]]]}


def test_the_truth_is_believed(tmp_path):
    found, _ = play(tmp_path, tell(GLOB), glob)
    assert found == GLOB
    found, _ = play(tmp_path, tell(GREP), lambda box: grep(box, context=1))
    assert found["matches"] == [
        {"path": "a", "line": 1, "column": 1, "text": "needle", "before": [[1, "x"]], "after": []}
    ]
    found, _ = play(tmp_path, tell(GREP), grep)
    assert found["matches"] == [{"path": "a", "line": 1, "column": 1, "text": "needle"}]


def test_what_no_row_may_hold_is_replaced(tmp_path):
    found, _ = play(tmp_path, tell(with_match(3, "a\udcff\0b")), grep)
    assert found["matches"][0]["text"] == "a\ufffd\ufffdb"


@pytest.mark.parametrize("field", [*GLOB])
@pytest.mark.parametrize("wrong", ["x", -1, 1.5, {}, [7], ["a"] * 1001, 2**63])
def test_a_field_that_is_wrong_is_the_end_of_the_sandbox(tmp_path, field, wrong):
    async def scene(box):
        with pytest.raises(BoxGone):
            await glob(box)

    play(tmp_path, tell(GLOB | {field: wrong}), scene)


@pytest.mark.parametrize(
    "lie",
    [
        b"", b"{", b"[]", b"7", b"[" * 50_000, {}, GLOB, GREP | {"matches": [7]}, GREP | {"matches": [MATCH[:5]]},
        GREP | {"matches": [MATCH] * 1001}, GREP | {"files_searched": -1}, GREP | {"binary": "1"},
        GREP | {"large_left_out": 1},
        *(with_match(at, wrong) for at, wrongs in enumerate((
            (7, None, "x" * 9000), (-1, "1", None, 1.5), (-1, None), (7, None, "x" * 9000),
            (7, [7], [[1]], [["1", "x"]], [[1, 7]], [[1, "x"]] * 21), (None, {}),
        )) for wrong in wrongs),
    ],
)  # fmt: skip
def test_what_are_no_matches_is_the_end_of_the_sandbox(tmp_path, lie):
    async def scene(box):
        with pytest.raises(BoxGone):
            await grep(box, context=1)

    play(tmp_path, tell(lie), scene)


def test_an_answer_without_an_end_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "ANSWER_BYTES", 100_000)

    async def scene(box):
        with pytest.raises(BoxGone):
            await glob(box)

    play(tmp_path, tell(b" " * 200_000), scene)


@pytest.mark.parametrize("mode", ["files", "count"])
def test_another_mode_has_other_entries(tmp_path, mode):
    told = GREP | {"paths": ["a"], "counts": [["a", 3]]}
    found, _ = play(tmp_path, tell(told), lambda box: grep(box, mode=mode))
    assert ("matches" in found, found.get("paths"), found.get("counts")) == (
        False, ["a"] if mode == "files" else None, [{"path": "a", "count": 3}] if mode == "count" else None,
    )  # fmt: skip
