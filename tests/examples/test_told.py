"""What the examples say when something is wrong: to whoever starts them a line, to the model what it can act on."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
REFUSAL = {"code": "unauthenticated", "detail": "This key is unknown. Make a new one."}


class Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(REFUSAL).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def client(url: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, EXAMPLES / "mcp_client.py", "--url", url]
    kept = {name: value for name, value in os.environ.items() if name != "SANDGATE_KEY"}
    return subprocess.run(command, env={**kept, **env}, capture_output=True, text=True, timeout=60)


def test_the_mcp_client_says_in_one_line_what_is_wrong(refusing: str) -> None:
    told = {
        "SANDGATE_KEY": client(refusing),
        REFUSAL["detail"]: client(refusing, SANDGATE_KEY="sg_agent_x"),
        "Nothing answers at http://127.0.0.1:9": client("http://127.0.0.1:9", SANDGATE_KEY="sg_agent_x"),
    }
    for words, done in told.items():
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert words in done.stderr


@pytest.fixture
def refused() -> Any:
    spec = importlib.util.spec_from_file_location("agent_loop", EXAMPLES / "agent_loop.py")
    assert spec
    assert spec.loader
    loop = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loop)
    return loop.Sandgate("http://127.0.0.1:9", "", "c")._refused


def test_a_model_is_given_the_text_of_a_refusal(refused: Any) -> None:
    assert refused({"code": "stale_edit", "detail": "It changed.", "text": "It changed.\n1abc|x"}) == (
        "It changed.\n1abc|x"
    )


def test_without_a_text_a_model_is_given_all_that_helps(refused: Any) -> None:
    answer = {
        "code": "stale_edit",
        "detail": "It changed.",
        "version": "3f9c",
        "lines": [[1, "abc", "x"], [2, None, ""]],
    }
    assert refused(answer) == "stale_edit: It changed.\nThe file is at version 3f9c now.\n1abc|x\n2|"
    assert "Right would be: " in refused({"code": "invalid", "detail": "No.", "example": {"path": "a"}})
