"""Large contents: on disk only for calls that were let in, bounded per agent, and gone when nothing names them."""

import asyncio
import os
import time
from importlib import import_module

import pytest
from django.apps import apps

from approvals import gate, payloads, room
from approvals.errors import TooMany
from approvals.leftovers import Leftovers
from approvals.models import Action, PayloadUse
from console.workspaces import agents, permissions
from console.workspaces.errors import Invalid
from sandboxes.toolsets import run as run_tool
from sandboxes.toolsets import stdin, write
from tests.approvals.proposals import pending, run

LONG = "echo " + "x" * 5000


@pytest.fixture(autouse=True)
def blobs(settings, tmp_path):
    options = {**settings.STORAGES["blobs"]["OPTIONS"], "location": tmp_path / "blobs"}
    settings.STORAGES = {**settings.STORAGES, "blobs": {**settings.STORAGES["blobs"], "OPTIONS": options}}
    return tmp_path / "blobs"


def of(size_mb, name="a"):
    return {"content": {"sha256": name * 64, "size": size_mb << 20}, "path": "/work/x", "mode": None}


def propose(caller, size_mb, name="a", **more):
    return pending(caller, tool="write", kind="write", arguments=of(size_mb, name), **more)


def on_disk(blobs):
    return [path for path in blobs.rglob("*") if path.is_file()]


def make_old(held):
    path = payloads.path(held)
    os.utime(path, (time.time(), time.time() - payloads.GARBAGE_AFTER_S - 1))
    return path


def test_a_call_that_is_only_checked_leaves_nothing_on_disk(blobs):
    checked = run_tool.validate({"command": LONG, "stdin": LONG}, None)
    written = write.validate({"path": "a", "content": b"\0"}, None)
    assert not on_disk(blobs)
    assert payloads.content(checked["command"]).decode() == LONG
    assert payloads.content(written["content"]) == b"\0"


def test_kept_contents_are_on_disk_and_no_longer_in_memory(blobs):
    checked = run_tool.validate({"command": LONG}, None)
    kept = payloads.keep_all(checked)
    assert kept == checked
    assert not isinstance(kept["command"], payloads.Held)
    assert [path.read_text() for path in on_disk(blobs)] == [LONG]
    assert payloads.content(kept["command"]).decode() == LONG


def test_what_is_held_and_what_is_kept_have_one_digest(cast):
    arguments = run_tool.validate({"command": LONG}, None)
    caller = cast.caller(cast.scout)
    assert run(caller, arguments=arguments).digest() == run(caller, arguments=payloads.keep_all(arguments)).digest()


def test_an_action_names_its_contents_and_what_it_would_replace(cast):
    action = propose(cast.caller(cast.scout), 5, bases={"/work/x": "b" * 64}, replaced={"b" * 64: 7})
    assert dict(action.payload_uses.values_list("sha256", "size")) == {"a" * 64: 5 << 20, "b" * 64: 7}


def test_no_environment_can_pass_for_a_content(cast):
    arguments = {"command": "ls", "env": {"sha256": "a" * 64, "size": "1"}}
    pending(cast.caller(cast.scout), arguments=arguments)
    assert not PayloadUse.objects.exists()


def test_an_agent_may_have_200_mb_of_contents_in_open_calls(cast):
    scout = cast.caller(cast.scout)
    first = propose(scout, 150)
    for ask in (gate.check_room, gate.submit):
        with pytest.raises(TooMany, match="157286400 bytes.*cancel one") as refusal:
            ask(run(scout, tool="write", kind="write", arguments=of(51, "b")))
        assert refusal.value.retry_after
    propose(scout, 50, "c")
    propose(cast.caller(cast.other), 150, "b")
    assert propose(scout, 150).pk == first.pk, "what joins brings no more"
    gate.cancel(first, by=scout)
    propose(scout, 51, "b")


def test_room_is_asked_for_by_those_alone_who_ask(cast):
    member = cast.caller(cast.alice, permissions.SANDBOXES_RUN)
    agents.change_tools(cast.scout, by=cast.alice, write_mode="never")
    for caller in (member, cast.caller(cast.scout)):
        proposal = run(caller, tool="write", kind="write", arguments=of(300))
        gate.check_room(proposal)
        assert isinstance(gate.submit(proposal), gate.Pass)


def test_room_is_there_for_a_key_that_came_before(cast, monkeypatch):
    monkeypatch.setattr(room, "OPEN_PROPOSALS", 1)
    scout = cast.caller(cast.scout)
    pending(scout, idempotency_key="k")
    gate.check_room(run(scout, idempotency_key="k"))
    with pytest.raises(TooMany):
        gate.check_room(run(scout, idempotency_key="other"))


async def round_of(leftovers):
    return await leftovers.round()


