"""Commands in the background, at the engine: begun once, followed by offset, fed, and never lost by a broken line."""

import asyncio
import hashlib
import time
from dataclasses import replace

import pytest

from sandboxes.engine import Refusal, RunRequest
from sandboxes.errors import FileError
from tests.gvisor.engines import Collected, OnePass


def script(text, **changes):
    return replace(RunRequest(argv=["bash", "--noprofile", "--norc", "-c", text], timeout_s=None), **changes)


async def begin(box, text, action_id, **changes):
    await box.start(OnePass(box.sandbox_id, "run", action_id), script(text, **changes))


async def followed(box, action_id, **have):
    sink = Collected()
    return await box.follow(action_id, sink, **have), sink


async def feed(box, command_id, data, *, end=False, action_id=""):
    await box.send(OnePass(box.sandbox_id, "stdin", action_id), command_id, data, end=end)


def test_it_is_begun_at_once_and_its_end_is_told_later(bench, box):
    bench.do(begin(box, "echo one; sleep 1.5; touch /work/b1; echo two; exit 3", "act_b1"))
    assert bench.bash(box, "test -e /work/b1").code == 1
    result, sink = bench.do(followed(box, "act_b1"))
    assert (result.exit_code, result.signalled, bytes(sink.stdout)) == (3, False, b"one\ntwo\n")


def test_what_cannot_begin_says_why_and_leaves_nothing(bench, box):
    with pytest.raises(FileError) as caught:
        bench.do(begin(box, "true", "act_b2", cwd="/work/nowhere"))
    assert caught.value.code == "file_not_found"
    bench.do(box.start(OnePass(box.sandbox_id, "run", "act_b3"), RunRequest(argv=["no-such-program"], timeout_s=None)))
    result, sink = bench.do(followed(box, "act_b3"))
    assert (result.exit_code, bytes(sink.stderr)) == (127, b"no-such-program: command not found\n")


def test_begun_twice_it_runs_once_also_after_its_end(bench, box):
    for _ in range(3):
        bench.do(begin(box, "echo ran >> /work/b4; echo said", "act_b4"))
    assert bench.do(followed(box, "act_b4"))[1].stdout == b"said\n"
    box.settled("act_b4")
    bench.do(begin(box, "echo ran >> /work/b4; echo said", "act_b4"))
    assert bench.bash(box, "cat /work/b4").text == "ran\n"


def test_followers_come_and_go_and_each_gets_all_from_its_offset(bench, box):
    async def scene():
        await begin(box, "for i in $(seq 20); do echo $i; sleep 0.1; done", "act_b5")
        first = asyncio.ensure_future(followed(box, "act_b5"))
        await asyncio.sleep(0.7)
        first.cancel()
        await asyncio.wait([first])
        return await followed(box, "act_b5"), await followed(box, "act_b5", have={"stdout": 6})

    (result, whole), (_, rest) = bench.do(scene())
    assert whole.stdout.decode().split() == [str(n) for n in range(1, 21)]
    assert (rest.gaps, bytes(rest.stdout)) == ([("stdout", 0, 6)], bytes(whole.stdout[6:]))
    assert result.lost_bytes == 0


def test_a_broken_line_is_not_noticed_by_begin_feed_or_follow(bench, box):
    async def scene():
        await begin(box, "cat -n", "act_b6", stdin=b"first\n")
        following = asyncio.ensure_future(followed(box, "act_b6"))
        for number in range(5):
            sending = asyncio.ensure_future(feed(box, "act_b6", b"line %d\n" % number, action_id=f"act_b6_{number}"))
            await asyncio.sleep(0)
            box._link.now()._stream._transport.abort()
            await sending
        await feed(box, "act_b6", b"", end=True)
        return await following

    result, sink = bench.do(scene())
    lines = [line.split("\t")[1] for line in sink.stdout.decode().splitlines()]
    assert lines == ["first", *(f"line {n}" for n in range(5))]
    assert (result.exit_code, sink.gaps) == (0, [])


def test_stdin_is_sent_once_and_its_refusals_are_told_apart(bench, box):
    async def code(*args, **more):
        try:
            await feed(*args, **more)
        except Refusal as refused:
            return refused.code

    async def scene():
        await begin(box, "head -c 6; exec <&-; sleep 20", "act_b7")
        for _ in range(2):
            await feed(box, "act_b7", b"abc", action_id="act_b7_in")
        await feed(box, "act_b7", b"def")
        await asyncio.sleep(0.5)
        closed = await code(box, "act_b7", b"x")
        await box.stop("act_b7")
        return closed, await code(box, "act_b7", b"x"), await code(box, "act_none", b"x"), await followed(box, "act_b7")

    closed, ended, unknown, (result, sink) = bench.do(scene())
    assert (closed, ended, unknown) == ("stdin_closed", "command_ended", "command_ended")
    assert (result.stopped, bytes(sink.stdout)) == (True, b"abcdef")


def test_a_program_that_does_not_read_costs_a_bounded_buffer_and_gets_all_once_it_reads(bench, box):
    block = b"0123456789abcde\n" * (1 << 16)  # a mebibyte

    async def scene():
        await begin(box, "until test -e /work/go; do sleep 0.1; done; sha256sum | cut -c1-64", "act_b8")
        taken, code = 0, ""
        while not code and taken < 20:
            try:
                await feed(box, "act_b8", block)
            except Refusal as refused:
                code = refused.code
            else:
                taken += 1
        await bench.bashing(box, "touch /work/go")
        await asyncio.sleep(0.5)
        await feed(box, "act_b8", b"", end=True)
        return taken, code, await followed(box, "act_b8")

    taken, code, (_, sink) = bench.do(scene())
    assert (3 <= taken <= 5, code) == (True, "stdin_full")
    assert sink.stdout.decode().strip() == hashlib.sha256(block * taken).hexdigest()


def test_one_too_many_is_refused_until_one_ends(bench, fresh_box):
    async def scene():
        for number in range(19):
            await begin(fresh_box, "sleep 60", f"act_m{number}")
        await bench.bashing(fresh_box, "(sleep 60 &)")  # its tree lives on: that counts too
        with pytest.raises(Refusal) as caught:
            await begin(fresh_box, "true", "act_m20")
        await fresh_box.stop("act_m0")
        await begin(fresh_box, "echo room", "act_m21")
        return caught.value.code, (await followed(fresh_box, "act_m21"))[1].stdout

    assert bench.do(scene()) == ("too_many_commands", b"room\n")


def test_what_is_left_of_a_command_is_told_when_it_is_gone(bench, box):
    async def scene():
        ran = await bench.bashing(box, "(setsid sleep 1.5 &) ; echo done", action_id="act_b9")
        box.settled("act_b9")
        began_at = time.monotonic()
        await box.emptied("act_b9")
        return ran, time.monotonic() - began_at

    ran, waited_s = bench.do(scene())
    assert ran.result.left_running
    assert waited_s > 0.5
    bench.do(box.emptied("act_b9"))
    bench.do(box.emptied("act_of_nobody"))


def test_a_thousand_short_ones_each_say_what_they_have_to_say(bench, box):
    """None says nothing, none ends early (C9)."""

    async def some(start):
        return [(await bench.running(box, "echo", f"hello {n}")).text for n in range(start, start + 125)]

    async def scene():
        return await asyncio.gather(*(some(start) for start in range(0, 1000, 125)))

    said = [text for part in bench.do(scene()) for text in part]
    assert said == [f"hello {n}\n" for n in range(1000)]
