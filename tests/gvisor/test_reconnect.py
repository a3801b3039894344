"""A server that comes back asks by id, and nothing is lost, doubled or run again."""

import asyncio
import os
import time

import pytest

from sandboxes.engine import EditRequest, Engine, RunRequest
from sandboxes.errors import BoxGone
from sandboxes.runner import frames
from tests.gvisor.engines import Bench, Collected, OnePass


@pytest.fixture
def restarted(bench, box):
    """What a new server process does: a new engine that knows nothing but the row's two ids."""
    others: list[Bench] = []

    def start() -> tuple[Bench, object]:
        other = Bench(bench.config)
        others.append(other)
        other.do(other.engine.start())
        found = {each.sandbox_id: each for each in other.do(other.engine.found())}
        assert found[box.sandbox_id].running
        return other, other.do(other.engine.attach(box.sandbox_id, found[box.sandbox_id].container_id, env={}))

    yield start
    for other in others:
        other.do(other.engine.close())
    # the module's own engine takes the sandbox back
    again = bench.do(bench.engine.attach(box.sandbox_id, box.container_id, env={}))
    box._link = again._link


def begin(bench, box, command, action_id, timeout_s=60):
    """A command whose caller dies half a second later, as a killed server does: without a word to the runner."""
    request = RunRequest(argv=["bash", "-c", command], timeout_s=timeout_s)
    sink = Collected()
    running = bench.begin(box.run(OnePass(box.sandbox_id, "run", action_id), request, sink))
    time.sleep(0.5)

    async def die():
        channel = box._link.now()
        channel._stream._transport.abort()
        channel._stream._transport = None
        await box._link.close()

    bench.do(die())
    with pytest.raises(BoxGone):
        running.result(10)
    return sink


async def resume(box, action_id, **have):
    sink = Collected()
    return await box.resume(OnePass(box.sandbox_id, "run", action_id), sink, **have), sink


def test_running_command_is_followed_to_its_end(bench, box, restarted):
    begin(bench, box, "for i in $(seq 30); do echo $i; sleep 0.1; done; exit 5", "act_r1")
    other, again = restarted()
    assert again.boot == box.boot
    result, sink = other.do(resume(again, "act_r1"))
    assert result.exit_code == 5
    assert sink.stdout.decode().split() == [str(n) for n in range(1, 31)]
    assert result.lost_bytes == 0


def test_only_what_is_missing_comes_again(bench, box, restarted):
    before = begin(bench, box, "for i in $(seq 30); do echo $i; sleep 0.1; done", "act_r2")
    assert 0 < len(before.stdout) < 60
    other, again = restarted()
    result, sink = other.do(resume(again, "act_r2", have={"stdout": len(before.stdout)}))
    assert sink.gaps == [("stdout", 0, len(before.stdout))]
    assert (before.stdout + sink.stdout).decode().split() == [str(n) for n in range(1, 31)]
    assert result.lost_bytes == 0


def test_command_that_ended_meanwhile_still_has_its_output_and_runs_no_second_time(bench, box, restarted):
    begin(bench, box, "sleep 1; echo done | tee -a /work/r3; exit 9", "act_r3")
    time.sleep(1.5)
    other, again = restarted()
    for _ in range(2):
        result, sink = other.do(resume(again, "act_r3"))
        assert (result.exit_code, bytes(sink.stdout)) == (9, b"done\n")
    ran = other.bash(again, "this is not run", action_id="act_r3")
    assert (ran.code, ran.out) == (9, b"done\n")
    assert other.bash(again, "cat /work/r3").text == "done\n"


def test_timeout_holds_without_a_server(bench, box, restarted):
    begin(bench, box, "echo began; sleep 731", "act_r4", timeout_s=1.5)
    time.sleep(2)
    other, again = restarted()
    result, sink = other.do(resume(again, "act_r4"))
    assert (result.timed_out, result.exit_code, bytes(sink.stdout)) == (True, 124, b"began\n")
    assert other.bash(again, "pgrep -f 'sleep 731'").out == b""


def test_flood_without_a_server_does_not_block_and_keeps_head_and_tail(bench, box, restarted):
    command = "echo begin; head -c 50000000 /dev/zero; echo; echo end; touch /work/r5"
    begin(bench, box, command, "act_r5")
    time.sleep(14)  # the runner waits STALL_S for a reader, then lets go
    other, again = restarted()
    assert other.bash(again, "ls /work/r5").code == 0
    result, sink = other.do(resume(again, "act_r5"))
    assert sink.stdout.startswith(b"begin\n\0")
    assert sink.stdout.endswith(b"\0\nend\n")
    assert result.stdout_bytes == 50_000_011
    assert result.lost_bytes == sum(end - at for _, at, end in sink.gaps) > 0
    assert len(sink.stdout) + result.lost_bytes == result.stdout_bytes
    assert len(sink.stdout) > 1_000_000


def test_what_was_never_sent_is_unknown(bench, box):
    assert bench.do(resume(box, "act_never"))[0] is None


