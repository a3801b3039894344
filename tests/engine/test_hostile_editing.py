"""A view, a draft, a report or a refusal that is none, in each way that one can be none: nothing of it is believed."""

import json
from hashlib import sha256

import pytest

from sandboxes.engine import EditRequest, answers, viewing
from sandboxes.errors import BoxGone, FileError
from sandboxes.runner import frames
from tests.engine.test_hostile_listing import tell
from tests.engine.test_hostile_runner import play
from tests.gvisor.engines import OnePass

SHA = sha256(b"x").hexdigest()
VIEW = {
    "path": "/work/a", "version": "3f9c0b71d2ae", "size": 4, "truncated": False, "next": None, "line_count": 1,
    "from": 1, "to": 1, "newline": "LF", "final_newline": True, "bom": False, "lines": [[1, "kqzt", "one"]], "cut": [],
}  # fmt: skip
REPORT = {
    "version": "3f9c0b71d2ae", "changed": True, "diff": "-a\n+b", "lines": [[1, "kqzt", "b"]], "carried": False,
    "moved": [[2, -1]],
}  # fmt: skip
DONE = {"path": "/work/a", "size": 1, "sha256": SHA, "report": REPORT, "held_us": 5}
WISH = EditRequest("/work/a", "3f9c0b71d2ae", [{"do": "append", "lines": ["x"]}])
NO_LINES = (
    None, 7, {}, [7], [[]], [[1, "kqzt"]], [[1, "kqzt", "a", 1]], [["1", "kqzt", "a"]], [[-1, "kqzt", "a"]],
    [[1.5, "kqzt", "a"]], [[True, "kqzt", "a"]], [[2**63, "kqzt", "a"]], [[1, "aeio", "a"]], [[1, "kqz", "a"]],
    [[1, None, "a"]], [[1, "kqzt", None]], [[1, "kqzt", "x" * 9000]], [[1, "kqzt", ""]] * (answers.LINES + 1),
)  # fmt: skip
NO_TEXT, NO_NUMBER, NO_FLAG = (7, None, [], "x" * 9000), (-1, 1.5, True, "1", None, 2**63), (0, None, "yes")
NO_VERSION = (7, None, "", "3F9C0B71D2AE", "3f9c0b71d2a", "3f9c0b71d2ae0")


def view(box, form="text"):
    return box.view(OnePass(box.sandbox_id, "read"), "/work/a", form=form)


def edit(box):
    return box.edit(OnePass(box.sandbox_id, "edit"), WISH)


def said(answer):
    def lie(liar, ref):
        liar.say(frames.RESULT, answer, ref=ref)

    return lie


def without(whole, name):
    return {key: value for key, value in whole.items() if key != name}


def is_the_end(tmp_path, lie, ask):
    async def scene(box):
        with pytest.raises(BoxGone):
            await ask(box)

    play(tmp_path, lie, scene)


def test_a_view_is_believed_and_nothing_beside_its_fields(tmp_path):
    more = VIEW | {"lines": [[1, "", "half \ud800"]], "cut": [1], "more": "<script>"}
    found, _ = play(tmp_path, tell(json.dumps(more).encode(), {"path": "/work/a"}), view)
    assert found == VIEW | {"lines": [[1, "", "half \N{REPLACEMENT CHARACTER}"]], "cut": [1]}


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"7", b"[" * 50_000,
        *(json.dumps(without(VIEW, name)).encode() for name in VIEW if name != "next"),
        *(
            json.dumps(VIEW | {name: wrong}).encode()
            for name, wrongs in {
                "path": NO_TEXT, "version": NO_VERSION, "size": NO_NUMBER, "truncated": NO_FLAG,
                "next": (-1, "1", True), "line_count": NO_NUMBER, "from": NO_NUMBER, "to": NO_NUMBER,
                "newline": ("CR", 7, None, []), "final_newline": NO_FLAG, "bom": NO_FLAG, "lines": NO_LINES,
                "cut": (None, 7, ["1"], [True], [1] * (answers.LINES + 1)),
            }.items()
            for wrong in wrongs
        ),
    ],
)  # fmt: skip
def test_what_is_no_view_is_the_end_of_the_sandbox(tmp_path, content):
    is_the_end(tmp_path, tell(content, {"path": "/work/a"}), view)


def test_a_view_has_an_end(tmp_path):
    is_the_end(tmp_path, tell(b" " * (viewing.VIEW_BYTES + 1), {"path": "/work/a"}), view)


