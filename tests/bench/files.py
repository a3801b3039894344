"""A large file over REST as bytes, each way, beside `docker exec cat` through a pipe on the same runtime, in one run.

    .venv/bin/python -m tests.bench.files [--runs 5] [--mb 100]

Starts a console of its own on the engine that `bin/up` or `bin/test` brought up, and a plain container beside it.
Prints ratios of the medians (below 1: we are faster), and by how much the server's memory grew meanwhile.
"""

import argparse
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import httpx

from sandboxes.engine import EngineConfig
from tests.bench import report
from tests.gvisor.engines import engine_var
from tests.gvisor.served import Served

MB = 1 << 20
BLOCK = os.urandom(MB)
Ways = dict[str, Callable[[], None]]


class Plain:
    """A sleeping container on the same image and runtime; files go through the pipe of an exec."""

    def __init__(self, mb: int) -> None:
        engine = EngineConfig.load(engine_var(), "")
        self.mb, self.client = mb, docker.DockerClient(engine.docker_host)
        options = {"runtime": engine.runtime, "network_mode": "none", "detach": True}
        self.container = self.client.containers.run(engine.image, ["sleep", "3600"], **options)

    def ways(self) -> Ways:
        return {"in": self.put, "out": self.get}

    def put(self) -> None:
        asked = self._asked("cat > /tmp/f; wc -c < /tmp/f", stdin=True)
        wire = self.client.api.exec_start(asked, socket=True)
        sock: socket.socket = getattr(wire, "_sock", wire)
        for _ in range(self.mb):
            sock.sendall(BLOCK)
        sock.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: sock.recv(65536), b""))
        wire.close()
        assert str(self.mb * MB).encode() in said, said

    def get(self) -> None:
        got = sum(len(piece) for piece in self.client.api.exec_start(self._asked("cat /tmp/f"), stream=True))
        assert got == self.mb * MB

    def _asked(self, line: str, *, stdin: bool = False) -> str:
        options = {"user": "agent", "stdin": stdin, "workdir": "/"}
        return str(self.client.api.exec_create(self.container.id, ["sh", "-c", line], **options)["Id"])

    def close(self) -> None:
        self.container.remove(force=True)
        self.client.close()


class Rest:
    """The same over `/files/raw`, by a workspace key."""

    def __init__(self, served: Served, mb: int) -> None:
        self.served, self.mb, self.api = served, mb, served.api("workspace")
        self.sandbox = self.api.post("/sandboxes", json={}).raise_for_status().json()["id"]

    def ways(self) -> Ways:
        return {"in": self.put, "out": self.get}

    def put(self) -> None:
        answer = self._call("PUT", content=(BLOCK for _ in range(self.mb)))
        assert answer.json()["size"] == self.mb * MB

    def get(self) -> None:
        with self.api.stream("GET", self._url, params={"path": "f"}) as answer:
            assert sum(len(piece) for piece in answer.iter_raw()) == self.mb * MB

    @property
    def _url(self) -> str:
        return f"/sandboxes/{self.sandbox}/files/raw"

    def _call(self, method: str, **more: object) -> httpx.Response:
        return self.api.request(method, self._url, params={"path": "f"}, **more).raise_for_status()  # type: ignore[arg-type]

    def most_mb(self) -> float:
        """The most memory that the server has held so far."""
        assert self.served.process
        status = Path(f"/proc/{self.served.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024


@contextmanager
def rest(mb: int) -> Iterator[Rest]:
    with tempfile.TemporaryDirectory() as place:
        served = Served(Path(place) / "var").up()
        try:
            yield Rest(served, mb)
        finally:
            served.close()


def timed(run: Callable[[], None]) -> float:
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1000


def measured(ours: Ways, plain: Ways, mb: int, runs: int) -> dict[str, object]:
    """In turn, so that both meet the same noise."""
    found: dict[str, object] = {}
    for way, call in ours.items():
        pairs = [(timed(call), timed(plain[way])) for _ in range(runs)]
        mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
        found[way] = {"rest_ms": mine, "docker_exec_ms": theirs, "ratio": mine / theirs}
        speeds = " · ".join(f"{name} {mb * 1000 / ms:5.0f} MiB/s" for name, ms in (("REST", mine), ("exec", theirs)))
        print(f"{mb} MiB {way:<4} {speeds}   ratio {mine / theirs:.2f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mb", type=int, default=100)
    asked = parser.parse_args()
    plain = Plain(asked.mb)
    try:
        with rest(asked.mb) as ours:
            for way in (*ours.ways().values(), *plain.ways().values()):
                way()  # once, not counted
            before = ours.most_mb()
            found = measured(ours.ways(), plain.ways(), asked.mb, asked.runs)
            grew = ours.most_mb() - before
            print(f"the server's memory grew by {grew:.1f} MB")
            report.keep("files", runs=asked.runs, mb=asked.mb, grew_mb=grew, **found)
    finally:
        plain.close()


if __name__ == "__main__":
    main()