@pytest.mark.django_db(transaction=True)
def test_what_no_action_names_goes_after_an_hour_and_nothing_else(committed_cast, blobs, monkeypatch):
    named, old, young, found_again = (payloads.hold(name * 5000) for name in (b"n", b"o", b"y", b"f"))
    for held in (named, old, young, found_again):
        payloads.keep(held)
    torn = blobs / old["sha256"][:2] / "tmp-torn"
    torn.write_bytes(b"half")
    os.utime(torn, (0, 0))
    paths = [make_old(held) for held in (named, old, found_again)]
    pending(committed_cast.caller(committed_cast.scout), arguments={"command": dict(named)})
    payloads.keep(found_again)
    monkeypatch.setattr("approvals.leftovers.FILES_A_ROUND", 2)
    leftovers = Leftovers()
    removed = sum(asyncio.run(round_of(leftovers)) for _ in range(5))
    assert removed == 2
    assert not torn.exists()
    assert [path.exists() for path in (*paths, payloads.path(young))] == [True, False, True, True]


def test_a_content_found_again_between_the_look_and_the_removal_stays(blobs):
    held = payloads.hold(b"x" * 5000)
    payloads.keep(held)
    path = make_old(held)
    assert payloads.is_old(path)
    payloads.keep(held)
    assert not payloads.remove_old(path)
    assert path.exists()


def test_actions_from_before_are_given_their_contents(cast):
    action = propose(cast.caller(cast.scout), 5, bases={"/work/x": "b" * 64, "/work/y": None})
    Action.objects.filter(pk=action.pk).update(arguments={**of(5), "env": {"sha256": "c" * 64, "size": "1"}})
    PayloadUse.objects.all().delete()
    import_module("approvals.migrations.0002_payload_use").fill(apps, None)
    assert dict(action.payload_uses.values_list("sha256", "size")) == {"a" * 64: 5 << 20, "b" * 64: 0}


def arrived(content):
    arriving = payloads.Arriving()
    for at in range(0, len(content), 700):
        arriving.write(content[at : at + 700])
    return arriving, arriving.whole()


def test_what_comes_piece_by_piece_is_the_same_payload_as_what_was_held_whole(blobs):
    content = os.urandom(5000)
    arriving, found = arrived(content)
    held = payloads.hold(content)
    assert found == held
    assert (found.content, b"".join(found.pieces())) == (content, content)
    assert not payloads.path(found).exists()
    assert payloads.keep_all({"content": found}) == {"content": dict(held)}
    assert payloads.path(held).read_bytes() == content
    arriving.discard()
    assert on_disk(blobs) == [payloads.path(held)]


def test_a_short_one_stands_in_the_arguments_as_if_it_had_come_at_once(blobs):
    arriving, found = arrived(b"x" * 4096)
    assert found == b"x" * 4096
    arriving.discard()
    assert on_disk(blobs) == []


@pytest.mark.django_db(transaction=True)
def test_what_was_not_let_in_leaves_nothing_and_what_a_dead_server_left_is_garbage(blobs):
    arriving, _ = arrived(bytes(5000))
    arriving.discard()
    arriving.discard()
    assert on_disk(blobs) == []
    dead = payloads.Arriving()
    dead.write(bytes(5000))
    (file,) = on_disk(blobs)
    os.utime(file, (time.time(), time.time() - payloads.GARBAGE_AFTER_S - 1))
    assert asyncio.run(Leftovers().round()) == 1
    assert on_disk(blobs) == []


def test_an_agent_cannot_stream_past_the_gate(committed_cast):
    with pytest.raises(Invalid):
        write.validate({"path": "a", "content": write.Streamed(5)}, committed_cast.scout)
    assert write.validate({"path": "a", "content": write.Streamed(5)}, None)["content"] == {"streamed": True, "size": 5}
    with pytest.raises(Invalid):
        write.validate({"path": "a", "content": write.Streamed((100 << 20) + 1)}, None)
    with pytest.raises(Invalid):
        write.validate({"path": "a", "content": {"streamed": True, "size": 5}}, None)


@pytest.mark.parametrize("content", [b"a\0b", b"\0", b"\xff", "ü".encode() * 3000])
def test_bytes_that_no_row_can_hold_are_kept_by_their_hash(blobs, content):
    for checked, name in (
        (write.validate({"path": "a", "content": content}, None), "content"),
        (stdin.validate({"id": "cmd_1", "data": content}, None), "data"),
    ):
        assert set(checked[name]) == {"sha256", "size"}
        assert payloads.content(payloads.keep_all(checked)[name]) == content


@pytest.mark.database
def test_a_write_with_a_nul_is_recorded_on_every_database(blobs, cast):
    checked = write.validate({"path": "a", "content": b"a\0b"}, None)
    action = pending(cast.caller(cast.scout), tool="write", kind="write", arguments=payloads.keep_all(checked))
    assert payloads.content(Action.objects.get(pk=action.pk).arguments["content"]) == b"a\0b"
