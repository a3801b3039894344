"""An agent at work, without a model: it writes a data file and a script, runs the script and fetches the report.

    SANDGATE_KEY=sg_agent_… python3 examples/report_agent.py [--url http://127.0.0.1:8000] [--out report.xlsx]

Each write and the run wait until a person approves them in the console. Standard library only: this is all that an
agent needs to speak. The data: yearly mean sunspot numbers 1700–2008, National Geophysical Data Center of the United
States (now NOAA's National Centers for Environmental Information), public domain.
"""

import argparse
import base64
import hashlib
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
ENDED_WELL = "succeeded"


class Refused(Exception):
    """The console or a reviewer said no; the message is what they said."""


class Console:
    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url.rstrip("/"), key

    def call(self, method: str, path: str, body: dict | None = None) -> tuple[int, dict]:
        """Status and JSON. Waits up to two minutes: a gated call answers when a person has decided."""
        request = urllib.request.Request(
            f"{self.url}/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"X-API-Key": self.key, "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def gated(self, path: str, body: dict, what: str) -> dict:
        """Makes the call. When nobody has decided by the time it answers, waits for the outcome of its action."""
        print(f"… {what}: waiting for a person to approve it", flush=True)
        status, answer = self.call("POST", path, body)
        while status == 409 and answer["code"] == "pending_approval":
            action = self.wait(answer["action_id"])
            if action["status"] != ENDED_WELL:
                raise Refused(f"{what}: {action['status']}. {action['outcome']['reason']}")
            status, answer = 200, action["outcome"]["result"]
        if status >= 400:
            raise Refused(f"{what}: {answer['detail']}")
        print(f"✓ {what}", flush=True)
        return answer

    def wait(self, action_id: str) -> dict:
        """Long-polls until the action has ended. Asking again is always safe."""
        while True:
            status, action = self.call("GET", f"/actions/{action_id}?wait=55")
            if status >= 400:
                raise Refused(action["detail"])
            if action["outcome"] is not None:
                return action


def make_report(console: Console, out: Path) -> None:
    status, sandbox = console.call("POST", "/sandboxes", {"label": "sunspot report"})
    if status >= 400:
        raise Refused(sandbox["detail"])
    place = f"/sandboxes/{sandbox['id']}"
    try:
        for name in ("sunspots.csv", "make_report.py"):
            content = (HERE / name).read_text()
            console.gated(f"{place}/files", {"path": f"/work/{name}", "content": content}, f"write /work/{name}")
        ran = console.gated(f"{place}/commands", {"command": "python3 /work/make_report.py"}, "run make_report.py")
        print(ran["stdout"], end="")
        if ran["exit_code"] != 0:
            raise Refused(f"make_report.py ended with exit code {ran['exit_code']}:\n{ran['stderr']}")
        fetch(console, place, out)
    finally:
        console.call("DELETE", place)


def fetch(console: Console, place: str, out: Path) -> None:
    query = urllib.parse.urlencode({"path": "/work/report.xlsx", "encoding": "base64"})
    status, file = console.call("GET", f"{place}/files?{query}")
    if status >= 400:
        raise Refused(file["detail"])
    content = base64.b64decode(file["content"])
    if hashlib.sha256(content).hexdigest() != file["sha256"]:
        raise Refused("report.xlsx changed on the way; run this again.")
    out.write_bytes(content)
    print(f"✓ {out}, {len(content)} bytes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    url = os.environ.get("SANDGATE_URL", "http://127.0.0.1:8000")
    parser.add_argument("--url", default=url, help=f"the console's address; default: SANDGATE_URL or {url}")
    parser.add_argument("--key", default=os.environ.get("SANDGATE_KEY"), help="an agent's key; default: SANDGATE_KEY")
    parser.add_argument(
        "--out", type=Path, default=Path("report.xlsx"), help="where the report goes; default: report.xlsx"
    )
    chosen = parser.parse_args()
    if not chosen.key:
        parser.error("no key: set SANDGATE_KEY to the agent_key that stands in first-run.json")
    try:
        make_report(Console(chosen.url, chosen.key), chosen.out)
    except urllib.error.URLError as error:
        print(
            f"✗ Nothing answers at {chosen.url} ({error.reason}). Does bin/up run? Another port: --url", file=sys.stderr
        )
        return 1
    except Refused as error:
        print(f"✗ {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
