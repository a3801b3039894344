"""Large files read side by side: all come, the server's memory stays bounded, and small ones wait for none of them."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from .engines import CHECKOUT
from .served import Served

FILES, SIZE_MB = 8, 50
ANOTHER_KEY = """
from console.workspaces import keys
from console.workspaces.models import Member
admin = Member.objects.get(permissions__name="sandboxes:run")
print(keys.make_member_key(admin, name="third", may=["sandboxes:run"], by=None)[1])
"""


class Reader:
    def __init__(self, served: Served) -> None:
        self.served = served
        self.member = served.api("workspace")
        self.sandbox = served.api("agent").post("/sandboxes", json={}).raise_for_status().json()["id"]
        lines = f"head -c {SIZE_MB}M /dev/urandom > big; printf small > small; sha256sum big | cut -c -64"
        answer = self.member.post(f"/sandboxes/{self.sandbox}/commands", json={"command": lines})
        self.sha256 = answer.raise_for_status().json()["stdout"].strip()

    def read(self, name: str, timeout_s: float = 100, *, key: str = "workspace") -> dict[str, Any]:
        with self.served.api(key, timeout_s) as client:
            answer = client.get(f"/sandboxes/{self.sandbox}/files", params={"path": name, "encoding": "base64"})
            found: dict[str, Any] = answer.raise_for_status().json()
            return found

    def half_read(self, key: str) -> httpx.Response:
        """The beginning of a big one; its client takes no more, until it is closed."""
        client = self.served.api(key)
        url = f"/sandboxes/{self.sandbox}/files"
        request = client.build_request("GET", url, params={"path": "big", "encoding": "base64"})
        return client.send(request, stream=True)

    def somebody_else(self) -> httpx.Client:
        """With a key of their own, which no other call here has."""
        command = [sys.executable, "manage.py", "shell", "--no-imports", "-v0", "-c", ANOTHER_KEY]
        done = subprocess.run(
            command, cwd=CHECKOUT, env=self.served.environment, capture_output=True, text=True, check=True
        )
        headers = {"X-API-Key": done.stdout.split()[-1]}
        return httpx.Client(base_url=f"{self.served.url}/v1", headers=headers, timeout=30, trust_env=False)

    def resident_mb(self) -> float:
        assert self.served.process
        status = Path(f"/proc/{self.served.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    served = Served(tmp_path / "var").up()
    yield Reader(served)
    served.close()


def test_eight_big_reads_at_once_all_come_and_take_little(reader: Reader) -> None:
    before, most, over = reader.resident_mb(), 0.0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(0.02):
            most = max(most, reader.resident_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(FILES) as pool:
        keys = ["agent", "workspace"] * (FILES // 2)
        hashes = set(pool.map(lambda key: reader.read("big", key=key)["sha256"], keys))
    over.set()
    watcher.join()
    print(f"{FILES} reads of {SIZE_MB} MiB: {before:.0f} MB before, {most:.0f} MB at the most")
    assert hashes == {reader.sha256}
    assert most - before < 300


def test_as_many_stalled_readers_as_there_are_turns_hold_up_nobody_and_take_no_memory(reader: Reader) -> None:
    client = reader.somebody_else()
    before = reader.resident_mb()
    held = [reader.half_read(key) for key in ("agent", "workspace")]
    for _ in range(2):
        answer = client.get(f"/sandboxes/{reader.sandbox}/files", params={"path": "big", "encoding": "base64"})
        assert answer.raise_for_status().json()["sha256"] == reader.sha256
    grown = reader.resident_mb() - before
    print(f"two stalled readers of {SIZE_MB} MiB: {grown:.0f} MB more")
    assert grown < 2 * SIZE_MB
    for response in held:
        whole = json.loads(response.read())  # what was begun still comes whole
        assert hashlib.sha256(base64.b64decode(whole["content"])).hexdigest() == reader.sha256


def test_who_takes_long_over_a_big_one_holds_up_nobody_else_and_gives_up_the_turn_by_leaving(reader: Reader) -> None:
    held = reader.half_read("agent")
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(reader.read, "big", key="agent")
        began = time.monotonic()
        assert reader.read("small", key="agent")["content"] == "c21hbGw="
        assert time.monotonic() - began < 1
        with pytest.raises(httpx.ReadTimeout):
            reader.read("big", timeout_s=1, key="agent")  # leaves while it waits
        assert reader.read("big", timeout_s=20)["sha256"] == reader.sha256
        assert not waiting.done()
        held.close()
        assert waiting.result(timeout=20)["sha256"] == reader.sha256
        assert {reader.read("big", key="agent")["sha256"] for _ in range(2)} == {reader.sha256}
    log = os.linesep.join(reader.served.printed)
    assert "Traceback" not in log, log
