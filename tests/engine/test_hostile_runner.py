"""A sandbox that breaks the protocol is cut off: its callers get BoxGone, and it costs the server nothing."""

import asyncio
import os
from contextlib import suppress

import pytest

from sandboxes.engine import Overdue, RunRequest, WriteRequest, transfers
from sandboxes.engine.attach import AttachFailed
from sandboxes.errors import BoxGone, FileError
from sandboxes.runner import frames
from tests.engine.liar import KILLED, Liar, boxed
from tests.gvisor.engines import Collected, OnePass

OK = {
    "exit_code": 0,
    "timed_out": False,
    "stopped": False,
    "left_running": False,
    "signalled": False,
    "duration_ms": 1,
    "stdout_bytes": 0,
    "stderr_bytes": 0,
    "lost_bytes": 0,
}


def run(box, sink=None):
    request = RunRequest(argv=["true"], timeout_s=5)
    return box.run(OnePass(box.sandbox_id, "run"), request, sink or Collected())


async def read(box):
    found = await box.read(OnePass(box.sandbox_id, "read"), "/work/x")
    return b"".join([chunk async for chunk in found.chunks()])


async def write(box):
    async def blocks():
        for _ in range(40):
            yield bytes(100_000)

    request = WriteRequest(path="/work/x", size=4_000_000)
    return await box.write(OnePass(box.sandbox_id, "write"), request, blocks())


def play(tmp_path, lies, scene):
    """`lies` answer each request; anything else that the host says is ignored."""

    async def answer(liar, frame):
        if frame.kind == frames.REQUEST:
            lies(liar, frame.ref)

    liar = Liar(tmp_path / "docker.sock", answer)
    return asyncio.run(boxed(liar, scene)), liar


def test_the_liar_can_tell_the_truth(tmp_path):
    def truth(liar, ref):
        liar.say(frames.OUT, b"hi", ref=ref, flags=frames.STDOUT)
        liar.say(frames.RESULT, {"ok": {**OK, "stdout_bytes": 2}}, ref=ref)

    sink = Collected()
    result, _ = play(tmp_path, truth, lambda box: run(box, sink))
    assert (result.exit_code, bytes(sink.stdout)) == (0, b"hi")


