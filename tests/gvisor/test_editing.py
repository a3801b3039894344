"""Edits where they are made: each case of the file tools, and writers that do not wait for anybody."""

import base64
import json
import textwrap
from typing import Any

import pytest

from sandboxes.engine import EditRequest, WriteRequest
from sandboxes.errors import FileError
from tests.file_cases import Came, ask, cases, check, content, laid

from .engines import OnePass
from .racing import WRITERS, race

pytestmark = pytest.mark.gvisor

LAY = """
    import base64, json, os, sys
    for root, setup in json.load(open("/work/setups")).items():
        os.makedirs(root)
        os.chdir(root)
        for path, data in setup["files"].items():
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            open(path, "wb").write(base64.b64decode(data))
        for path, mode in setup.get("modes", {}).items():
            os.chmod(path, int(mode, 8))
        for path, target in setup.get("symlinks", {}).items():
            os.symlink(target, path)
        for path, target in setup.get("hardlinks", {}).items():
            os.link(target, path)
        for path in setup.get("fifos", []):
            os.mkfifo(path)
"""
SEE = """
    import base64, json, os, stat, sys
    found = {}
    for folder, _, names in os.walk(sys.argv[1]):
        for name in names:
            path = os.path.join(folder, name)
            known = os.lstat(path)
            kind = "link" if stat.S_ISLNK(known.st_mode) else "file" if stat.S_ISREG(known.st_mode) else "other"
            data = os.readlink(path).encode() if kind == "link" else open(path, "rb").read() if kind == "file" else b""
            mode = known.st_mode & 0o7777 if kind == "file" else 0
            found[os.path.relpath(path, sys.argv[1])] = [base64.b64encode(data).decode(), mode, kind]
    print(json.dumps(found))
"""


def python(bench, box, code: str, *words: str, **more: Any) -> str:
    ran = bench.run(box, "python3", "-c", textwrap.dedent(code), *words, **more)
    assert ran.code == 0, ran.err
    return str(ran.text)


def view(bench, box, path: str, **part: Any) -> dict[str, Any]:
    return bench.do(box.view(OnePass(box.sandbox_id, "read"), path, **part))


def edit(bench, box, path: str, version: str, edits: list[Any], **seen: str) -> dict[str, Any]:
    request = EditRequest(path, version, edits, **seen)
    return dict(bench.do(box.edit(OnePass(box.sandbox_id, "edit"), request)).report)


def write(bench, box, path: str, data: bytes, version: str | None, mode: int | None = None) -> Any:
    async def blocks():
        yield data

    request = WriteRequest(path, len(data), mode=mode, version=version)
    return bench.do(box.write(OnePass(box.sandbox_id, "write"), request, blocks()))


def replaced(seen: dict[str, Any], number: int, *lines: str) -> list[Any]:
    tag = next(line[1] for line in seen["lines"] if line[0] == number)
    return [{"do": "replace", "from": f"{number}{tag}", "lines": list(lines)}]


class There:
    """One case's files, in the sandbox."""

    def __init__(self, bench, box, root: str) -> None:
        self.bench, self.box, self.root = bench, box, root
        self.before: dict[str, Any] = {}

    def view(self, path: str, **part: Any) -> Came:
        return self._came(lambda: view(self.bench, self.box, f"{self.root}/{path}", **part))

    def edit(self, path: str, version: str, edits: list[Any]) -> Came:
        self.before = self.snapshot()
        return self._came(lambda: edit(self.bench, self.box, f"{self.root}/{path}", version, edits))

    def create(self, path: str, data: bytes) -> Came:
        self.before = self.snapshot()
        return self._came(lambda: write(self.bench, self.box, f"{self.root}/{path}", data, "").report)

    def _came(self, call: Any) -> Came:
        try:
            return Came(dict(call()))
        except FileError as error:
            return Came({}, error.code, error.detail, error.more.get("lines", []), error.more.get("version", ""))

    def step(self, step: dict[str, Any]) -> None:
        ((what, files),) = step.items()
        if what == "delete":
            self.bench.run(self.box, "rm", f"{self.root}/{files}")
        elif what == "keep_mtime":
            self.bench.run(self.box, "touch", "-r", "/work/setups", f"{self.root}/{files}")
        else:
            for path, text in files.items():
                self.bench.write(self.box, f"{self.root}/{path}", content(text))

    def snapshot(self) -> dict[str, Any]:
        found = json.loads(python(self.bench, self.box, SEE, self.root))
        return {path: (base64.b64decode(data), mode, kind) for path, (data, mode, kind) in found.items()}


def test_each_case_as_on_any_machine(bench, box) -> None:
    """Those that race the tool between two of its steps are shown with the steps themselves; here, by writers at full
    speed."""
    here = [case for case in cases("edit", "read") if "race" not in case["call"]]
    setups = {}
    for case in here:
        files = {path: base64.b64encode(data).decode() for path, data in laid(case["setup"]).items()}
        setups[f"/work/cases/{case['id']}"] = case["setup"] | {"files": files}
    bench.write(box, "/work/setups", json.dumps(setups).encode())
    python(bench, box, LAY)
    for case in here:
        there = There(bench, box, f"/work/cases/{case['id']}")
        came = ask(case, there)
        after = there.snapshot() if case["kind"] == "edit" else {}
        check(case, came, there.before, after)
    assert len(here) == 87
    bench.bash(box, "rm -r /work/cases /work/setups")


@pytest.mark.parametrize("way", WRITERS)
def test_nothing_is_lost_that_a_writer_at_full_speed_wrote(bench, box, way: str) -> None:
    """`tests/bench/edits.py` does it a thousand times."""
    found = race(bench, box, way, f"/work/{way.split()[0]}.txt", 40)
    print(
        f"{way}: {len(found.held_ms)} edits, {found.refused} refused, {found.lost} of {len(found.written)} notes lost"
    )
    assert found.there == found.written
    assert len(found.written) > 20
