"""Each collected case of a protected path, where it is: tools are asked for edits and new files, commands for moving
and removing. The files were put there by a command, so they are sealed by the time."""

import base64
import json
from typing import Any

from tests.file_cases import Came, ask, cases, content, laid

from .test_editing import LAY, There, of, python, snapshot

REFUSALS = {"protected_path", "hard_link"}
ROOT = "/work/guarded"


class Guarded(There):
    def view(self, path: str, **part: Any) -> Came:
        return super().view(self._below(path), **part)

    def edit(self, path: str, version: str, edits: list[Any]) -> Came:
        return super().edit(self._below(path), version, edits)

    def step(self, step: dict[str, Any]) -> None:
        if "symlink" not in step:
            return super().step(step)
        self._has_changed = True
        for link, target in step["symlink"].items():
            self.bench.run(self.box, "ln", "-s", target, f"{self.root}/{link}")

    def _below(self, path: str) -> str:
        return path.removeprefix("{root}/")

    def by_command(self, call: dict[str, Any]) -> Came:
        words = ["mv", call["path"], call["to"]] if call["op"] == "move" else ["rm", "-f", call["path"]]
        ran = self.bench.run(self.box, *words, cwd=self.root)
        return Came({}, "protected_path" if ran.code else "")


def test_each_case_of_a_protected_path(bench, box) -> None:
    here = cases("protected")
    setups = {}
    for case in here:
        files = {path: base64.b64encode(data).decode() for path, data in laid(case["setup"]).items()}
        setups[f"{ROOT}/{case['id']}"] = case["setup"] | {"files": files}
    bench.write(box, "/work/setups", json.dumps(setups).encode())
    made = " ".join(f"{ROOT}/{case['id']}/{name}" for case in here for name in case["setup"].get("dirs", []))
    python(bench, box, LAY)
    bench.bash(box, f"mkdir -p {made}")
    before, came = snapshot(bench, box, ROOT), []
    for case in here:
        there = Guarded(bench, box, f"{ROOT}/{case['id']}", of(case, before))
        call = case["call"]
        told = there.by_command(call) if call["op"] in ("move", "delete") else ask(case, there)
        came.append((case, told, there.before))
    after = snapshot(bench, box, ROOT)
    wrong = {case["id"]: told for case, told, was in came if not right(case, told, was, of(case, after))}
    assert wrong == {}
    assert len(here) == 46


def right(case: dict[str, Any], told: Came, before: dict[str, Any], after: dict[str, Any]) -> bool:
    expect = case["expect"]
    if expect["result"] == "refused":
        return told.code in REFUSALS and after == before
    if expect["result"] == "ok":
        return [line[::2] for line in told.told["lines"]] == expect["lines"]
    files = {path: after[path][0] for path in expect["files"]}
    return told.word == expect["result"] and files == {path: content(text) for path, text in expect["files"].items()}
