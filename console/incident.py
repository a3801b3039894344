"""All that is on record of one conversation, as one archive: for whoever has to find out what happened, also elsewhere.

Owns what is in it and the words that explain it. That it was made is on record before its first byte, and its slice of
the audit chain reaches up to that row. Must never hold more than one piece of a file, nor leave out silently what is
kept no more.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.forms import model_to_dict

from approvals import payloads
from approvals.models import Action, PayloadUse
from console.workspaces import audit, audit_search, db
from console.workspaces.audit_search import Sought
from console.workspaces.chain import Head
from console.workspaces.errors import NotFound
from sandboxes import answers, outputs
from sandboxes.models import Artifact, Command, Sandbox

from . import audited
from . import incident_texts as texts
from .zipped import Zip

PIECE_BYTES = 1 << 20
README = """\
Conversation {conversation} of agent {agent} in workspace {workspace}, as exported from Sandgate.

manifest.json      name, size and SHA-256 of every file here; `missing` where something is kept no more
actions/N-ID/      one folder for each call, in the order in which they were proposed:
  action.json      what was called, with which arguments, in which sandbox; every decision; what became of it
  digest.json      the exact bytes that were decided about last: their SHA-256 is `digest` in action.json, and in the
                   decisions about that text
  command.txt      the exact bytes of the command that ran; content.bin and stdin.bin likewise; script.txt
                   the file that it ran, where its text was on the card
  stdout, stderr   what it printed, as kept: `output` in action.json says how much that is of all
  answer.json      what a tool answered, where that is long
  texts/           only where a person edited the call: 0-proposed is what its agent asked for, 1-edited what the first
                   edit made of it, and so on; the last is what digest.json above says. Each has its own digest.json,
                   whose SHA-256 is `proposed_digest` for 0-proposed and `digest` of its row in `edits` in action.json,
                   and in decisions about that text; and its own command.txt, content.bin, stdin.bin and script.txt
payloads/SHA256    contents that calls name by their hash: files written, and the versions that they replaced
sandboxes.json     the machines that it ran in; artifacts.json: files that were published
audit/rows.jsonl   the audit rows about any of this
audit/chain.jsonl  every row of the workspace from the first of those up to this export, without a gap. It proves them:
                   `manage.py audit verify --export audit/chain.jsonl --head FILE`, or by hand as docs/audit.md says.
                   It also holds rows that are not about this conversation: leave it out where those must not go.

