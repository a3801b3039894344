"""A console, an agent, a member and a reviewer with one sandbox of the agent's, for tests of files as bytes."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from .served import Served, until

MB = 1 << 20


class Files:
    def __init__(self, served: Served) -> None:
        self.served = served
        self.agent, self.member, self.review = (served.api(key) for key in ("agent", "workspace", "review"))
        self.sandbox = self.agent.post("/sandboxes", json={}).raise_for_status().json()["id"]
        self.raw = f"/sandboxes/{self.sandbox}/files/raw"
        self.pool = ThreadPoolExecutor(4)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.member.get(self.raw, params={"path": path}, **more)

    def put(self, path: str, content: Any, **query: Any) -> httpx.Response:
        return self.member.put(self.raw, params={"path": path, **query}, content=content)

    def put_as_agent(self, path: str, content: bytes, **more: Any) -> "Any":
        return self.pool.submit(self.agent.put, self.raw, params={"path": path}, content=content, **more)

    def run(self, command: str) -> str:
        answer = self.member.post(f"/sandboxes/{self.sandbox}/commands", json={"command": command})
        assert answer.raise_for_status().json()["exit_code"] == 0, answer.text
        return str(answer.json()["stdout"])

    def last_action(self) -> dict[str, Any]:
        return dict(self.member.get("/actions", params={"sandbox": self.sandbox}).json()["items"][0])

    def ended_action(self) -> dict[str, Any]:
        return dict(until(lambda: (found := self.last_action())["status"] != "running" and found))

    def ended(self, action_id: str) -> dict[str, Any]:
        return dict(self.member.get(f"/actions/{action_id}", params={"wait": 20}).raise_for_status().json())

    def pending(self) -> list[dict[str, Any]]:
        return list(self.agent.get("/actions", params={"status": "pending"}).json()["items"])

    def decide(self, action: dict[str, Any], verdict: str = "approve") -> None:
        body = {"verdict": verdict, "digest": action["digest"], "reason": "no"}
        self.review.post(f"/actions/{action['id']}/decision", json=body).raise_for_status()

    def resident_mb(self) -> float:
        assert self.served.process
        status = Path(f"/proc/{self.served.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def kept_bytes(self) -> int:
        return sum(path.stat().st_size for path in (self.served.var / "blobs").rglob("*") if path.is_file())

    def connect(self, method: str, path: str, *headers: str) -> socket.socket:
        """A request whose body, or whose reading, is the test's."""
        address = urlsplit(self.served.url)
        sock = socket.create_connection((address.hostname, address.port), timeout=30)
        key = self.served.first_run["workspace_key"]
        lines = [f"{method} /v1{self.raw}?path={quote(path)} HTTP/1.1", "Host: localhost", f"X-API-Key: {key}"]
        sock.sendall("\r\n".join([*lines, *headers, "", ""]).encode())
        return sock
