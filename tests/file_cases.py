"""The cases of the file tools in `tests/data/file-tools.jsonl`: how an edit or a read of one is asked, and what must
have come of it. Where files lie, and how they are asked for, is the caller's: on this machine, or in a sandbox."""

import json
from base64 import b64decode
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

CODES = {
    "stale": {"stale_edit"},
    "missing": {"file_not_found"},
    "exists": {"stale_edit"},
    "encoding": {"not_utf8"},
    "path": {"bad_path"},
    "directory": {"is_a_directory"},
    "special": {"not_a_file"},
} | dict.fromkeys(
    ("overlap", "payload", "empty", "out of range", "anchor format", "no version", "op", "long line"), {"bad_edit"}
)
"""What each neutral reason is called here."""
INVENTED = "0123456789ab"


@dataclass
class Came:
    """What an ask came to: `told`, or a refusal's `code` and what helps to try again."""

    told: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    detail: str = ""
    lines: list[list[Any]] = field(default_factory=list)
    version: str = ""

    @property
    def word(self) -> str:
        if self.code:
            return "refused"
        return "applied" if self.told.get("changed", True) else "nochange"


class Asks(Protocol):
    """One case's files."""

    def view(self, path: str, **part: Any) -> Came: ...

    def edit(self, path: str, version: str, edits: list[dict[str, Any]]) -> Came: ...

    def create(self, path: str, content: bytes) -> Came: ...

    def step(self, step: dict[str, Any]) -> None: ...


def cases(*kinds: str) -> list[dict[str, Any]]:
    lines = (Path(__file__).parent / "data" / "file-tools.jsonl").read_text().splitlines()
    return [case for case in map(json.loads, lines) if case["kind"] in kinds]


def content(text: str) -> bytes:
    return b64decode(text[4:]) if text.startswith("b64:") else text.encode()


def laid(setup: dict[str, Any]) -> dict[str, bytes]:
    files = {path: content(text) for path, text in setup.get("files", {}).items()}
    for path, made in setup.get("generated", {}).items():
        files[path] = (made["unit"] * made["times"] + made.get("suffix", "")).encode()
    return files


def ask(case: dict[str, Any], asks: Asks) -> Came:
    call = case["call"]
    if call["op"] == "read":
        part = {name: call[name] for name in ("offset", "limit") if name in call}
        return asks.view(call["path"], **part)
    if call["op"] == "create":
        return asks.create(call["path"], content(call["content"]))
    seen = asks.view(call.get("tags_from", call["path"]))
    tags = {number: tag for number, tag, _ in seen.told.get("lines", [])}
    version = (
        "" if any("omit_version" in each for each in call.get("tamper", [])) else seen.told.get("version", INVENTED)
    )
    edits = [_named(edit, tags) for edit in call["edits"]]
    for spoil in call.get("tamper", []):
        if "edit" in spoil:
            _spoil(edits[spoil["edit"]], spoil, tags)
    for step in call.get("between", []):
        if "edit" in step:
            asks.edit(call["path"], version, [_named(edit, tags) for edit in step["edit"]])
        else:
            asks.step(step)
    return asks.edit(call["path"], version, edits)


def _named(edit: dict[str, Any], tags: dict[int, str]) -> dict[str, Any]:
    edit = deepcopy(edit)
    for side in ("from", "to"):
        if side in edit:
            edit[side] = f"{edit[side]}{tags.get(edit[side], 'bbbb')}"
    if edit["do"].startswith("insert"):
        edit.pop("to", None)
    return edit


def _spoil(edit: dict[str, Any], spoil: dict[str, Any], tags: dict[int, str]) -> None:
    number, tag = edit[spoil["which"]][:-4], edit[spoil["which"]][-4:]
    if "use_line" in spoil:
        number = spoil["use_line"]
    elif "use_tag_of_line" in spoil:
        tag = tags[spoil["use_tag_of_line"]]
    elif spoil.get("omit_tag"):
        tag = ""
    edit[spoil["which"]] = f"{number}{tag}"


def check(case: dict[str, Any], came: Came, before: dict[str, Any], after: dict[str, Any]) -> None:
    """`before`: the files when the last ask was made; each is path to (bytes, mode, kind)."""
    expect = case["expect"]
    if case["kind"] == "read":
        return _check_read(expect, came)
    words = {"applied", "refused"} if expect["result"] == "applied_or_refused" else {expect["result"]}
    if "lenient" in expect and came.word == "applied":
        assert came.told["carried"]
        expect = {"files": expect["lenient"]}
        words = {"applied"}
    assert came.word in words, came
    if came.word == "refused":
        assert came.code in CODES.get(expect.get("reason", ""), {came.code}), came
        assert came.detail.startswith("Nothing was written. ")
        if not case["call"].get("race"):
            assert after == before
    for path, text in expect.get("final", {}).items():
        assert after[path][0] == content(text)
    for path in expect.get("absent", []):
        assert path not in after
    for text in expect.get("must_show", []):
        assert text in [line[2] for line in came.lines]
    _check_files(expect, came, before, after)


def _check_files(expect: dict[str, Any], came: Came, before: dict[str, Any], after: dict[str, Any]) -> None:
    now = {path: found[0] for path, found in after.items()}
    if "files" in expect and came.word == "applied":
        assert {path: now[path] for path in expect["files"]} == {p: content(t) for p, t in expect["files"].items()}
        assert set(now) == set(before) | set(expect["files"]), "something stray"
    if "files_any" in expect:
        choices = [{path: content(text) for path, text in each.items()} for each in expect["files_any"]]
        assert {path: now[path] for path in choices[0]} in choices
    for path, text in expect.get("tail_is", {}).items():
        assert now[path].endswith(content(text))
    for path, size in expect.get("size_is", {}).items():
        assert len(now[path]) == size
    for path, mode in expect.get("modes", {}).items():
        assert after[path][1] == int(mode, 8)


def _check_read(expect: dict[str, Any], came: Came) -> None:
    words = expect.get("any_of_results", [expect["result"]])
    assert ("refused" if came.code else "ok") in words, came
    if came.code:
        assert came.code in CODES.get(expect.get("reason", ""), {came.code}), came
        return
    told = came.told
    shown = [[number, text] for number, _, text in told["lines"]]
    known = {
        "lines": shown,
        "total": told["line_count"],
        "truncated": told["truncated"],
        "next": told["next"],
        "final_newline": told["final_newline"],
        "newline": told["newline"],
        "bom": told["bom"],
        "marked_partial": told["cut"],
    }
    for name, value in known.items():
        assert expect.get(name, value) == value
    assert len(shown) <= expect.get("line_count_max", len(shown))
    assert len(json.dumps(told)) <= expect.get("max_bytes", 1 << 20)
    assert expect.get("has_line", shown and shown[0]) in ([*shown, []] if shown else [[], expect.get("has_line", [])])
    assert all(tag == "" if number in told["cut"] else len(tag) == 4 for number, tag, _ in told["lines"])
