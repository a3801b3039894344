"""What `glob` and `grep` cost, beside ripgrep that an agent runs by hand in the same sandbox, in turn.

    .venv/bin/python -m tests.bench.search [--runs 5] [--files 50000] [--only tree,…]

Ratios are what counts; times only show how noisy the machine was. Prints one table at the end, keeps it as JSON.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from typing import Any

from sandboxes.engine import Box, GlobRequest, GrepRequest
from tests.bench import report
from tests.bench.sandboxes import Row, engine_only, in_turn, spread
from tests.gvisor.engines import Bench, OnePass

TREE = """
import os, sys
for folder in range(int(sys.argv[1]) // 100):
    place = f"/work/tree/part{folder // 25:02}/{('node_modules', 'src', 'docs')[folder % 3]}/d{folder:03}"
    os.makedirs(place, exist_ok=True)
    for number in range(100):
        with open(f"{place}/f{number:03}.{('py', 'txt', 'js', 'md')[number % 4]}", "w") as file:
            file.write("some line of a program, or of prose\\n" * 20)
            if number == 7 and folder % 10 == 0:
                file.write("def needle(): pass\\n")
"""
BY_HAND = "--hidden --glob '!.git'"
LONG_LINE = 'python3 -c \'print("x" * 300_000 + "needle" + "y" * 300_000)\' > /work/long.txt'
LARGE = """
line=$(printf '%99s' x); yes "$line" | head -c 1073741824 > /work/large.txt; printf '\\nneedle\\n' >> /work/large.txt
"""


class Searched:
    """One box, and the same search twice: by the tool, and by hand."""

    def __init__(self, bench: Bench, **spec: Any) -> None:
        self.bench = bench
        self.box: Box = bench.create(**spec)

    def glob(self, path: str, pattern: str, **more: Any) -> dict[str, Any]:
        request = GlobRequest(path=path, pattern=pattern, **more)
        return self.bench.do(self.box.glob(OnePass(self.box.sandbox_id, "glob"), request))

    def grep(self, path: str, pattern: str, **more: Any) -> dict[str, Any]:
        request = GrepRequest(path=path, pattern=pattern, **more)
        return self.bench.do(self.box.grep(OnePass(self.box.sandbox_id, "grep"), request))

    def by_hand(self, command: str) -> None:
        assert self.bench.bash(self.box, command).code in (0, 1)

    def make(self, command: str) -> None:
        ran = self.bench.bash(self.box, command, timeout_s=300)
        assert ran.code == 0, ran.err


def rows(runs: int, compared: dict[str, tuple[Callable[[], Any], Callable[[], Any]]]) -> Iterator[Row]:
    for what, (tool, hand) in compared.items():
        ours, plain = in_turn(runs, tool, hand, warm=1)
        yield Row(what, statistics.median(ours), statistics.median(plain), reach="≤ 1.5", note=spread(ours))


def tree(asked: argparse.Namespace) -> Iterator[Row]:
    """Many small files: half a second to walk, seconds to open."""
    with engine_only() as bench:
        searched = Searched(bench, memory_mb=513, disk_mb=2048)
        bench.write(searched.box, "/work/tree.py", TREE.encode())
        searched.make(f"python3 /work/tree.py {asked.files}")
        found = searched.grep("/work/tree", "needle")
        assert (found["files_searched"], found["at_least"]) == (asked.files // 100 * 100, False), found
        rg = f"cd /work/tree; rg {BY_HAND}"
        yield from rows(asked.runs, {
            f"glob **/*.py, {asked.files} files / rg --files": (
                lambda: searched.glob("/work/tree", "**/*.py"), lambda: searched.by_hand(f"{rg} --files -g '*.py'"),
            ),
            "glob **/*.py, the latest first / rg --files --sortr modified": (
                lambda: searched.glob("/work/tree", "**/*.py", sort="recent"),
                lambda: searched.by_hand(f"{rg} --files -g '*.py' --sortr modified"),
            ),
            f"grep needle, {asked.files} files / rg": (
                lambda: searched.grep("/work/tree", "needle"), lambda: searched.by_hand(f"{rg} -n needle"),
            ),
            "grep what is everywhere, a page / rg | head": (
                lambda: searched.grep("/work/tree", "program"),
                lambda: searched.by_hand(f"{rg} -n program | head -100"),
            ),
            "grep needle in **/*.py / rg -g": (
                lambda: searched.grep("/work/tree", "needle", glob="**/*.py"),
                lambda: searched.by_hand(f"{rg} -n needle -g '**/*.py'"),
            ),
        })  # fmt: skip


def large(asked: argparse.Namespace) -> Iterator[Row]:
    """A line of 600 KB, a file of 1 GB."""
    with engine_only() as bench:
        searched = Searched(bench, memory_mb=513, disk_mb=3000)
        searched.make(LONG_LINE)
        searched.make(LARGE)
        (match,) = searched.grep("/work/long.txt", "needle")["matches"]
        assert (match["column"], "needle" in match["text"]) == (300_001, True), match
        (match,) = searched.grep("/work/large.txt", "needle")["matches"]
        assert match["text"] == "needle"
        yield from rows(asked.runs, {
            f"grep, {name} / rg": (
                lambda path=path: searched.grep(path, "needle"),
                lambda path=path: searched.by_hand(f"rg -n needle {path}"),
            )
            for name, path in (("a line of 600 KB", "/work/long.txt"), ("a file of 1 GB", "/work/large.txt"))
        })  # fmt: skip


PARTS = {"tree": tree, "large": large}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--only", default=",".join(PARTS))
    asked = parser.parse_known_args()[0]
    report.in_parts("search", PARTS, asked, files=asked.files)


if __name__ == "__main__":
    main()
