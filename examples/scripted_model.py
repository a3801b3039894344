"""Stands in for a model: a small server that speaks as OpenAI's and Anthropic's APIs do, and plays one script.

It writes a program, runs it, sees that its output is wrong, finds and reads the line, edits it by number and tag, and
runs it again. So `agent_loop.py` can be tried without a model; with one, this file is not used.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROGRAM = 'def greet(name):\n    return "Hello" + name\n\n\nprint(greet("Sandgate"))\n'
FIXED = '    return "Hello, " + name'
DONE = "greet.py is fixed: it prints “Hello, Sandgate”."


def next_step(results: list[str]) -> tuple[str, dict] | str:
    """The next tool and its arguments, or what is said at the end; from what the tools have answered so far."""
    if results and re.search(r"\b(denied|refused|expired)\b", results[-1], re.IGNORECASE):
        return f"I stop here. I was told: {results[-1]}"
    steps = (
        lambda: ("write", {"path": "greet.py", "content": PROGRAM}),
        lambda: ("run", {"command": "python3 greet.py"}),
        lambda: ("grep", {"pattern": "return", "glob": "*.py"}),
        lambda: ("read", {"path": "greet.py"}),
        lambda: ("edit", edit(results[-1])),
        lambda: ("run", {"command": "python3 greet.py"}),
    )
    return steps[len(results)]() if len(results) < len(steps) else DONE


def edit(read: str) -> dict:
    """As a model does it: the version from the first line, the line's number and tag from its beginning."""
    version = re.search(r"version ([0-9a-f]{12})", read)
    line = re.search(r"^(\d+[a-z]{4})\|    return", read, re.MULTILINE)
    assert version, read
    assert line, read
    change = {"do": "replace", "from": line[1], "lines": [FIXED]}
    return {"path": "greet.py", "version": version[1], "edits": [change]}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = openai(asked) if self.path.endswith("/chat/completions") else anthropic(asked)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not of interest."""


def openai(asked: dict) -> dict:
    assert all(tool["type"] == "function" for tool in asked["tools"])
    results = [message["content"] for message in asked["messages"] if message["role"] == "tool"]
    step = next_step(results)
    message: dict = {"role": "assistant", "content": step if isinstance(step, str) else None}
    if not isinstance(step, str):
        call = {"name": step[0], "arguments": json.dumps(step[1])}
        message["tool_calls"] = [{"id": f"call_{len(results)}", "type": "function", "function": call}]
    return {"choices": [{"message": message}]}


def anthropic(asked: dict) -> dict:
    assert all("input_schema" in tool for tool in asked["tools"])
    contents = [message["content"] for message in asked["messages"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    results = [block["content"] for block in blocks if block["type"] == "tool_result"]
    step = next_step(results)
    if isinstance(step, str):
        return {"content": [{"type": "text", "text": step}]}
    return {"content": [{"type": "tool_use", "id": f"toolu_{len(results)}", "name": step[0], "input": step[1]}]}


def start() -> str:
    """Its address, on this machine alone, until the program ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
