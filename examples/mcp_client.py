"""An agent's tools over MCP: list them, write a file, run it, wait for a person, and go on after a break.

    export SANDGATE_KEY=…                                # an agent's key, see README
    pip install 'mcp>=2,<3'                              # or use the console's own: .venv/bin/python
    python3 examples/mcp_client.py --url http://127.0.0.1:8000

Any MCP client does the same: it needs the address `…/mcp/c/NAME`, where NAME is the conversation, and the key as
`Authorization: Bearer …`. Here a script stands where a model would choose the calls.
"""

import argparse
import asyncio
import os
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

PROGRAM = "print(sum(n * n for n in range(1, 11)))\n"


async def call(client: Client, tool: str, **arguments: Any) -> str:
    """What a model would read of the answer; however long a person takes."""
    result = await client.call_tool(tool, arguments, progress_callback=still_waiting)
    while (about := result.structured_content).get("status") in ("pending", "approved", "running"):
        print(f"  {about['action_id']} {about['status']}")
        result = await client.call_tool("await_action", {"action_id": about["action_id"]})
    text = result.content[0].text
    if result.is_error:
        raise SystemExit(f"✗ {tool}: {text}")
    return text


async def still_waiting(done: float, total: float | None, message: str | None) -> None:
    print(f"  {message}, {done:.0f} s")


async def take_up(client: Client) -> None:
    """Outcomes that an earlier run of this script was not there to hear."""
    listed = await client.call_tool("list_pending", {})
    for item in listed.structured_content["items"]:
        print(f"  of an earlier run: {item['action_id']} {item['tool']} {item['status']}")


async def check(url: str, headers: dict[str, str]) -> None:
    """Of an address or a key that is wrong, an MCP client says little; the console's REST door says what to do."""
    try:
        async with httpx2.AsyncClient(headers=headers, timeout=10) as http:
            answer = await http.get(f"{url}/v1/tools?format=mcp")
    except (httpx2.TransportError, httpx2.InvalidURL) as error:
        raise SystemExit(f"✗ Nothing answers at {url} ({error}).") from None
    if answer.status_code != 200:
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        raise SystemExit(f"✗ {answer.json()['detail'] if is_json else f'{url} answered {answer.status_code}.'}")


async def main(url: str, conversation: str) -> None:
    if not (key := os.environ.get("SANDGATE_KEY")):
        raise SystemExit("✗ No key: set SANDGATE_KEY to the agent_key that stands in first-run.json.")
    headers = {"Authorization": f"Bearer {key}"}
    await check(url, headers)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=70) as http,
        Client(streamable_http_client(f"{url}/mcp/c/{conversation}", http_client=http)) as client,
    ):
        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))
        await take_up(client)
        found = await call(client, "glob", pattern="squares.py")
        if "squares.py" not in found.splitlines():
            print(await call(client, "write", path="squares.py", content=PROGRAM))
        print(await call(client, "read", path="squares.py"))
        print(await call(client, "run", argv=["python3", "squares.py"]))
        print("✓ done")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--url", default="http://127.0.0.1:8000")
    options.add_argument("--conversation", default="squares")
    given = options.parse_args()
    asyncio.run(main(given.url, given.conversation))
