"""What reading with tags and editing cost, how long an edit holds all else still, and whether anything is lost.

    .venv/bin/python -m tests.bench.edits [--runs 20] [--edits 1000] [--only cost,still,races,…]

Ratios are what counts; times only show how noisy the machine was. Prints one table at the end, keeps it as JSON.
"""

import argparse
import statistics
from collections.abc import Iterator
from typing import Any

from sandboxes.engine import Box, EditRequest
from tests.bench import report
from tests.bench.sandboxes import Row, engine_only, in_turn, p95, spread
from tests.gvisor.engines import Bench, OnePass
from tests.gvisor.racing import WRITERS, race

LARGE = "line=$(printf '%99s' x); yes \"$line\" | head -c 1073741824 > /work/large"
PROCESSES = "for i in $(seq {0}); do sleep 600 & done; echo begun; wait"
"""In the background, of one command."""


class Edited:
    def __init__(self, bench: Bench, box: Box, path: str, lines: int) -> None:
        self.bench, self.box, self.path = bench, box, path
        self.held_ms: list[float] = []
        self._count = 0
        bench.write(box, path, b"0\n" + b"some line of a program, or of prose\n" * lines)

    def view(self, **part: Any) -> dict[str, Any]:
        return self.bench.do(self.box.view(OnePass(self.box.sandbox_id, "read"), self.path, **part))

    def edit(self) -> None:
        """Read, and edited as read."""
        seen, self._count = self.view(limit=1), self._count + 1
        edits = [{"do": "replace", "from": f"1{seen['lines'][0][1]}", "lines": [str(self._count)]}]
        request = EditRequest(self.path, seen["version"], edits)
        done = self.bench.do(self.box.edit(OnePass(self.box.sandbox_id, "edit"), request))
        self.held_ms.append(done.held_us / 1000)

    def by_hand(self, command: str) -> None:
        assert self.bench.bash(self.box, command).code == 0


def cost(asked: argparse.Namespace) -> Iterator[Row]:
    """Beside what an agent would run by hand in the same sandbox."""
    with engine_only() as bench:
        box = bench.create(memory_mb=513, disk_mb=3000)
        for name, lines in (("100 lines", 100), ("100,000 lines (3.6 MB)", 100_000)):
            file = Edited(bench, box, "/work/f", lines)
            ours, plain = in_turn(
                asked.runs, lambda file=file: file.view(limit=200), lambda file=file: file.by_hand("head -200 f")
            )
            yield Row(f"read {name} / head", statistics.median(ours), statistics.median(plain), note=spread(ours))
            ours, plain = in_turn(
                asked.runs, file.edit, lambda file=file: file.by_hand("head -1 f; sed -i '1s/.*/x/' f")
            )
            yield Row(
                f"read, edit {name} / sed -i", statistics.median(ours), statistics.median(plain), note=spread(ours)
            )


def large(asked: argparse.Namespace) -> Iterator[Row]:
    """A file of 1 GB in a sandbox of 128 MB: the version is of all of it."""
    with engine_only() as bench:
        box = bench.create(memory_mb=128, disk_mb=3000)
        bench.bash(box, LARGE, timeout_s=300)
        file = Edited(bench, box, "/work/small", 1)
        file.path = "/work/large"
        runs = max(3, asked.runs // 5)
        for where, offset in (("its beginning", 1), ("its end", 10_737_000)):
            ours, plain = in_turn(
                runs, lambda offset=offset: file.view(offset=offset), lambda: file.by_hand("sha256sum large"), warm=1
            )
            yield Row(
                f"read 1 GB, {where} / sha256sum", statistics.median(ours), statistics.median(plain), note=spread(ours)
            )


def still(asked: argparse.Namespace) -> Iterator[Row]:
    for processes in (0, 20, 100):
        with engine_only() as bench:
            box = bench.create(memory_mb=513, processes=300)
            command = bench.begin(bench.bashing(box, PROCESSES.format(processes), timeout_s=300))
            file = Edited(bench, box, "/work/f", 200)
            for _ in range(asked.runs * 5):
                file.edit()
            command.cancel()
            held = file.held_ms
            yield Row(f"all else held still, {processes} processes", statistics.median(held), None, note=spread(held))


def races(asked: argparse.Namespace) -> Iterator[Row]:
    with engine_only() as bench:
        box = bench.create(memory_mb=513)
        for way in WRITERS:
            found = race(bench, box, way, f"/work/{way.split()[0]}.txt", asked.edits)
            held = found.held_ms
            assert found.there == found.written, f"{way}: {found.lost} lost"
            note = f"p95 {p95(held):.1f}, worst {max(held):.1f}, {found.lost} of {len(found.written)} notes lost, "
            yield Row(
                f"{way}: {len(held)} edits, held", statistics.median(held), None, note=f"{note}{found.refused} refused"
            )


PARTS = {"cost": cost, "large": large, "still": still, "races": races}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--only", default=",".join(PARTS))
    asked = parser.parse_known_args()[0]
    report.in_parts("edits", PARTS, asked, edits=asked.edits)


if __name__ == "__main__":
    main()
