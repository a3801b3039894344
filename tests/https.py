"""A real HTTPS server on loopback, with a certificate of its own, for whatever posts to webhooks."""

import http.server
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Got:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Endpoint:
    """`status` is what it answers; `drip_s`: a byte of the answer each so many seconds, for a minute; `says`: instead
    of any HTTP."""

    url: str
    certificate: Path
    trusting: ssl.SSLContext
    status: int = 204
    drip_s: float = 0
    says: bytes = b""
    got: list[Got] = field(default_factory=list)


@contextmanager
def serving(directory: Path) -> Iterator[Endpoint]:
    key, certificate = directory / "key", directory / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,DNS:hooks.test", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    url = f"https://localhost:{server.server_port}/hook?x=1"
    endpoint = Endpoint(url, certificate, ssl.create_default_context(cafile=str(certificate)))
    server.endpoint = endpoint  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Door(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        here: Endpoint = self.server.endpoint  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        here.got.append(Got(self.path, dict(self.headers), body))
        if here.says:
            self.wfile.write(here.says)
            return None
        if here.drip_s:
            return self._drip(here.drip_s)
        self.send_response(here.status)
        self.send_header("Location", "https://localhost/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _drip(self, each_s: float) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        until = time.monotonic() + 60
        try:
            while time.monotonic() < until:
                self.wfile.write(b"x")
                time.sleep(each_s)
        except OSError:
            pass

    def log_message(self, *_: Any) -> None:
        pass