@pytest.mark.parametrize("data", ["<script>", "a\nb", 7, None, "\u0661"])
def test_bytes_in_letters_are_of_those_letters(tmp_path, data):
    told = {"path": "/work/a", "version": "3f9c0b71d2ae", "size": 4, "truncated": False, "offset": 0, "data": data}
    is_the_end(tmp_path, tell(json.dumps(told).encode(), {"path": "/work/a"}), lambda box: view(box, "hex"))


def test_a_report_is_believed_and_nothing_beside_its_fields(tmp_path):
    done, _ = play(tmp_path, said({"ok": DONE | {"report": REPORT | {"html": "<b>"}}}), edit)
    assert done.report == REPORT | {"path": "/work/a", "size": 1}
    assert (done.sha256, done.held_us) == (SHA, 5)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (name, wrong)
        for name, wrongs in {
            "version": NO_VERSION, "changed": NO_FLAG, "carried": NO_FLAG, "lines": NO_LINES,
            "diff": (7, None, [], "x" * (answers.DIFF_LIMIT + 1)),
            "moved": (None, 7, [7], [[1]], [[1, 2, 3]], [["1", 2]], [[1, True]], [[1, 2**63]], [[1, 2]] * 5000),
        }.items()
        for wrong in wrongs
    ],
)  # fmt: skip
def test_what_is_no_report_is_the_end_of_the_sandbox(tmp_path, name, wrong):
    is_the_end(tmp_path, said({"ok": DONE | {"report": REPORT | {name: wrong}}}), edit)
    is_the_end(tmp_path, said({"ok": DONE | {"report": without(REPORT, name)}}), edit)


def refused(**more):
    return said({"error": {"code": "stale_edit", "detail": "no", "path": "/work/a", **more}})


def test_a_refusal_comes_with_what_helps_to_try_again(tmp_path):
    more = {"version": "3f9c0b71d2ae", "lines": [[1, "kqzt", "one"]], "names": ["a/"], "nearest": ["/b"], "offset": 3}
    more["truncated"] = True

    async def scene(box):
        with pytest.raises(FileError) as error:
            await edit(box)
        return error.value

    error, _ = play(tmp_path, refused(**more, html="<b>"), scene)
    assert (error.code, error.more) == ("stale_edit", more)
    assert error.fields == more | {"path": "/work/a"}


@pytest.mark.parametrize(
    "more",
    [
        *({"version": wrong} for wrong in NO_VERSION), *({"lines": wrong} for wrong in NO_LINES),
        *({name: wrong} for name in ("names", "nearest") for wrong in (None, 7, "x", [7], ["x"] * (answers.NAMES + 1))),
        *({"offset": wrong} for wrong in NO_NUMBER), *({"truncated": wrong} for wrong in (None, 1, "yes")),
    ],
)  # fmt: skip
def test_a_refusal_with_help_that_is_none_is_the_end_of_the_sandbox(tmp_path, more):
    is_the_end(tmp_path, refused(**more), edit)


OLD, NEW = b"one\n", b"one\ntwo\n"
DRAFT = {"path": "/work/a", "mode": 0o644, "sha256": sha256(OLD).hexdigest(), "old_bytes": 4, "carried": False}


def test_a_draft_is_its_bytes_and_the_hashes_are_our_own(tmp_path):
    found, _ = play(tmp_path, tell(OLD + NEW, DRAFT), lambda box: box.draft(WISH))
    assert (found.old, found.new, found.changed) == (OLD, NEW, True)
    assert (found.sha256, found.becomes) == (sha256(OLD).hexdigest(), sha256(NEW).hexdigest())


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (name, wrong)
        for name, wrongs in {
            "path": NO_TEXT, "mode": (-1, 0o10000, None), "sha256": ("", SHA, None, 7), "old_bytes": (-1, 5, 13, "4"),
            "carried": NO_FLAG,
        }.items()
        for wrong in wrongs
    ],
)  # fmt: skip
def test_what_is_no_draft_is_the_end_of_the_sandbox(tmp_path, name, wrong):
    is_the_end(tmp_path, tell(OLD + NEW, DRAFT | {name: wrong}), lambda box: box.draft(WISH))


def test_a_draft_has_an_end(tmp_path):
    many = b" " * (viewing.DRAFT_BYTES + 1)
    is_the_end(tmp_path, tell(many, DRAFT), lambda box: box.draft(WISH))


def test_edits_without_measure_are_refused_before_they_are_sent(tmp_path):
    wish = EditRequest("/work/a", "3f9c0b71d2ae", [{"do": "append", "lines": ["x" * viewing.EDITS_BYTES]}])
    with pytest.raises(FileError, match="the limit is"):
        viewing.packed(wish)
