"""Edits where they are made: each case of the file tools, and writers that do not wait for anybody."""

import base64
import json
import textwrap
from hashlib import sha256
from typing import Any

import pytest

from sandboxes.engine import EditRequest, WriteRequest
from sandboxes.errors import FileError
from tests.file_cases import Came, ask, cases, check, content, laid

from .engines import OnePass

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


WRITERS = {
    "append": """
        while left:
            with open(path, "a") as file: file.write(note())
    """,
    "append, held open": """
        file = open(path, "a", buffering=1)
        while left: file.write(note())
    """,
    "rewrite in place": """
        while left:
            with open(path, "r+") as file:
                text = file.read()
                file.seek(0)
                file.write(text + note())
    """,
    "replace by rename": """
        while left:
            text = open(path).read()
            open(path + ".new", "w").write(text + note())
            os.rename(path + ".new", path)
    """,
}
WRITER = """
    import os, random, sys, time
    path, left = sys.argv[1], int(sys.argv[2])
    def note():
        global left
        left -= 1
        time.sleep(random.random() * float(sys.argv[3]))
        return f"note {left}\\n"
"""
EDITS, NOTES = 40, 400
BUSY_S = 0.004


@pytest.mark.parametrize("way", WRITERS)
def test_nothing_is_lost_that_a_writer_at_full_speed_wrote(bench, box, way: str) -> None:
    """Every note is there, or was in what a writer itself took away: whoever rewrites from what they read may lose an
    edit, as any two writers do; no edit loses theirs."""
    path = f"/work/{way.split(',')[0].replace(' ', '-')}.txt"
    bench.write(box, path, b"0\n" + b"filler\n" * 50)
    code = textwrap.dedent(WRITER) + textwrap.dedent(WRITERS[way])
    command = bench.begin(bench.running(box, "python3", "-c", code, path, str(NOTES), str(BUSY_S), timeout_s=120))
    done = refused = 0
    while not command.done() and done < EDITS:
        try:
            seen = view(bench, box, path)
            edit(bench, box, path, seen["version"], replaced(seen, 1, str(done + 1)))
            done += 1
        except FileError as error:
            assert error.code in ("stale_edit", "file_not_found", "bad_edit"), error
            refused += 1
    assert command.result(120).code == 0
    text = bench.read(box, path).decode()
    notes = [line for line in text.splitlines() if line.startswith("note ")]
    print(f"{way}: {done} edits done, {refused} refused, {len(notes)} of {NOTES} notes there")
    assert done > 0
    assert notes == [f"note {left}" for left in range(NOTES - 1, -1, -1)]
    bench.run(box, "rm", path)
