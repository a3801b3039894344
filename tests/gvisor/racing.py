"""Writers that change a file as fast as they can, and edits of its first line meanwhile."""

import textwrap
from dataclasses import dataclass, field
from typing import Any

from sandboxes.engine import Box, EditRequest
from sandboxes.errors import FileError

from .engines import Bench, OnePass

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
    path, left, done = sys.argv[1], int(sys.argv[2]), sys.argv[1] + ".done"
    def note():
        global left
        left = 0 if os.path.exists(done) else left - 1
        time.sleep(random.random() * 0.002)
        print(left)
        return f"note {left}\\n"
"""
NOTES = 1_000_000
_REFUSED = {"stale_edit", "file_not_found", "bad_edit"}


@dataclass
class Race:
    """`written` and `there`: the writer's notes, as it says and as the file has them."""

    written: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    held_ms: list[float] = field(default_factory=list)
    refused: int = 0

    @property
    def lost(self) -> int:
        return len(set(self.written) - set(self.there))


def race(bench: Bench, box: Box, way: str, path: str, edits: int) -> Race:
    """Until so many edits were made. A writer that puts back what it read a moment ago may take an edit away, as any
    two writers do to each other; its notes all have to be there at the end."""
    bench.write(box, path, b"0\n" + b"filler\n" * 50)
    code = textwrap.dedent(WRITER) + textwrap.dedent(WRITERS[way])
    writer = bench.begin(bench.running(box, "python3", "-c", code, path, str(NOTES), timeout_s=600))
    found = Race()
    while len(found.held_ms) < edits:
        assert not writer.done(), writer.result()
        _edit(bench, box, path, found)
    bench.write(box, f"{path}.done", b"")
    ran = writer.result(60)
    assert ran.code == 0, ran.err
    found.written = [f"note {left}" for left in ran.text.split()]
    found.there = [line for line in bench.read(box, path).decode().splitlines() if line.startswith("note ")]
    bench.bash(box, f"rm {path}*")
    return found


def _edit(bench: Bench, box: Box, path: str, found: Race) -> None:
    try:
        seen = bench.do(box.view(OnePass(box.sandbox_id, "read"), path, limit=1))
        edits: list[Any] = [
            {"do": "replace", "from": f"1{seen['lines'][0][1]}", "lines": [str(len(found.held_ms) + 1)]}
        ]
        request = EditRequest(path, seen["version"], edits)
        done = bench.do(box.edit(OnePass(box.sandbox_id, "edit"), request))
    except (FileError, IndexError) as error:
        if isinstance(error, FileError) and error.code not in _REFUSED:
            raise
        found.refused += 1
        return
    found.held_ms.append(done.held_us / 1000)
