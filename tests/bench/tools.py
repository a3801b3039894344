"""What an agent's tools cost over HTTP, beside the same command on the sandbox's own address, and over MCP, in turn.

    .venv/bin/python -m tests.bench.tools [--runs 40]

Ratios are what counts; times only show how noisy the machine was. Prints one table at the end, keeps it as JSON.
"""

import argparse
import asyncio
import logging
import statistics
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.bench import report
from tests.bench.console import Console, console
from tests.bench.sandboxes import Row, in_turn, spread

LINES = "".join(f"line {n} of a file that an agent reads\n" for n in range(1, 201))


class Tools:
    """By a workspace key, so that nobody is asked; one conversation."""

    def __init__(self, served: Console) -> None:
        self.console, self.number = served, 0
        self.sandbox = self.post("processes")["sandbox_id"]
        self.result("write", path="edited.txt", content=LINES)
        self.read = self.result("read", path="edited.txt")

    def post(self, tool: str, **arguments: Any) -> dict[str, Any]:
        body = {"conversation": "bench", "arguments": arguments}
        answer = self.console.api.post(f"/tools/{tool}", json=body, headers={"Prefer": "wait=55"})
        found: dict[str, Any] = answer.raise_for_status().json()
        assert found["status"] == "succeeded", found
        return found

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.post(tool, **arguments)["outcome"]["result"]
        return found

    def edit(self) -> None:
        """The same line again and again, each time as the edit before left it."""
        self.number += 1
        anchor = next(f"{number}{tag}" for number, tag, _ in self.read["lines"] if number == 100)
        edits = [{"do": "replace", "from": anchor, "lines": [f"edit {self.number}"]}]
        self.read = self.result("edit", path="edited.txt", version=self.read["version"], edits=edits)


def over_mcp(served: Console, runs: int) -> list[float]:
    """Of `run`, in the revision without sessions."""

    async def calls() -> list[float]:
        headers = {"Authorization": f"Bearer {served.served.first_run['workspace_key']}"}
        times, clock = [], asyncio.get_running_loop().time
        async with (
            httpx2.AsyncClient(headers=headers, timeout=70, trust_env=False) as http,
            Client(streamable_http_client(f"{served.served.url}/mcp/c/bench", http_client=http)) as client,
        ):
            for _ in range(runs + 3):
                began = clock()
                result = await client.call_tool("run", {"argv": ["true"]})
                times.append((clock() - began) * 1000)
                assert not result.is_error, result
        return times[3:]

    return asyncio.run(calls())


def rows(served: Console, runs: int) -> list[Row]:
    tools = Tools(served)
    named: dict[str, Callable[[], Any]] = {
        "run true": lambda: tools.post("run", argv=["true"]),
        "read, 200 lines": lambda: tools.post("read", path="edited.txt"),
        "edit, one line of 200": tools.edit,
        "glob": lambda: tools.post("glob", pattern="*.txt"),
        "grep": lambda: tools.post("grep", pattern="line 1"),
        "processes": lambda: tools.post("processes"),
    }
    plain, *times = in_turn(runs, lambda: served.run(tools.sandbox, "true"), *named.values())
    beside = statistics.median(plain)
    found = [
        Row(f"{name} / true over REST", statistics.median(each), beside, note=spread(each))
        for name, each in zip(named, times, strict=True)
    ]
    mcp = over_mcp(served, runs)
    return [
        *found,
        Row("run true over MCP / over REST", statistics.median(mcp), beside, note=f"not in turn; {spread(mcp)}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    asked = parser.parse_known_args()[0]
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line for each call
    with console() as served:
        shown = rows(served, asked.runs)
    for row in shown:
        print(row.shown(), flush=True)
    report.keep("tools", rows=[asdict(row) | {"ratio": row.ratio} for row in shown])


if __name__ == "__main__":
    main()
