"""The shapes that chats, push services and programs take a notice in. Pure: a notice in, an address and a body out.

Names come from people and agents: what a chat would take for markup, a mention or a link is escaped.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from .wording import Notice

Shape = Callable[[str, Notice], tuple[str, dict[str, Any]]]
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|<>~-])")


def plain(target: str, notice: Notice) -> tuple[str, dict[str, Any]]:
    items = [{"agent": agent, "tool": tool, "count": count} for agent, tool, count in notice.items]
    return target, {
        "id": notice.id,
        "event": notice.event,
        "workspace": {"id": notice.workspace_id, "name": notice.workspace},
        "count": notice.count,
        "items": items,
        "link": notice.link,
    }


def slack(target: str, notice: Notice) -> tuple[str, dict[str, Any]]:
    """mrkdwn: these three characters are all that Slack asks to be escaped; the rest is not read as markup."""
    said = [{"type": "plain_text", "text": "\n".join(notice.lines), "emoji": False}]
    link = f"<{notice.link}|Open in Sandgate>"
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": notice.title[:150], "emoji": False}},
        {"type": "context", "elements": said},
        {"type": "section", "text": {"type": "mrkdwn", "text": link, "verbatim": True}},
    ]
    return target, {"text": _slack(notice.title), "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def teams(target: str, notice: Notice) -> tuple[str, dict[str, Any]]:
    """An Adaptive Card, as Teams' workflows take it. Its text blocks read Markdown."""
    body = [
        {"type": "TextBlock", "text": _markdown(notice.title), "weight": "Bolder", "wrap": True},
        *({"type": "TextBlock", "text": _markdown(line), "wrap": True, "spacing": "None"} for line in notice.lines),
    ]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
        "body": body, "actions": [{"type": "Action.OpenUrl", "title": "Open in Sandgate", "url": notice.link}],
    }  # fmt: skip
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return target, {"type": "message", "attachments": [attached]}


def ntfy(target: str, notice: Notice) -> tuple[str, dict[str, Any]]:
    """JSON is posted to the server, with the topic in it: the last part of the address that people are shown."""
    parts = urlsplit(target)
    above, _, topic = parts.path.rstrip("/").rpartition("/")
    server = parts._replace(path=f"{above}/", query="", fragment="").geturl()
    urgent = notice.event not in ("waiting", "test")
    return server, {
        "topic": topic, "title": notice.title, "message": "\n".join(notice.lines), "click": notice.link,
        "priority": 4 if urgent else 3, "tags": ["hourglass_flowing_sand"],
    }  # fmt: skip


SHAPES: Mapping[str, Shape] = {"plain": plain, "slack": slack, "teams": teams, "ntfy": ntfy}


def shaped(kind: str, target: str, notice: Notice) -> tuple[str, bytes]:
    url, body = SHAPES[kind](target, notice)
    return url, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)
