"""Digests as docs/digest.md says, by nothing but that page: RFC 8785, the parts, the defaults, what long texts become.

Must never import what it is to be compared with.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

INLINE_BYTES = 4096
ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "run": {"cwd": "/work", "env": {}, "stdin": "", "timeout_s": 120},
    "install": {"timeout_s": 600},
    "write": {"mode": None},
    "edit": {},
    "unseal": {},
    "stdin": {"eof": False},
    "publish": {"title": ""},
}
PACKED = {"run": ("command", "stdin"), "write": ("content",), "stdin": ("data",)}
PATHS = ("path", "cwd")


def canonical(value: Any) -> str:
    """RFC 8785."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return '"' + "".join(map(_escaped, value)) + '"'
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, Mapping):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    return "[" + ",".join(map(canonical, value)) + "]"


def _escaped(character: str) -> str:
    return ESCAPES.get(character) or (f"\\u{ord(character):04x}" if character < " " else character)


def _number(value: float) -> str:
    """Shortest that reads back as the same double; the vectors hold none that needs an exponent."""
    assert abs(value) < 2**53
    assert value == 0 or abs(value) >= 1e-4
    return str(int(value)) if value == int(value) else repr(float(value))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def document(vector: Mapping[str, Any]) -> dict[str, Any]:
    """What is decided about, from what was sent and what it was sent for."""
    return {
        "scheme": "sandgate-action-v1",
        "workspace": vector["workspace"],
        "agent": vector["agent"],
        "profile": vector["profile"],
        "tool": vector["tool"],
        "tool_version": vector["tool_version"],
        "arguments": _arguments(vector["tool"], vector["sent"]),
        "bases": vector["bases"],
        "script": vector["script"],
    }


def _arguments(tool: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    found = {**DEFAULTS[tool], **sent}
    if found.get("background") and "timeout_s" not in sent:
        found["timeout_s"] = None
    for name in PATHS:
        if name in found and not found[name].startswith("/"):
            found[name] = f"/work/{found[name]}"
    for name in PACKED.get(tool, ()):
        if name in found:
            found[name] = _packed(found[name])
    return found


def _packed(sent: str | Mapping[str, str]) -> Any:
    content = sent.encode() if isinstance(sent, str) else base64.b64decode(sent["base64"])
    if len(content) <= INLINE_BYTES and b"\0" not in content:
        try:
            return content.decode()
        except UnicodeDecodeError:
            pass
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def of_plan(digests: list[str]) -> str:
    return sha256(canonical(["sandgate-plan-v1", *digests]))
