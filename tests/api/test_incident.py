"""The archive of a conversation: exact bytes, all of it and nothing of others, each file proven, whatever its size."""

import hashlib
import io
import json
import resource
import threading
import zipfile

import pytest

from approvals import decisions, edits, gate, payloads
from approvals.models import Action, Edit
from console import zipped
from console.workspaces import audit, audit_export, db, permissions
from console.workspaces.models import AuditEntry
from sandboxes import outputs
from tests import people
from tests.api.conftest import limited_key, make_sandbox
from tests.approvals.proposals import pending, run

pytestmark = pytest.mark.anyio
COMMAND = "printf '‮\t\\0'; " + "# " * 4000
PRINTED = bytes(range(256)) * 40


async def made(place):
    """A long command that ran in scout's march, a write that was denied, and calls of others beside them."""

    def rows():
        scout = place.caller(place.scout)
        place.sandbox.conversation = "march"
        place.sandbox.save()
        kept = payloads.keep(payloads.hold(COMMAND.encode()))
        arguments = {"command": kept, "cwd": "/work", "env": {}, "stdin": "in", "timeout_s": 9}
        ran = pending(scout, arguments=arguments, conversation="march", sandbox_id=place.sandbox.pk)
        decisions.decide(ran, "approve", by=place.bob, digest=ran.digest)
        gate.finish(gate.start(ran.pk), status="succeeded", result={"exit_code": 0})
        before = payloads.keep(payloads.hold(b"old" * 2000))
        denied = pending(
            scout, tool="write", kind="write", arguments={"path": "/work/a", "content": "new", "mode": None},
            replaced={before["sha256"]: before["size"]}, conversation="march", sandbox_id=place.sandbox.pk,
        )  # fmt: skip
        decisions.decide(denied, "deny", by=place.bob, digest=denied.digest, reason="=no")
        secrets = (
            pending(scout, "echo APRIL", conversation="april"),
            pending(
                place.caller(place.other), "echo OTHERS", conversation="march", sandbox_id=make_sandbox(place.other).pk
            ),
        )
        return ran, denied, [each.pk for each in secrets]

    ran, denied, others = await db.write(rows)
    await outputs.Outputs(ran.pk).put("stdout", 0, PRINTED)
    return ran, denied, others


async def get(ask, place, key=None, **asked):
    return await ask.get(
        "/incident", key=key or place.alices, **{"agent": place.scout.pk, "conversation": "march", **asked}
    )


def opened(answer):
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.testzip() is None
    return archive, {name.partition("/")[2].partition("/")[2] or name: name for name in archive.namelist()}


async def test_it_holds_the_exact_bytes_and_each_file_is_in_the_manifest(place, ask):
    ran, denied, others = await made(place)
    answer = await get(ask, place)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    archive, _ = opened(answer)
    at = {action.pk: f"actions/{number:04}-{action.pk}" for number, action in enumerate((ran, denied), 1)}
    assert archive.read(f"{at[ran.pk]}/command.txt") == COMMAND.encode()
    assert archive.read(f"{at[ran.pk]}/stdin.bin") == b"in"
    assert archive.read(f"{at[ran.pk]}/stdout") == PRINTED
    assert archive.read(f"{at[denied.pk]}/content.bin") == b"new"
    for action in (ran, denied):
        said = json.loads(archive.read(f"{at[action.pk]}/action.json"))
        assert (
            hashlib.sha256(archive.read(f"{at[action.pk]}/digest.json")).hexdigest() == said["digest"] == action.digest
        )
        assert [each["digest"] for each in said["decisions"]] == [action.digest]
    assert said["decisions"][0]["reason"] == "=no"
    assert archive.read(f"payloads/{hashlib.sha256(b'old' * 2000).hexdigest()}") == b"old" * 2000
    listed = json.loads(archive.read("manifest.json"))["files"]
    for file in listed:
        content = archive.read(file["name"])
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["size"], file["sha256"]), file["name"]
    assert {file["name"] for file in listed} | {"manifest.json"} == set(archive.namelist())
    assert archive.namelist()[0] == "README.txt"


async def test_nothing_of_others_is_in_it_but_the_chain_that_proves_it(place, ask):
    *_, others = await made(place)
    archive, _ = opened(await get(ask, place))
    for name in set(archive.namelist()) - {"audit/chain.jsonl"}:
        content = archive.read(name)
        assert not any(word in content for word in (b"APRIL", b"OTHERS", *map(str.encode, others))), name


async def test_its_slice_of_the_chain_holds_and_reaches_its_own_row(place, ask):
    ran, denied, _ = await made(place)
    archive, _ = opened(await get(ask, place))
    for name in ("rows", "chain"):
        lines = archive.read(f"audit/{name}.jsonl").decode().splitlines()
        assert await db.read(lambda lines=lines: list(audit_export.Check(audit.heads()).faults(lines))) == []
    rows = [json.loads(line) for line in lines[1:-1]]
    assert rows[-1]["event"] == "incident.exported"
    subjects = [json.loads(line)["subject_id"] for line in archive.read("audit/rows.jsonl").decode().splitlines()[1:-1]]
    assert {ran.pk, denied.pk} <= set(subjects)
    assert {row["subject_id"] for row in rows} >= set(subjects)


