"""What the sandbox engine promises in numbers, each beside plain Docker on the same runtime, in turn, in the same run.

    .venv/bin/python -m tests.bench.sandboxes [--runs 30] [--mb 100] [--boxes 10] [--creates 50] [--only commands,…]

Ratios are what counts; times only show how noisy the machine was. Prints one table at the end, keeps it as JSON.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench import report
from tests.bench.console import console
from tests.bench.plain import MB, Plain, charged_mb, held_mb, printing
from tests.gvisor.engines import Bench, new_config

Calls = Callable[[], object]
JAILED = {"memory_mb": 513}  # not the profile that is pooled
COLD = JAILED | {"network": "none"}  # as the plain container has none


@dataclass
class Row:
    """`ours` and `plain` in `unit`; `reach` is a ratio, or for memory a difference."""

    what: str
    ours: float
    plain: float | None
    unit: str = "ms"
    reach: str = ""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.plain if self.plain else None

    def shown(self) -> str:
        plain = f"{self.plain:9.1f}" if self.plain is not None else f"{'':9}"
        ratio = f"{self.ratio:6.2f}" if self.ratio is not None else f"{'':6}"
        return f"{self.what:<56}{self.ours:9.1f} {plain} {self.unit:<5}{ratio}  {self.reach:<10} {self.note}"


def timed(call: Calls) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def in_turn(runs: int, *calls: Calls, warm: int = 3) -> list[list[float]]:
    """Each call's times; all meet the same noise."""
    for _ in range(min(warm, runs)):
        for call in calls:
            call()
    rows = [[timed(call) for call in calls] for _ in range(runs)]
    return [list(column) for column in zip(*rows, strict=True)]


def p95(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.95))]


def spread(times: list[float]) -> str:
    return f"p95 {p95(times):.0f}, n={len(times)}"


@contextmanager
def engine_only() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as var:
        bench = Bench(new_config(Path(var)))
        try:
            bench.do(bench.engine.start())
            yield bench
        finally:
            bench.close()


def commands(asked: argparse.Namespace) -> Iterator[Row]:
    """One short command, in a sandbox that is there."""
    with console() as ours, engine_only() as bench, plain_docker(asked) as plain:
        sandbox, box = ours.create(), bench.create()
        rest, engine, exec_ = in_turn(
            asked.runs, lambda: ours.run(sandbox, "true"), lambda: bench.run(box, "true"), lambda: plain.exec_("true")
        )
        base = statistics.median(exec_)
        yield Row("run true over REST / docker exec", statistics.median(rest), base, reach="≤ 0.4", note=spread(rest))
        yield Row("run true, engine alone / docker exec", statistics.median(engine), base, note=spread(engine))