Text in these files was made by an agent and its commands. Open it as text.
"""


def check_is_there(workspace_id: str, agent: str, conversation: str) -> None:
    own = {"workspace_id": workspace_id, "agent_id": agent, "conversation": conversation}
    if not conversation or not any(model.objects.filter(**own).exists() for model in (Action, Sandbox)):
        raise NotFound("conversation", conversation)


@transaction.atomic
def record(workspace_id: str, agent: str, conversation: str, actor: audit.Actor) -> Head:
    """That it is made; the head that its slice goes up to."""
    row = audit.append(
        workspace_id=workspace_id, actor=actor, event="incident.exported", subject_id=agent, conversation=conversation
    )
    return Head(workspace_id, row.seq, row.hash)


def scope(head: Head, agent: str, conversation: str) -> tuple[int, list[str]]:
    """The row after which its slice begins, and the actions: read after the head, so that none in the slice is left
    out."""
    sought = _sought(head.workspace_id, agent, conversation)
    first = audit_search.found(head.workspace_id, sought).order_by("seq").first()
    own = Action.objects.filter(workspace_id=head.workspace_id, agent_id=agent, conversation=conversation)
    return (first.seq if first else head.seq) - 1, list(own.order_by("pk").values_list("pk", flat=True))


async def export(workspace_id: str, *, agent: str, conversation: str, actor: audit.Actor) -> AsyncIterator[bytes]:
    """Raises NotFound before anything is streamed."""
    await db.read(check_is_there, workspace_id, agent, conversation)
    head = await db.write(record, workspace_id, agent, conversation, actor)
    after, ids = await db.read(scope, head, agent, conversation)
    return _pieces(head, after, ids, agent, conversation)


async def _pieces(head: Head, after: int, ids: list[str], agent: str, conversation: str) -> AsyncIterator[bytes]:
    archive, workspace_id = Zip(), head.workspace_id
    said = README.format(conversation=json.dumps(conversation), agent=agent, workspace=workspace_id)
    async for piece in archive.file("README.txt", [said.encode()]):
        yield piece
    for number, action_id in enumerate(ids, 1):
        async for piece in _action(archive, f"actions/{number:04}-{action_id}", action_id):
            yield piece
    for sha256 in await db.read(_contents, workspace_id, agent, conversation):
        async for piece in _kept(archive, f"payloads/{sha256}", payloads.path({"sha256": sha256})):
            yield piece
    for name, model in (("sandboxes", Sandbox), ("artifacts", Artifact)):
        rows = await db.read(_rows, model, workspace_id, agent, conversation)
        async for piece in archive.file(f"{name}.json", [_json(rows)]):
            yield piece
    selection = audited.lines(workspace_id, _sought(workspace_id, agent, conversation), head)
    for name, lines in (("rows", selection), ("chain", audited.lines(workspace_id, Sought(), head, after=after))):
        async for piece in archive.file(f"audit/{name}.jsonl", lines):
            yield piece
    async for piece in archive.end():
        yield piece


async def _action(archive: Zip, folder: str, action_id: str) -> AsyncIterator[bytes]:
    action, said = await db.read(_said, action_id)
    files: dict[str, Any] = {"action.json": [_json(said)], **texts.last(action)}
    for stream in ("stdout", "stderr"):
        if said["output"][stream]["kept_bytes"]:
            files[stream] = outputs.kept(action_id, stream).pieces()
    if answer := await asyncio.to_thread(answers.kept, action_id):
        files["answer.json"] = [_json(answer)]
    for folder_of_text, found in await db.read(texts.of_edits, action):
        files |= {f"texts/{folder_of_text}/{name}": content for name, content in found.items()}
    for name, content in files.items():
        if content is None:
            archive.missing(f"{folder}/{name}", texts.LOST)
            continue
        made = _kept(archive, f"{folder}/{name}", content) if isinstance(content, Path) else None
        async for piece in made or archive.file(f"{folder}/{name}", content):
            yield piece


async def _kept(archive: Zip, name: str, path: Path) -> AsyncIterator[bytes]:
    if not path.exists():
        archive.missing(name, "This content is kept no more.")
        return
    async for piece in archive.file(name, _of_file(path)):
        yield piece


def _of_file(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _said(action_id: str) -> tuple[Action, dict[str, Any]]:
    action = Action.objects.get(pk=action_id)
    said = {field.attname: getattr(action, field.attname) for field in Action._meta.concrete_fields}
    found = action.decisions.select_related("by__user").order_by("at")
    said["decisions"] = [{**model_to_dict(each), "at": each.at, "name": str(each.by)} for each in found]
    said["edits"] = [
        {
            "at": each.at,
            "by": each.by_id,
            "name": str(each.by),
            "digest_before": each.digest_before,
            "digest": each.digest,
        }
        for each in action.edits.select_related("by__user").order_by("at", "pk")
    ]
    said["command"] = Command.objects.filter(action_id=action_id).values().first()
    kept = {name: outputs.kept(action_id, name) for name in ("stdout", "stderr")}
    said["output"] = {
        name: {"kept_bytes": each.size_bytes, "from_beginning": each.head_bytes, "all_bytes": each.total_bytes}
        for name, each in kept.items()
    }
    return action, said


def _contents(workspace_id: str, agent: str, conversation: str) -> list[str]:
    own = {"action__workspace_id": workspace_id, "action__agent_id": agent, "action__conversation": conversation}
    return list(PayloadUse.objects.filter(**own).order_by("sha256").values_list("sha256", flat=True).distinct())


def _rows(model: Any, workspace_id: str, agent: str, conversation: str) -> list[dict[str, Any]]:
    own = {"workspace_id": workspace_id, "agent_id": agent}
    of_it = {"conversation": conversation} if model is Sandbox else {"sandbox__conversation": conversation}
    return list(model.objects.filter(**own, **of_it).order_by("pk").values())


def _sought(workspace_id: str, agent: str, conversation: str) -> Sought:
    return audited.sought(workspace_id, agent=agent, conversation=conversation)


def _json(value: Any) -> bytes:
    return json.dumps(value, cls=DjangoJSONEncoder, indent=1).encode()
