"""The body of an MCP message, read whole before the SDK sees any of it: it answers 500 to one that is cut off by its
limit. How much may come is for the doorman, who says `http.disconnect` to whatever is more."""

import json

from console.doorman import Message, Receive, Scope


class Body:
    """`again` gives it once more, and then what the client does next."""

    def __init__(self, content: bytes, receive: Receive) -> None:
        self._content, self._receive = content, receive
        self._given = False

    async def again(self) -> Message:
        if self._given:
            return await self._receive()
        self._given = True
        content, self._content = self._content, b""
        return {"type": "http.request", "body": content, "more_body": False}

    def request_id(self) -> str | None:
        """As the SDK tells requests apart: 7 and "7" are one. None: no request, or none that it takes."""
        try:
            message = json.loads(self._content)
        except (ValueError, RecursionError):
            return None
        found = message.get("id") if isinstance(message, dict) and "method" in message else None
        return str(found) if isinstance(found, int | str) else None


async def whole(scope: Scope, receive: Receive) -> Body | None:
    """None: the client left, or the doorman has had enough of it; nobody waits for an answer of ours."""
    pieces: list[bytes] = []
    while scope["method"] == "POST":
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    return Body(b"".join(pieces), receive)
