"""The example of an agent loop, with its scripted model, over both kinds of model API; a reviewer's key decides."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from .served import CHECKOUT, Served
from .test_example import Reviewer

pytestmark = pytest.mark.gvisor


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("loop") / "var").up()
    yield console
    console.close()


def loop(served: Served, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "examples/agent_loop.py", "--url", served.url, *words],
        cwd=CHECKOUT, env={**served.environment, "SANDGATE_KEY": served.first_run["agent_key"]},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def reviewed(served: Served, verdict: str, *words: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    reviewer = Reviewer(served, verdict)
    reviewer.start()
    try:
        done = loop(served, *words)
    finally:
        reviewer.over.set()
        reviewer.join(10)
    return done, [tool for tool, _ in reviewer.seen]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_it_writes_runs_finds_edits_and_runs_again(served, api):
    done, asked = reviewed(served, "approve", "--api", api, "--conversation", f"with-{api}")
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.rstrip().endswith("it prints “Hello, Sandgate”.")
    assert "HelloSandgate" in done.stdout
    assert "  Hello, Sandgate" in done.stdout
    assert asked == ["write", "run", "edit", "run"]


def test_denied_it_hears_why_and_stops(served):
    done, asked = reviewed(served, "deny", "--conversation", "denied")
    assert done.returncode == 0, done.stderr
    assert "I stop here." in done.stdout
    assert "Not on a Sunday." in done.stdout
    assert asked == ["write"]


class Clumsy(BaseHTTPRequestHandler):
    """A model whose first call is none; then it says what it was told."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        told = [message["content"] for message in asked["messages"] if message["role"] == "tool"]
        call = {"id": "1", "type": "function", "function": {"name": "glob", "arguments": "{pattern: *.py"}}
        message = {"role": "assistant", "content": told[-1]} if told else {"role": "assistant", "tool_calls": [call]}
        body = json.dumps({"choices": [{"message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_model_that_calls_a_tool_wrongly_is_shown_how_to_call_it(served):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Clumsy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = loop(served, "--model-url", f"http://127.0.0.1:{server.server_port}/v1", "--conversation", "clumsy")
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    assert "Right would be: " in done.stdout
    assert '"pattern"' in done.stdout


def test_without_a_console_it_says_where_nothing_answers(served):
    quick = (
        "import sys, time; time.sleep = lambda s: None; sys.path.insert(0, 'examples'); import agent_loop;"
        "sys.argv[1:] = ['--url', 'http://127.0.0.1:9']; sys.exit(agent_loop.main())"
    )
    env = {**served.environment, "SANDGATE_KEY": "sg_agent_x"}
    done = subprocess.run([sys.executable, "-c", quick], cwd=CHECKOUT, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Nothing answers at http://127.0.0.1:9" in done.stderr