LIES = {
    "noise": lambda liar, ref: liar.raw(os.urandom(500)),
    "another session's frame": lambda liar, ref: liar.raw(frames.pack(b"x" * 8, frames.RESULT, b"{}", ref=ref)),
    "a kind that is none": lambda liar, ref: liar.say(99, b"", ref=ref),
    "a kind of the host's": lambda liar, ref: liar.say(frames.REQUEST, b"", ref=ref),
    "a result that is no JSON": lambda liar, ref: liar.say(frames.RESULT, b"\xff\xfe", ref=ref),
    "a result that is a list": lambda liar, ref: liar.say(frames.RESULT, b"[]", ref=ref),
    "a result without anything": lambda liar, ref: liar.say(frames.RESULT, {}, ref=ref),
    "output beyond all numbers": lambda liar, ref: liar.say(frames.OUT, b"x", ref=ref, flags=1, offset=2**63),
    "a time beyond all times": lambda liar, ref: liar.say(frames.RESULT, {"ok": {**OK, "duration_ms": 2**40}}, ref=ref),
    "an exit code out of range": lambda liar, ref: liar.say(frames.RESULT, {"ok": {**OK, "exit_code": 256}}, ref=ref),
    "a deep result": lambda liar, ref: liar.say(frames.RESULT, b'{"a":' * 20_000, ref=ref),
    "an unknown stream": lambda liar, ref: liar.say(frames.OUT, b"x", ref=ref, flags=7),
    "content instead of output": lambda liar, ref: liar.say(frames.CONTENT, b"x", ref=ref),
    "output that goes back": lambda liar, ref: [
        liar.say(frames.OUT, b"abc", ref=ref, flags=1, offset=10),
        liar.say(frames.OUT, b"abc", ref=ref, flags=1, offset=5),
    ],
    "two results": lambda liar, ref: [liar.say(frames.RESULT, {"ok": OK}, ref=ref) for _ in range(2)],
    "a frame over the limit": lambda liar, ref: liar.raw(
        frames.HEADER.pack(frames.MAGIC, liar.tag, frames.OUT, 1, 0, ref, 2**31, 0) + bytes(100)
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_run_that_is_lied_to_ends_typed(tmp_path, lie):
    async def scene(box):
        lost = []
        box.on_lost = lost.append
        if lie == "two results":  # the first may be taken before the second is seen
            with suppress(BoxGone):
                await run(box)
        with pytest.raises(BoxGone) as caught:
            await run(box)
        assert caught.value.reason == "crashed"
        return lost

    lost, _ = play(tmp_path, LIES[lie], scene)
    assert lost == ["crashed"]


@pytest.mark.parametrize(
    "lie",
    [
        lambda liar, ref: liar.say(frames.INFO, {"path": 1, "size": 0, "mode": 0}, ref=ref),
        lambda liar, ref: liar.say(frames.INFO, {"path": "/x", "size": -1, "mode": 0}, ref=ref),
        lambda liar, ref: liar.say(frames.CONTENT, b"x", ref=ref),
        lambda liar, ref: liar.say(frames.RESULT, {"ok": {}}, ref=ref),
        lambda liar, ref: [
            liar.say(frames.INFO, {"path": "/x", "size": 1, "mode": 0}, ref=ref),
            liar.say(frames.CONTENT, b"x", ref=ref, offset=1),
        ],
        lambda liar, ref: [
            liar.say(frames.INFO, {"path": "/x", "size": 1, "mode": 0}, ref=ref),
            liar.say(frames.CONTENT, b"x", ref=ref),
            liar.say(frames.RESULT, {"ok": {"size": 1, "sha256": "0" * 64}}, ref=ref),
        ],
    ],
)
def test_a_read_that_is_lied_to_ends_typed(tmp_path, lie):
    async def scene(box):
        with pytest.raises(BoxGone):
            await read(box)

    play(tmp_path, lie, scene)


@pytest.mark.parametrize(
    "lie",
    [
        lambda liar, ref: liar.say(frames.CREDIT, b"", ref=ref, offset=2**60),
        lambda liar, ref: liar.say(frames.OUT, b"", ref=ref),
    ],
)
def test_a_write_that_is_lied_to_ends_typed(tmp_path, lie):
    async def scene(box):
        with pytest.raises(BoxGone):
            await write(box)

    play(tmp_path, lie, scene)


def test_a_refusal_in_the_middle_of_a_write_stops_it(tmp_path):
    error = {"error": {"code": "no_space", "detail": "/work/x: no space is left.", "path": "/work/x"}}

    async def scene(box):
        with pytest.raises(FileError):
            await write(box)

    play(tmp_path, lambda liar, ref: liar.say(frames.RESULT, error, ref=ref), scene)


def test_a_flood_beyond_the_window_is_cut_off_and_not_kept(tmp_path):
    def flood(liar, ref):
        for n in range(400):
            liar.say(frames.OUT, bytes(100_000), ref=ref, flags=1, offset=n * 100_000)

    class Stuck(Collected):
        async def put(self, stream, offset, data):
            await asyncio.sleep(1)

    async def scene(box):
        with pytest.raises(BoxGone):
            await run(box, Stuck())

    play(tmp_path, flood, scene)


def test_frames_for_calls_that_nobody_made_are_dropped(tmp_path):
    def chatter(liar, ref):
        for n in range(100):
            liar.say(frames.OUT, b"x", ref=ref + 1 + n, flags=1)
        liar.say(frames.RESULT, {"ok": OK}, ref=ref)

    assert play(tmp_path, chatter, run)[0].exit_code == 0


def test_stderr_of_pid_1_is_kept_apart_and_bounded(tmp_path):
    def noisy(liar, ref):
        liar.raw(b"e" * 1_000_000, stream=2)
        liar.say(frames.RESULT, {"ok": OK}, ref=ref)

    async def scene(box):
        await run(box)
        return len(box._link.now().stderr)

    assert play(tmp_path, noisy, scene)[0] <= 2048


def test_hanging_up_again_and_again_is_survived_while_it_runs(tmp_path):
    def shy(liar, ref):
        if liar.attaches < 4:
            liar.hang_up()
        else:
            liar.say(frames.RESULT, {"ok": OK}, ref=ref)

    result, liar = play(tmp_path, shy, run)
    assert (result.exit_code, liar.attaches) == (0, 4)


def test_hanging_up_when_it_is_dead_is_the_end(tmp_path):
    def dies(liar, ref):
        liar.state = KILLED
        liar.hang_up()

    async def scene(box):
        with pytest.raises(BoxGone) as caught:
            await run(box)
        return caught.value.reason

    assert play(tmp_path, dies, scene)[0] == "crashed"


def test_another_boot_after_hanging_up_is_the_end(tmp_path):
    def reborn(liar, ref):
        liar.boot = "boot2"
        liar.hang_up()

    async def scene(box):
        with pytest.raises(BoxGone, match="restarted|crashed"):
            await run(box)

    play(tmp_path, reborn, scene)


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 404 Not Found\r\n\r\nno such container", b"HTTP/1.1 409 C\r\n\r\n", b"x" * 99_999]
)
def test_an_attach_that_is_refused_is_told(tmp_path, head):
    async def nothing(liar, frame):
        pass

    async def scene(box):
        pass

    liar = Liar(tmp_path / "docker.sock", nothing)
    liar.head = head
    with pytest.raises(AttachFailed):
        asyncio.run(boxed(liar, scene))


def test_stream_arrives_in_pieces_of_any_size(tmp_path):
    def slow(liar, ref):
        body = frames.pack(liar.tag, frames.OUT, b"abc", ref=ref, flags=1)
        body += frames.pack_message(liar.tag, frames.RESULT, {"ok": {**OK, "stdout_bytes": 3}}, ref=ref)
        for at in range(len(body)):
            liar.raw(body[at : at + 1], stream=1)
            liar.raw(b"?", stream=2)

    sink = Collected()
    play(tmp_path, slow, lambda box: run(box, sink))
    assert bytes(sink.stdout) == b"abc"


@pytest.mark.parametrize("boot", ["", "x" * 65, "a b", "../x", "\0", 1, None, ["boot1"]])
def test_an_id_of_a_start_that_is_none_is_no_welcome(tmp_path, boot):
    async def nothing(liar, frame):
        pass

    async def scene(box):
        pytest.fail("it was let in")

    liar = Liar(tmp_path / "docker.sock", nothing)
    liar.boot = boot
    with pytest.raises(frames.BrokenFrame):
        asyncio.run(boxed(liar, scene))


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (read, None, None),
        (read, frames.INFO, {"path": "/work/x", "size": 5, "mode": 420}),
        (write, None, None),
        (write, frames.CREDIT, b""),
    ],
)
def test_a_runner_that_falls_silent_in_a_file_is_not_waited_for_without_end(tmp_path, monkeypatch, call, kind, said):
    monkeypatch.setattr(transfers, "STALL_S", 0.2)

    async def scene(box):
        with pytest.raises(Overdue, match="/work/x"):
            await call(box)

    play(tmp_path, lambda liar, ref: kind and liar.say(kind, said, ref=ref), scene)