def creates(asked: argparse.Namespace) -> Iterator[Row]:
    """A new sandbox to the first output of a command in it."""
    with console() as ours, plain_docker(asked) as plain:

        def created(**options: object) -> None:
            sandbox = ours.create(**options)
            assert ours.run(sandbox, "echo", "made")["stdout"] == "made\n"
            made.append(sandbox)

        made: list[str] = []
        runs = max(3, asked.runs // 3)
        times: dict[str, list[float]] = {"pooled": [], "cold": [], "cold, with its network": [], "docker run": []}
        created()  # the pool keeps nothing ready for a workspace that makes nothing
        claimed_before = ours.claimed()
        for _ in range(runs):
            ours.pool_is_full()
            times["pooled"].append(timed(created))
            ours.pool_is_full()
            times["cold"].append(timed(lambda: created(**COLD)))
            ours.pool_is_full()
            times["cold, with its network"].append(timed(lambda: created(**JAILED)))
            times["docker run"].append(timed(lambda: plain.cold(mem_limit="512m", nano_cpus=10**9)))
            plain.tidy()
            while made:
                ours.delete(made.pop())
        time.sleep(1.1)
        assert ours.claimed() - claimed_before >= runs, "what was to come from the pool was made cold"
        base = statistics.median(times["docker run"])
        for name, reach in (("pooled", "≤ 0.25"), ("cold", "≤ 1.5"), ("cold, with its network", "")):
            note = spread(times[name])
            yield Row(
                f"create {name} to first output / docker run",
                statistics.median(times[name]),
                base,
                reach=reach,
                note=note,
            )


def memory(asked: argparse.Namespace) -> Iterator[Row]:
    """An idle sandbox beside a bare `sleep`: what the machine holds for it in all, and what its own limit counts."""
    with engine_only() as bench, plain_docker(asked) as plain:

        def weighed(ids: list[str]) -> list[float]:
            time.sleep(3)
            ways = (held_mb, charged_mb)
            return [statistics.mean(way(plain.client, each) for each in ids) for way in ways]

        for count in sorted({1, asked.boxes}):
            ids = [bench.create().container_id for _ in range(count)]
            ours = weighed(ids)
            for each in ids:
                bench.do(bench.engine.remove(each))
            bare = weighed([plain.sleeping(mem_limit="512m", nano_cpus=10**9) for _ in range(count)])
            plain.tidy()
            for what, mine, theirs in zip(("held for", "charged to"), ours, bare, strict=True):
                note = f"{mine - theirs:+.1f} MB"
                yield Row(f"idle memory {what} each of {count} / bare sleep", mine, theirs, "MB", "≤ +15 MB", note)


def storm(asked: argparse.Namespace) -> Iterator[Row]:
    """So many creates at once; each comes to something or is refused, and what is there is what was answered."""
    with console() as ours, plain_docker(asked) as plain:
        found: list[tuple[int, float, str]] = []

        def create() -> None:
            with ours.served.api("workspace", timeout_s=600) as api:
                began = time.perf_counter()
                answer = api.post("/sandboxes", json={})
                found.append((answer.status_code, (time.perf_counter() - began) * 1000, answer.json().get("id", "")))

        def at_once(call: Calls, count: int) -> float:
            with ThreadPoolExecutor(count) as threads:
                return timed(lambda: [future.result() for future in [threads.submit(call) for _ in range(count)]])

        wall = at_once(create, asked.creates)
        made = [(took, sandbox) for status, took, sandbox in found if status == 201]
        by_status = Counter(status for status, _, _ in found)
        live = ours.api.get("/sandboxes", params={"limit": 100}).raise_for_status().json()
        assert len(made) == sum(each["status"] == "running" for each in live), "what is there is not what was told"
        beside = at_once(lambda: plain.cold(mem_limit="512m"), len(made))
        for _, sandbox in made:
            ours.delete(sandbox)
        told = ", ".join(f"{count} × {status}" for status, count in sorted(by_status.items()))
        times = [took for took, _ in made]
        yield Row(f"{asked.creates} creates at once, wall / {len(made)} docker run", wall, beside, note=told)
        yield Row("  each that came to something", statistics.median(times), None, note=f"p50; {spread(times)}")


def volume(asked: argparse.Namespace) -> Iterator[Row]:
    """Much output and large files, and what the server's memory makes of them."""
    with console() as ours, plain_docker(asked) as plain:
        mb, runs, sandbox = asked.mb, max(3, asked.runs // 10), ours.create()

        def output() -> None:
            assert ours.run(sandbox, *printing(mb))["stdout_bytes"] == mb * MB

        for what, mine, theirs in (
            ("of a command's output", output, plain.output),
            ("file in, raw", lambda: ours.put(sandbox, mb), plain.put),
            ("file out, raw", lambda: ours.get(sandbox, mb), plain.get),
        ):
            mine(), theirs()
            with ours.watched() as grown:
                times = in_turn(runs, mine, theirs, warm=0)
            medians = [statistics.median(each) for each in times]
            note = f"{mb * 1000 / medians[0]:.0f} MB/s; server +{grown[0]:.1f} MB (< 20)"
            yield Row(f"{mb} MB {what} / docker exec", *medians, note=note)
        with ours.watched() as grown:
            ours.begin_to_get(sandbox, for_s=5)
        yield Row(
            f"{mb} MB file to a client that does not read", grown[0], None, "MB", "< 20 MB", "the server's memory"
        )


@contextmanager
def plain_docker(asked: argparse.Namespace) -> Iterator[Plain]:
    plain = Plain(asked.mb)
    try:
        yield plain
    finally:
        plain.close()


SECTIONS = {"commands": commands, "creates": creates, "memory": memory, "storm": storm, "volume": volume}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--boxes", type=int, default=10)
    parser.add_argument("--creates", type=int, default=50)
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, by comma")
    asked = parser.parse_known_args()[0]  # what the other scripts are asked for comes here as well
    rows: list[Row] = []
    for name in asked.only.split(","):
        print(f"{name} …", flush=True)
        rows += SECTIONS[name](asked)
    print(f"\n{'':<56}{'ours':>9} {'Docker':>9} {'':<5}{'ratio':>6}  {'reach':<10} p50 unless said")
    for row in rows:
        print(row.shown())
    report.keep("sandboxes", options=vars(asked), rows=[asdict(row) | {"ratio": row.ratio} for row in rows])


if __name__ == "__main__":
    main()