async def test_what_is_kept_no_more_is_said_to_be_missing(place, ask):
    ran, *_ = await made(place)
    payloads.path(ran.arguments["command"]).unlink()
    archive, _ = opened(await get(ask, place))
    missing = [each["name"] for each in json.loads(archive.read("manifest.json"))["files"] if "missing" in each]
    assert [name for name in missing if name.endswith("command.txt")]
    assert f"payloads/{ran.arguments['command']['sha256']}" in missing


async def test_who_may_not_gets_none_and_nothing_is_recorded(place, ask):
    await made(place)
    assert (await get(ask, place, key=place.mallorys)).status_code == 404
    assert (await get(ask, place, key=place.scouts)).status_code == 403
    key = await db.write(limited_key, place.bob, permissions.AUDIT_READ, place)
    refused = await get(ask, place, key=key)
    assert (refused.status_code, "sandboxes:read" in refused.json()["detail"]) == (403, True)
    key = await db.write(limited_key, place.bob, permissions.SANDBOXES_READ, place)
    assert (await get(ask, place, key=key)).status_code == 403
    assert (await get(ask, place, conversation="may")).status_code == 404
    assert (await get(ask, place, agent=place.other.pk, conversation="april")).status_code == 404
    assert (await ask.get("/incident", key=place.alices, agent=place.scout.pk)).status_code == 422
    assert (await ask.get("/incident", key=None)).status_code == 401
    assert (await ask.post("/incident", {}, key=place.alices)).status_code == 405
    assert not await db.read(AuditEntry.objects.filter(event="incident.exported").exists)
    await get(ask, place)
    row = await db.read(lambda: AuditEntry.objects.get(event="incident.exported"))
    assert (row.subject_id, row.data["conversation"]) == (place.scout.pk, "march")


async def test_nobody_who_writes_waits_while_it_is_read(place, ask, monkeypatch):
    """All actions of a conversation, and the first of their rows: on the writer's thread every decision would wait."""
    await made(place)
    read_on = set()
    for model, of in ((Action, "filter"), (AuditEntry, "filter")):
        real = getattr(model.objects, of)

        def noted(*args, real=real, **asked):
            read_on.add(threading.current_thread().name.rpartition("_")[0])
            return real(*args, **asked)

        monkeypatch.setattr(model.objects, of, noted)
    assert (await get(ask, place)).status_code == 200
    assert read_on
    assert not any("write" in name for name in read_on), read_on


async def test_a_large_file_goes_through_without_being_held():
    piece, before = bytes(1 << 20), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    archive, size = zipped.Zip(), 0
    async for out in archive.file("large", (piece for _ in range(200))):
        size += len(out)
    async for out in archive.end():
        size += len(out)
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert size > 100_000
    assert grown_mb < 20


async def test_each_text_of_an_edited_call_is_in_it_and_proves_its_digest(place, ask):
    def rows():
        dan = people.member(place.workspace, "dan", *permissions.PRESETS["reviewer"])
        caller = place.caller(place.scout)
        arguments = {"path": "/work/a", "content": "proposed", "mode": None}
        call = {"tool": "write", "kind": "write", "conversation": "march", "sandbox_id": place.sandbox.pk}
        place.sandbox.conversation = "march"
        place.sandbox.save()
        action = pending(caller, arguments=arguments, bases={"/work/a": None}, **call)
        texts = [(action.digest, "proposed")]
        for path, content in (("/work/b", "moved"), ("/work/b", "moved twice")):
            was = Action.objects.get(pk=action.pk)
            edited = run(
                caller, arguments={**arguments, "path": path, "content": content}, bases={path: "f" * 64},
                profile=was.profile, **call,
            )  # fmt: skip
            texts.append((edits.put(was, edited, by=place.bob, digest_before=was.digest).digest, content))
        decisions.decide(Action.objects.get(pk=action.pk), "approve", by=dan, digest=texts[-1][0])
        return action, texts

    action, texts = await db.write(rows)
    archive, _ = opened(await get(ask, place))
    at = f"actions/0001-{action.pk}"
    for folder, (digest, content) in zip(("0-proposed", "1-edited", "2-edited"), texts, strict=True):
        assert hashlib.sha256(archive.read(f"{at}/texts/{folder}/digest.json")).hexdigest() == digest, folder
        assert archive.read(f"{at}/texts/{folder}/content.bin") == content.encode()
    said = json.loads(archive.read(f"{at}/action.json"))
    assert (said["proposed_digest"], said["digest"]) == (texts[0][0], texts[-1][0])
    assert [each["digest"] for each in said["edits"]] == [digest for digest, _ in texts[1:]]
    assert archive.read(f"{at}/content.bin") == b"moved twice"
    assert b"texts/" in archive.read("README.txt")


async def test_a_document_that_cannot_be_made_again_is_said_to_be_missing_and_never_made_up(place, ask):
    await test_each_text_of_an_edited_call_is_in_it_and_proves_its_digest(place, ask)
    await db.write(lambda: Edit.objects.update(bases_before=None, bases=None))
    archive, _ = opened(await get(ask, place))
    missing = {each["name"]: each for each in json.loads(archive.read("manifest.json"))["files"] if "missing" in each}
    assert [name for name in missing if name.endswith("0-proposed/digest.json")]
    assert any(name.endswith("0-proposed/content.bin") for name in archive.namelist())
    assert any(name.endswith("2-edited/digest.json") for name in archive.namelist())
