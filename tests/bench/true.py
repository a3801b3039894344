"""`true` over REST, ungated and warm, beside `docker exec` of it on the same runtime, in turn, in one run.

    .venv/bin/python -m tests.bench.true [--runs 60]

Starts a console of its own on the engine that `bin/up` or `bin/test` brought up, and a plain container beside it.
Prints the ratio of the medians; absolute times only to see how noisy the machine was.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import docker

from sandboxes.engine import EngineConfig
from tests.bench import report
from tests.gvisor.engines import engine_var
from tests.gvisor.served import Served

REACH = 0.4


@contextmanager
def plain_container() -> Iterator[Callable[[], None]]:
    """`docker exec true` as the sandbox's user, through Docker's API, in a sleeping container."""
    engine = EngineConfig.load(engine_var(), "")
    client = docker.DockerClient(engine.docker_host)
    container = client.containers.run(
        engine.image, ["sleep", "600"], runtime=engine.runtime, network_mode="none", detach=True
    )

    def run() -> None:
        asked = client.api.exec_create(container.id, ["true"], user="agent", workdir="/work")
        client.api.exec_start(asked["Id"])
        assert client.api.exec_inspect(asked["Id"])["ExitCode"] == 0

    try:
        yield run
    finally:
        container.remove(force=True)
        client.close()


@contextmanager
def over_rest() -> Iterator[Callable[[], None]]:
    with tempfile.TemporaryDirectory() as place:
        served = Served(Path(place) / "var").up()
        try:
            with served.api("workspace") as api:
                sandbox = api.post("/sandboxes", json={}).raise_for_status().json()["id"]

                def run() -> None:
                    answer = api.post(f"/sandboxes/{sandbox}/commands", json={"argv": ["true"]}).raise_for_status()
                    assert answer.json()["exit_code"] == 0

                yield run
        finally:
            served.close()


def timed(run: Callable[[], None]) -> float:
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1000


def shown(name: str, times: list[float]) -> str:
    cuts = statistics.quantiles(times, n=20)
    return f"{name:<24} p50 {statistics.median(times):6.1f} ms   p95 {cuts[-1]:6.1f} ms   min {min(times):6.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    runs = parser.parse_args().runs
    with plain_container() as by_exec, over_rest() as by_rest:
        for run in (by_exec, by_rest):
            for _ in range(5):
                run()
        pairs = [(timed(by_rest), timed(by_exec)) for _ in range(runs)]
    rest, exec_ = (list(times) for times in zip(*pairs, strict=True))
    print(shown("true over REST", rest))
    print(shown("docker exec true", exec_))
    ratio = statistics.median(rest) / statistics.median(exec_)
    print(f"ratio of medians {ratio:.2f} (to reach: {REACH}), {runs} runs each, in turn")
    report.keep("true", runs=runs, rest_ms=rest, docker_exec_ms=exec_, ratio=ratio, reach=REACH)


if __name__ == "__main__":
    main()