def test_settled_action_keeps_its_result_and_lets_go_of_its_output(bench, box):
    bench.bash(box, "echo some output; exit 4", action_id="act_settled")
    box.settled("act_settled")
    result, sink = bench.do(resume(box, "act_settled"))
    assert (result.exit_code, bytes(sink.stdout), result.lost_bytes) == (4, b"", 12)
    assert bench.bash(box, "echo again", action_id="act_settled").code == 4


def test_a_finished_write_is_known_by_id(bench, box):
    written = bench.write(box, "/work/kept", b"abc")
    assert written.size == 3


def test_broken_connection_goes_unnoticed_by_callers(bench, box):
    """The daemon drops the attach (as a restart with live-restore does): the box attaches again by itself."""

    async def scene():
        running = asyncio.ensure_future(bench.bashing(box, "for i in $(seq 40); do echo $i; sleep 0.05; done; exit 3"))
        for _ in range(3):
            await asyncio.sleep(0.4)
            box._link.now()._stream._transport.abort()
        return await running

    ran = bench.do(scene())
    assert ran.code == 3
    assert ran.text.split() == [str(n) for n in range(1, 41)]
    assert ran.gaps == []


def test_half_a_frame_of_a_dead_client_harms_nobody(bench, box):
    async def scene():
        channel = box._link.now()
        frame = frames.pack_request(channel.tag, 99, {"op": "write", "id": "x", "path": "/work/x"}, bytes(200_000))
        channel.send(frame[:50_000])
        await channel.drain()
        await asyncio.sleep(0.1)
        channel._stream._transport.abort()
        started_at = time.monotonic()
        ran = await bench.bashing(box, "echo clean")
        return ran, time.monotonic() - started_at

    ran, took_s = bench.do(scene())
    assert ran.text == "clean\n"
    assert took_s < 3


def test_content_that_looks_like_frames_is_content(bench, box):
    """Half of it is sent, then the client dies: what follows in the stream must not be read as requests."""

    async def scene():
        channel = box._link.now()
        evil = frames.pack_request(os.urandom(8), 1, {"op": "run", "id": "evil", "argv": ["touch", "/work/evil"]})
        evil += frames.pack_hello(b"evilevil", os.urandom(32), {"version": 1}) + frames.pack(b"evilevil", frames.PING)
        body = frames.pack(channel.tag, frames.DATA, evil * 300, ref=98)
        channel.send(body[:-20_000])
        await channel.drain()
        await asyncio.sleep(0.1)
        channel._stream._transport.abort()
        return await bench.bashing(box, "ls /work/evil")

    assert bench.do(scene()).code == 2


def test_garbage_before_and_between_is_skipped(bench, box):
    async def scene():
        box._link.now().send(os.urandom(300_000))
        return await bench.bashing(box, "echo fine")

    assert bench.do(scene()).text == "fine\n"


def test_attach_to_what_is_not_there(bench, box):
    with pytest.raises(BoxGone):
        bench.do(bench.engine.attach(box.sandbox_id, "0" * 64, env={}))
    with pytest.raises(BoxGone):
        bench.do(bench.engine.attach("sbx_other", box.container_id, env={}))


def test_one_thread_each_call_would_show(bench, box):
    """Waiting costs no thread: 15 commands that sleep add none."""
    import threading

    async def scene():
        before = threading.active_count()
        waiting = [asyncio.ensure_future(bench.bashing(box, "sleep 1.5")) for _ in range(15)]
        await asyncio.sleep(1)
        during = threading.active_count()
        await asyncio.gather(*waiting)
        return during - before

    assert bench.do(scene()) == 0


def test_close_lets_the_sandbox_live(bench, box):
    assert isinstance(bench.engine, Engine)
    assert bench.bash(box, "echo alive").text == "alive\n"


async def hang_up(box):
    """As a client does that is gone without a word. Its next one asks again, by the same ids."""
    if (channel := box._link.now()) is not None:
        channel._stream._transport.abort()


def test_an_edit_whose_caller_lost_the_line_is_made_once_and_answered(bench, box):
    """It takes longer than the line to come back, with so much text. Made anew, it would find itself stale, or, carried
    over, be made twice."""
    path, asked = "/work/edited", []
    bench.write(box, path, b"first\n" + (b"x" * 100 + b"\n") * 150_000)
    for number in range(5):
        seen = bench.do(box.view(OnePass(box.sandbox_id, "read"), path, limit=1))
        edits = [{"do": "insert_after", "from": f"1{seen['lines'][0][1]}", "lines": [f"edit {number}"]}]
        request = EditRequest(path, seen["version"], edits)
        editing = bench.begin(box.edit(OnePass(box.sandbox_id, "edit"), request))
        time.sleep(0.015 * number)
        bench.do(hang_up(box))
        asked.append(editing.result(30).report["changed"])
    assert asked == [True] * 5
    text = bench.read(box, path).decode().split("\n")
    assert text[:7] == ["first", *(f"edit {number}" for number in range(4, -1, -1)), "x" * 100]
