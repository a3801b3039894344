"""The digest that a reviewer approves and a Pass is bound to: SHA-256 of RFC 8785 JSON of everything that decides what
runs. Free text is not in it. Pure."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import rfc8785

from console.workspaces.errors import Invalid

SCHEME = "sandgate-action-v1"
INLINE_BYTES = 4096


def digest(**named: Any) -> str:
    """64 hex digits: SHA-256 of what `canonical` makes of the same."""
    return hashlib.sha256(canonical(**named)).hexdigest()


def canonical(
    *,
    workspace: str,
    agent: str | None,
    profile: Mapping[str, Any],
    tool: str,
    tool_version: int,
    arguments: Mapping[str, Any],
    bases: Mapping[str, str | None],
    script: Mapping[str, Any] | None = None,
) -> bytes:
    """The bytes that are decided about. `bases` maps each path the call writes to the SHA-256 of what is there now,
    None for nothing; `script` is {path, sha256, size} of the file that a command runs, where that is bound."""
    document = {
        "scheme": SCHEME,
        "workspace": workspace,
        "agent": agent,
        "profile": dict(profile),
        "tool": tool,
        "tool_version": tool_version,
        "arguments": dict(arguments),
        "bases": dict(bases),
        "script": dict(script) if script is not None else None,
    }
    try:
        return bytes(rfc8785.dumps(document))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise Invalid(
            f"The arguments of {tool} cannot be written as RFC 8785 JSON ({error}). Send whole numbers below 2^53 and "
            "valid Unicode.",
            field="arguments",
        ) from error


def of_digests(scheme: str, digests: Iterable[str]) -> str:
    """Over several at once, in their order: what a plan is decided by."""
    return hashlib.sha256(rfc8785.dumps([scheme, *digests])).hexdigest()


def reference(content: bytes) -> dict[str, Any]:
    """How a content over 4 KiB stands in arguments: it is bound by hash and size, and kept as a payload."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
