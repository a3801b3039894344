"""A console of its own for a bench: `manage.py up` on the engine that `bin/` brought up, its memory, its metrics."""

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.bench.plain import BLOCK, MB
from tests.gvisor.served import Served, until

LOOKED_EVERY_S = 1.5
"""/metrics looks once a second."""


class Console:
    def __init__(self, served: Served) -> None:
        self.served = served
        self.api = served.api("workspace", timeout_s=600)
        self.bare = httpx.Client(base_url=served.url, timeout=30, trust_env=False)

    def create(self, **asked: Any) -> str:
        return str(self.api.post("/sandboxes", json=asked).raise_for_status().json()["id"])

    def delete(self, sandbox: str) -> None:
        self.api.delete(f"/sandboxes/{sandbox}").raise_for_status()

    def run(self, sandbox: str, *argv: str) -> dict[str, Any]:
        answer = self.api.post(f"/sandboxes/{sandbox}/commands", json={"argv": list(argv)}).raise_for_status()
        found: dict[str, Any] = answer.json()
        assert found["exit_code"] == 0, found
        return found

    def put(self, sandbox: str, mb: int) -> None:
        """A file of so many MB, as bytes."""
        content = (BLOCK for _ in range(mb))
        answer = self.api.put(f"/sandboxes/{sandbox}/files/raw", params={"path": "f"}, content=content)
        assert answer.raise_for_status().json()["size"] == mb * MB

    def get(self, sandbox: str, mb: int) -> None:
        with self.api.stream("GET", f"/sandboxes/{sandbox}/files/raw", params={"path": "f"}) as answer:
            assert sum(len(piece) for piece in answer.iter_raw()) == mb * MB

    def begin_to_get(self, sandbox: str, *, for_s: float) -> None:
        """Asks for the file and takes none of it."""
        with self.api.stream("GET", f"/sandboxes/{sandbox}/files/raw", params={"path": "f"}) as answer:
            answer.raise_for_status()
            time.sleep(for_s)

    def number(self, series: str) -> float:
        """From /metrics, which looks once a second."""
        found = re.search(rf"^{re.escape(series)} (\S+)$", self.bare.get("/metrics").text, re.MULTILINE)
        assert found, f"/metrics has no {series}"
        return float(found.group(1))

    def pool_is_full(self) -> None:
        """Until a sandbox can be claimed, and nothing else is being made that would take the machine's time."""
        time.sleep(LOOKED_EVERY_S)  # else the number may be of before the last claim, whose refill is under way
        until(lambda: self.number("sandgate_pool_depth") >= 1, within_s=120)

    def claimed(self) -> int:
        return int(self.number('sandgate_creates_total{how="pooled",outcome="ready"}'))

    @property
    def _pid(self) -> int:
        assert self.served.process
        return self.served.process.pid

    @contextmanager
    def watched(self) -> Iterator[list[float]]:
        """By how many MB the server's memory was above what it is now, at most, while this was open."""
        grown: list[float] = []
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")  # the peak begins anew
        before = self._status("VmRSS")
        yield grown
        grown.append(self._status("VmHWM") - before)

    def _status(self, name: str) -> float:
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.split(f"{name}:")[1].split()[0]) / 1024


@contextmanager
def console() -> Iterator[Console]:
    with tempfile.TemporaryDirectory() as place:
        served = Served(Path(place) / "var", SANDGATE_POOL_MOST="1").up()
        try:
            yield Console(served)
        finally:
            served.close()
