"""The engine by itself, without server and database, beside plain Docker on the same runtime, in turn, in one run.

    .venv/bin/python -m tests.bench.engine [--runs 60]

Ratios are what counts; absolute times only show how noisy the machine was.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sandboxes.engine import Box
from tests.bench import report
from tests.gvisor.engines import Bench, new_config

MB = 1 << 20
EXEC_REACH = 0.3

measured: dict[str, object] = {}


class Plain:
    """A sleeping container on the same image and runtime."""

    def __init__(self, bench: Bench) -> None:
        self.client, self.config = bench.docker(), bench.config
        options = {"runtime": self.config.runtime, "network_mode": "none", "detach": True, "mem_limit": "512m"}
        self.container = self.client.containers.run(self.config.image, ["sleep", "3600"], **options)

    def exec_(self, *argv: str) -> None:
        asked = self.client.api.exec_create(self.container.id, list(argv), user="agent", workdir="/work")
        self.client.api.exec_start(asked["Id"])
        assert self.client.api.exec_inspect(asked["Id"])["ExitCode"] == 0

    def run(self) -> None:
        options = {"runtime": self.config.runtime, "network_mode": "none", "remove": True}
        self.client.containers.run(self.config.image, ["true"], **options)

    def close(self) -> None:
        self.container.remove(force=True)
        self.client.close()


def timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1000


def in_turn(runs: int, *calls: Callable[[], object]) -> list[list[float]]:
    for call in calls:
        for _ in range(min(3, runs)):
            call()
    rows = [[timed(call) for call in calls] for _ in range(runs)]
    return [list(column) for column in zip(*rows, strict=True)]


def line(name: str, times: list[float]) -> str:
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"  {name:<30} p50 {statistics.median(times):7.1f} ms   p95 {p95:7.1f}   min {ordered[0]:7.1f}"


def compare(title: str, names: tuple[str, ...], columns: list[list[float]], reach: float | None = None) -> None:
    """The last column is what the others are measured by."""
    base = statistics.median(columns[-1])
    measured[title] = {name: statistics.median(times) for name, times in zip(names, columns, strict=True)}
    print(title)
    for name, times in zip(names, columns, strict=True):
        ratio = statistics.median(times) / base
        print(f"{line(name, times)}   ratio {ratio:.2f}{f' (reach {reach})' if reach and times is columns[0] else ''}")


def commands(bench: Bench, box: Box, plain: Plain, runs: int) -> None:
    ways = (
        lambda: bench.run(box, "true"),
        lambda: bench.bash(box, "true"),
        lambda: plain.exec_("bash", "--noprofile", "--norc", "-c", "true"),
        lambda: plain.exec_("true"),
    )
    names = ("true", "bash -c true", "docker exec bash -c true", "docker exec true")
    compare("one command", names, in_turn(runs, *ways), EXEC_REACH)


def creates(bench: Bench, plain: Plain, runs: int) -> None:
    def ours() -> None:
        box = bench.create()
        bench.run(box, "true")
        bench.do(bench.engine.remove(box.container_id))

    compare("cold: create, run true, remove", ("ours", "docker run --rm true"), in_turn(runs, ours, plain.run))


def volume(bench: Bench, box: Box) -> None:
    print("throughput")
    content = os.urandom(100 * MB)
    for name, call in (
        ("100 MB of output", lambda: bench.bash(box, "head -c 104857600 /dev/zero")),
        ("100 MB written", lambda: bench.write(box, "/work/big", content)),
        ("100 MB read", lambda: bench.read(box, "/work/big")),
    ):
        took_ms = statistics.median(timed(call) for _ in range(3))
        measured[name] = took_ms
        print(f"  {name:<30} {took_ms:7.0f} ms  {100_000 / took_ms:6.0f} MB/s")
    small = os.urandom(1024)
    print(line("1 KB written", [timed(lambda: bench.write(box, "/work/small", small)) for _ in range(40)]))
    print(line("1 KB read", [timed(lambda: bench.read(box, "/work/small")) for _ in range(40)]))


def memory_mb(container_id: str) -> float:
    """What the container's limit counts."""
    for name in (f"memory/docker/{container_id}/memory.usage_in_bytes", f"docker/{container_id}/memory.current"):
        path = Path("/sys/fs/cgroup") / name
        if path.exists():
            return int(path.read_text()) / MB
    return float("nan")


def measure(bench: Bench, box: Box, plain: Plain, runs: int) -> None:
    time.sleep(2)
    ours, bare = memory_mb(box.container_id), memory_mb(plain.container.id)
    print(f"idle memory: ours {ours:.1f} MB, a bare sleep {bare:.1f} MB")
    commands(bench, box, plain, runs)
    volume(bench, box)
    creates(bench, plain, max(3, runs // 6))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as var:
        bench = Bench(new_config(Path(var)))
        try:
            bench.do(bench.engine.start())
            box = bench.create()
            with closing(Plain(bench)) as plain:
                measure(bench, box, plain, runs)
            report.keep("engine", runs=runs, medians_ms=measured)
        finally:
            bench.close()


if __name__ == "__main__":
    main()
