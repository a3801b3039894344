"""Each text that a call had, as files: what its agent proposed, what each edit made of it, what was decided about last.

Owns the documents that digests are made of. Must never hand out one whose SHA-256 is not the digest on record.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from approvals import payloads
from approvals.digest import canonical
from approvals.models import Action

CONTENTS = (("command", "command.txt"), ("content", "content.bin"), ("stdin", "stdin.bin"))
LOST = "What this edited write would have replaced was not kept, so what its digest is made of is not known."


def last(action: Action) -> dict[str, Any]:
    """By name: bytes, or the path of a kept payload; None for a document that cannot be made again."""
    return _files(action, action.digest, action.arguments, action.bases, action.script)


def of_edits(action: Action) -> list[tuple[str, dict[str, Any]]]:
    """By folder. Nothing where nobody edited the call."""
    return list(_of_edits(action))


def _of_edits(action: Action) -> Iterator[tuple[str, dict[str, Any]]]:
    edits = list(action.edits.order_by("at", "pk"))
    for first in edits[:1]:
        yield (
            "0-proposed",
            _files(action, first.digest_before, first.arguments_before, first.bases_before, first.script_before),
        )
    for number, edit in enumerate(edits, 1):
        yield f"{number}-edited", _files(action, edit.digest, edit.arguments, edit.bases, edit.script)


def _files(action: Action, digest: str, arguments: Mapping[str, Any], bases: Any, script: Any) -> dict[str, Any]:
    # An edit of before its bases were kept has those of its action, unless it moved the file.
    document = _document(action, arguments, action.bases if bases is None else bases, script)
    files: dict[str, Any] = {"digest.json": [document] if hashlib.sha256(document).hexdigest() == digest else None}
    for argument, name in CONTENTS:
        value = arguments.get(argument)
        if isinstance(value, str) and value:
            files[name] = [value.encode("utf-8", "surrogatepass")]
        elif isinstance(value, dict) and "sha256" in value:
            files[name] = payloads.path(value)
    if script:
        files["script.txt"] = payloads.path(script)
    return files


def _document(
    action: Action, arguments: Mapping[str, Any], bases: Mapping[str, str | None], script: Mapping[str, Any] | None
) -> bytes:
    return canonical(
        workspace=action.workspace_id, agent=action.agent_id, profile=action.profile, tool=action.tool,
        tool_version=action.tool_version, arguments=arguments, bases=bases, script=script,
    )  # fmt: skip
