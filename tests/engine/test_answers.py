"""What a sandbox answers is hostile: nothing unchecked comes through."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.engine import Refusal, RunResult, answers, searching
from sandboxes.errors import FileError
from sandboxes.runner.frames import BrokenFrame

GOOD = {
    "exit_code": 0,
    "timed_out": False,
    "stopped": False,
    "left_running": False,
    "signalled": False,
    "duration_ms": 5,
    "stdout_bytes": 3,
    "stderr_bytes": 0,
    "lost_bytes": 0,
}
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["ok", "error", "settled", "unknown", *GOOD, "code", "detail", "path", "size", "sha256"])


@given(st.text(alphabet="a\0\ud800\udfff", max_size=20))
def test_a_text_is_one_that_every_row_takes(said):
    for found in (answers.text({"text": said}, "text"), searching._text(said)):
        found.encode()
        assert "\0" not in found
        assert len(found) == len(said)
    assert answers.text({"text": "grün"}, "text") == "grün"


def test_a_name_with_a_nul_is_that_of_no_file():
    with pytest.raises(BrokenFrame):
        answers.entries(json.dumps([["a\0b", "file", 1, 0o644, 0]]).encode())


def test_a_good_result_is_read():
    assert answers.run_result({"ok": GOOD}) == RunResult(**GOOD)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", [None, -1, 2**70, 1.5, "1", [], {}, float("inf")])
def test_every_field_is_checked(name, value):
    with pytest.raises(BrokenFrame):
        answers.run_result({"ok": {**GOOD, name: value}})
    with pytest.raises(BrokenFrame):
        answers.run_result({"ok": {key: good for key, good in GOOD.items() if key != name}})


def test_a_number_is_no_flag_and_a_flag_no_number():
    with pytest.raises(BrokenFrame):
        answers.run_result({"ok": {**GOOD, "timed_out": 1}})
    with pytest.raises(BrokenFrame):
        answers.run_result({"ok": {**GOOD, "exit_code": True}})


def test_more_cannot_be_lost_than_was_printed():
    with pytest.raises(BrokenFrame):
        answers.run_result({"ok": {**GOOD, "lost_bytes": 4}})


@given(st.dictionaries(keys, st.dictionaries(keys, anything, max_size=10) | anything, max_size=5))
def test_any_answer_gives_a_result_or_one_of_our_errors(message):
    for read in (answers.run_result, answers.write_result):
        with suppress(BrokenFrame, FileError, Refusal):
            read(message)


def test_codes_of_its_own_are_not_passed_on():
    with pytest.raises(Refusal) as caught:
        answers.ok({"error": {"code": "already_decided", "detail": "by me"}})
    assert caught.value.code == "sandbox_error"


def test_file_errors_are_ours():
    with pytest.raises(FileError) as caught:
        answers.ok({"error": {"code": "no_space", "detail": "/work/x: no space is left.", "path": "/work/x"}})
    assert (caught.value.code, str(caught.value)) == ("no_space", "/work/x: no space is left.")


def test_an_endless_detail_is_refused():
    with pytest.raises(BrokenFrame):
        answers.ok({"error": {"code": "no_space", "detail": "x" * 100_000, "path": ""}})


def test_huge_numbers_in_json_do_not_reach_us():
    assert json.loads("1e999") == float("inf")
    with pytest.raises(BrokenFrame):
        answers.number({"n": json.loads("1e999")}, "n")


def test_new_protected_files_are_read_and_each_is_checked():
    found = answers.run_result({"ok": {**GOOD, "protected": [["/work/.env", True]], "protected_more": 2}})
    assert [(each.path, each.sealed) for each in found.protected] == [("/work/.env", True)]
    assert found.protected_more == 2
    odd = answers.run_result({"ok": {**GOOD, "protected": [["/work/\udc80", False]]}})
    assert odd.protected[0].path == "/work/\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("value", [
    None, "x", {}, 5, [5], [["/x"]], [["/x", 1]], [[5, True]], [["/x", True, 1]], [["/x" * 8192, True]],
    [["/x", True]] * 51,
])  # fmt: skip
def test_a_list_of_protected_files_that_is_none_ends_it(value):
    with pytest.raises(BrokenFrame):
        answers.run_result({"ok": {**GOOD, "protected": value}})


@given(anything)
def test_an_unsealing_is_read_or_refused(answer):
    with suppress(BrokenFrame, Refusal, FileError):
        path, was_sealed = answers.unsealed({"ok": answer})
        assert isinstance(path, str)
        assert isinstance(was_sealed, bool)
