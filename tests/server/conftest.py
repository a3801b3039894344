"""A real server in a process of its own, and a client that sends and reads exactly the bytes a test says."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


class Served:
    def __init__(self, state: Path, *, stop_s: int = 3) -> None:
        own = {"SERVER_TEST_STATE": str(state), "SERVER_TEST_STOP_S": str(stop_s)}
        env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.server.settings", **own}
        self.log = (state / "log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.server.serve"],
            cwd=CHECKOUT, env=env, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip
        self.pid = self.process.pid
        self.port = int(self.process.stdout.readline() or self._died())

    def _died(self) -> str:
        raise AssertionError(self.logged())

    def logged(self) -> str:
        return Path(self.log.name).read_text()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()

    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def written_mb(self) -> float:
        """Bytes given to write(2): what is spooled to a disk counts, what is sent to a socket does not."""
        return int(Path(f"/proc/{self.pid}/io").read_text().split("wchar:")[1].split()[0]) / 1e6

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def handles(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def connect(self) -> "Client":
        return connect(self.port)

    def get(self, path: str) -> dict:
        with self.connect() as client:
            client.send(f"GET {path} HTTP/1.1")
            return client.answer().json

    def seen(self, name: str, *, at_least: int, within_s: float = 5) -> int:
        """What the site counted, once it is enough."""
        end = time.monotonic() + within_s
        while (found := self.get("/seen").get(name, 0)) < at_least and time.monotonic() < end:
            time.sleep(0.02)
        assert found >= at_least, f"{name}: {found}\n{self.logged()}"
        return found


class Answer:
    def __init__(self, head: bytes, body: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
        self.body = body

    @property
    def json(self) -> dict:
        return json.loads(self.body)


class Client:
    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.buffer = sock, b""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(
        self, first_line: str, *headers: str, body: bytes = b"", key: str = "good", host: str = "localhost"
    ) -> None:
        lines = [first_line, f"Host: {host}", *([f"X-API-Key: {key}"] if key else []), *headers, "", ""]
        self.sock.sendall("\r\n".join(lines).encode("latin-1") + body)

    def read_until(self, end: bytes) -> bytes:
        while end not in self.buffer:
            if not (data := self.sock.recv(1 << 16)):
                raise EOFError(self.buffer)
            self.buffer += data
        found, _, self.buffer = self.buffer.partition(end)
        return found

    def head(self) -> Answer:
        return Answer(self.read_until(b"\r\n\r\n"), b"")

    def answer(self) -> Answer:
        found = self.head()
        size = int(found.headers.get("content-length", 0))
        while len(self.buffer) < size:
            if not (data := self.sock.recv(1 << 16)):
                raise EOFError(self.buffer)
            self.buffer += data
        found.body, self.buffer = self.buffer[:size], self.buffer[size:]
        return found

    def drain(self) -> int:
        """The number of bytes until the server closes or resets."""
        size, self.buffer = len(self.buffer), b""
        with suppress(ConnectionResetError):
            while data := self.sock.recv(1 << 20):
                size += len(data)
        return size

    def is_closed(self) -> bool:
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


def connect(port: int) -> Client:
    return Client(socket.create_connection(("127.0.0.1", port), timeout=10))


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.close()


@pytest.fixture
def served_alone(tmp_path: Path) -> Iterator[Served]:
    """For tests that measure memory or stop the server."""
    server = Served(tmp_path)
    yield server
    server.close()
