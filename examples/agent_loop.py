"""An agent: a model that calls tools in a loop, and Sandgate that runs them in a sandbox once a person lets it.

    SANDGATE_KEY=sg_agent_… python3 examples/agent_loop.py "Fix greet.py."
        [--api openai|anthropic] [--model-url https://…/v1] [--model NAME] [--conversation NAME]

Any model behind an OpenAI- or Anthropic-style API; its key is in MODEL_KEY. Without --model-url a script stands in for
it. Started again with the same --conversation it works in the same sandbox. Standard library only.
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

TURNS = 50
TRIES = 5
WAIT_S = 55
SYSTEM = """You work in a sandbox, with tools. Some calls first wait for a person who approves or denies them: do not
repeat a call that was denied, read the reason. Say in one sentence what you did when you are done."""


class Failed(Exception):
    """What to tell whoever started this."""


def send(method: str, url: str, headers: dict[str, str], body: dict | None = None) -> tuple[int, dict, dict[str, str]]:
    """Status, JSON and headers. Tries again when nothing answers, and when it is told to come again later."""
    for tried in range(TRIES):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **headers}
        request = urllib.request.Request(url, method=method, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return response.status, json.load(response), dict(response.headers)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or tried == TRIES - 1:
                return error.code, json.loads(error.read() or b"{}"), dict(error.headers)
            time.sleep(float(error.headers.get("Retry-After") or 2**tried))
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            if tried == TRIES - 1:
                raise Failed(f"Nothing answers at {url} ({error}).") from error
            time.sleep(2**tried)
    raise AssertionError("not reached")


class Sandgate:
    """The tools of one agent, in one conversation; that has a sandbox of its own, made when first needed."""

    def __init__(self, url: str, key: str, conversation: str) -> None:
        self.url, self.key, self.conversation = f"{url.rstrip('/')}/v1", key, conversation

    def tools(self, format: str) -> list[dict]:
        """As the agent is pinned to them; handed to the model as they are."""
        status, answer, _ = send("GET", f"{self.url}/tools?format={format}", {"X-API-Key": self.key})
        if status != 200:
            raise Failed(f"The tools cannot be listed: {answer.get('detail', status)}")
        return answer["tools"]

    def use(self, tool: str, arguments: dict) -> str:
        """What the model reads. The Idempotency-Key is that of the call, not of the try: sent twice, it runs once."""
        headers = {"X-API-Key": self.key, "Prefer": f"wait={WAIT_S}", "Idempotency-Key": str(uuid.uuid4())}
        body = {"conversation": self.conversation, "arguments": arguments}
        status, action, _ = send("POST", f"{self.url}/tools/{tool}", headers, body)
        while status in (200, 202) and action["outcome"] is None:
            print(f"  … {action['id']} {action['status']}", flush=True)
            status, action, _ = send("GET", f"{self.url}/actions/{action['id']}?wait={WAIT_S}", {"X-API-Key": self.key})
        if status not in (200, 202):
            return self._refused(action)
        outcome = action["outcome"]
        return (outcome.get("result") or outcome)["text"]

    def _refused(self, answer: dict) -> str:
        """The model can do something about it: of bad arguments it is told the field, and shown right ones; of an edit
        that does not fit, the lines as they are now."""
        if text := answer.get("text"):  # says all of it already, in words for a model
            return text
        told = [f"{answer.get('code', 'error')}: {answer.get('detail', 'no reason was given')}"]
        if version := answer.get("version"):
            told.append(f"The file is at version {version} now.")
        told += [f"{number}{tag or ''}|{line}" for number, tag, line in answer.get("lines") or ()]
        if "example" in answer:
            told.append(f"Right would be: {json.dumps(answer['example'])}")
        return "\n".join(told)


class OpenAI:
    """Chat completions, as OpenAI and many others speak them."""

    format = "openai"

    def __init__(self, url: str, key: str, model: str, task: str, tools: list[dict]) -> None:
        self.url, self.headers = f"{url.rstrip('/')}/chat/completions", {"Authorization": f"Bearer {key}"}
        self.body = {"model": model, "tools": tools, "messages": [{"role": "system", "content": SYSTEM}]}
        self.messages: list[dict] = self.body["messages"]  # type: ignore[assignment]
        self.messages.append({"role": "user", "content": task})

    def ask(self) -> tuple[str, list[tuple[str, str, dict]]]:
        """What it says, and the calls it wants: id, tool, arguments."""
        message = asked(self.url, self.headers, self.body)["choices"][0]["message"]
        self.messages.append(message)
        calls = message.get("tool_calls") or []
        named = [(call["id"], call["function"]["name"], read(call["function"]["arguments"])) for call in calls]
        return message.get("content") or "", named

    def tell(self, results: list[tuple[str, str]]) -> None:
        self.messages += [{"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in results]


class Anthropic:
    """Messages, as Anthropic and some others speak them."""

    format = "anthropic"

    def __init__(self, url: str, key: str, model: str, task: str, tools: list[dict]) -> None:
        self.url, self.headers = f"{url.rstrip('/')}/messages", {"x-api-key": key, "anthropic-version": "2023-06-01"}
        self.messages: list[dict] = [{"role": "user", "content": task}]
        self.body = {"model": model, "max_tokens": 8000, "system": SYSTEM, "tools": tools, "messages": self.messages}

    def ask(self) -> tuple[str, list[tuple[str, str, dict]]]:
        content = asked(self.url, self.headers, self.body)["content"]
        self.messages.append({"role": "assistant", "content": content})
        text = "".join(block["text"] for block in content if block["type"] == "text")
        return text, [(block["id"], block["name"], block["input"]) for block in content if block["type"] == "tool_use"]

    def tell(self, results: list[tuple[str, str]]) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": call_id, "content": text} for call_id, text in results]
        self.messages.append({"role": "user", "content": blocks})


def asked(url: str, headers: dict[str, str], body: dict) -> dict:
    status, answer, _ = send("POST", url, headers, body)
    if status != 200:
        raise Failed(f"The model's API answered {status}: {json.dumps(answer)[:500]}")
    return answer


def read(arguments: str) -> dict:
    """A model may write anything; what is no JSON object becomes arguments that are refused, with an example."""
    try:
        found = json.loads(arguments or "{}")
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"not_json": arguments[:200]}


def work(model: OpenAI | Anthropic, sandgate: Sandgate) -> str:
    """Until the model asks for nothing more."""
    for _ in range(TURNS):
        text, calls = model.ask()
        if not calls:
            return text
        results = []
        for call_id, tool, arguments in calls:
            print(f"→ {tool} {json.dumps(arguments, ensure_ascii=False)[:200]}", flush=True)
            results.append((call_id, sandgate.use(tool, arguments)))
            print("\n".join(f"  {line}" for line in results[-1][1].split("\n")[:12]), flush=True)
        model.tell(results)
    raise Failed(f"The model was not done after {TURNS} turns.")


def stand_in() -> str:
    sys.path.insert(0, str(Path(__file__).parent))
    import scripted_model

    return scripted_model.start()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="?", default="Write greet.py, run it, and fix it.")
    parser.add_argument("--url", default=os.environ.get("SANDGATE_URL", "http://127.0.0.1:8000"), help="the console's")
    parser.add_argument("--conversation", default=f"loop-{uuid.uuid4().hex[:8]}", help="a name; again, to go on there")
    parser.add_argument("--api", choices=("openai", "anthropic"), default="openai")
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--model-url", help="up to and with /v1; without it a script stands in for a model")
    chosen = parser.parse_args()
    if not (key := os.environ.get("SANDGATE_KEY")):
        parser.error("no key: set SANDGATE_KEY to the agent_key that stands in first-run.json")
    sandgate = Sandgate(chosen.url, key, chosen.conversation)
    api = OpenAI if chosen.api == "openai" else Anthropic
    try:
        url, model_key = chosen.model_url or stand_in(), os.environ.get("MODEL_KEY", "")
        model = api(url, model_key, chosen.model, chosen.task, sandgate.tools(api.format))
        print(work(model, sandgate))
    except Failed as error:
        print(f"✗ {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
