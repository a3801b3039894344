"""Each case of edits and reads, with the runner's own steps, on this machine."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.engine.on_host import OnHost
from tests.file_cases import Came, ask, cases, check, content, laid


class Here:
    def __init__(self, root: Path, case: dict[str, Any]) -> None:
        self.root = root
        self.host = OnHost()
        self.before: dict[str, Any] = {}
        setup = case["setup"]
        for path, data in laid(setup).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        for path, mode in setup.get("modes", {}).items():
            (root / path).chmod(int(mode, 8))
        for path, target in setup.get("symlinks", {}).items():
            (root / path).symlink_to(target)
        for path, target in setup.get("hardlinks", {}).items():
            (root / path).hardlink_to(root / target)
        for path in setup.get("fifos", []):
            os.mkfifo(root / path)

    def view(self, path: str, **part: Any) -> Came:
        told = self.host.look(
            "view", path=f"{self.root}/{path}", **{"offset": None, "limit": None, "form": "text", **part}
        )
        return _refused(told) if "error" in told else Came(json.loads(told["content"]))

    def edit(self, path: str, version: str, edits: list[dict[str, Any]]) -> Came:
        self.before = self.snapshot()
        message = {"path": f"{self.root}/{path}", "version": version, "base": None, "becomes": None}
        return _came(self.host.change("edit", json.dumps(edits).encode(), **message))

    def create(self, path: str, data: bytes) -> Came:
        self.before = self.snapshot()
        return _came(self.host.write(f"{self.root}/{path}", data, version=""))

    def step(self, step: dict[str, Any]) -> None:
        ((what, files),) = step.items()
        if what == "delete":
            (self.root / files).unlink()
        elif what == "keep_mtime":
            os.utime(self.root / files, ns=(self.times[files],) * 2)
        else:
            self.times = {path: (self.root / path).stat().st_mtime_ns for path in files if (self.root / path).exists()}
            for path, text in files.items():
                place = self.root / (path + "~" if what == "replace_by_rename" else path)
                place.write_bytes(content(text))
                place.rename(self.root / path)

    def snapshot(self) -> dict[str, Any]:
        return {str(path.relative_to(self.root)): _what(path) for path in self.root.rglob("*") if _is_leaf(path)}


def _is_leaf(path: Path) -> bool:
    return path.is_symlink() or not path.is_dir()


def _what(path: Path) -> tuple[bytes, int, str]:
    if path.is_symlink():
        return os.readlink(path).encode(), 0, "link"
    if not path.is_file():
        return b"", 0, "other"
    return path.read_bytes(), path.stat().st_mode & 0o7777, "file"


def _came(result: dict[str, Any]) -> Came:
    return _refused(result) if "error" in result else Came(result["ok"]["report"])


def _refused(result: dict[str, Any]) -> Came:
    error = result["error"]
    return Came({}, error["code"], error["detail"], error.get("lines", []), error.get("version", ""))


@pytest.mark.parametrize("case", cases("edit", "read"), ids=lambda case: case["id"])
def test_case(tmp_path: Path, case: dict[str, Any]) -> None:
    here = Here(tmp_path, case)

    def race() -> None:
        for step in case["call"].get("race", []):
            here.step(step)

    here.host.world.before_last_look = race
    came = ask(case, here)
    check(case, came, here.before, here.snapshot())
