"""The cases of `tests/data/file-tools.jsonl` that are about searching: their files, and whether an answer is right."""

import base64
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data" / "file-tools.jsonl"
Case = dict[str, Any]


def cases(kind: str) -> list[Case]:
    found = [json.loads(line) for line in DATA.read_text().splitlines() if line]
    return [case for case in found if case["kind"] == kind]


def files(case: Case) -> Iterator[tuple[str, bytes]]:
    setup = case["setup"]
    for name, text in setup.get("files", {}).items():
        is_coded = text.startswith("b64:")
        yield name, base64.b64decode(text[4:]) if is_coded else text.encode()
    for name, made in setup.get("generated", {}).items():
        yield name, (made["unit"] * made["times"] + made.get("suffix", "")).encode()


def packed(each: list[Case]) -> bytes:
    """A tar with a folder for each case."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for case in each:
            for name, content in files(case):
                entry = tarfile.TarInfo(f"{case['id']}/{name}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
            for name, target in case["setup"].get("symlinks", {}).items():
                entry = tarfile.TarInfo(f"{case['id']}/{name}")
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                tar.addfile(entry)
    return out.getvalue()


def check_paths(expect: dict[str, Any], paths: list[str], *, truncated: bool) -> None:
    known = {"paths", "count", "truncated", "must_include", "max_seconds"}
    assert set(expect) <= known, "a case that asks for what nothing here checks"
    assert paths == expect.get("paths", paths)
    assert len(paths) == expect.get("count", len(paths))
    assert truncated == expect.get("truncated", truncated)
    assert set(expect.get("must_include", ())) <= set(paths)
