"""A runner that says anything at all: whatever it sends, every call ends in an answer or one of our errors, nothing
escapes into the loop, and the server holds no more than a window of it. The lies that are known by name are in
`test_hostile_runner.py`; here hypothesis makes them up."""

import asyncio
import contextlib
import json
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandboxes.engine import RunRequest, WriteRequest
from sandboxes.engine.attach import AttachFailed
from sandboxes.errors import BoxGone, SandboxError
from sandboxes.runner import frames
from tests.engine.liar import KILLED, Liar, boxed
from tests.gvisor.engines import Collected, OnePass

MB = 1 << 20
WITHIN_S = 15.0
"""Each call, from the moment its sandbox is dead: the engine itself gives up after 4.5 s."""

KINDS = [frames.WELCOME, frames.RESULT, frames.OUT, frames.INFO, frames.CONTENT, frames.CREDIT, frames.PONG]
numbers = st.sampled_from([0, 1, 2, -1, 255, 256, 2**31, 2**32, 2**62, 2**63, 2**64 - 1, 2**64, 10**30]) | st.integers()
odd_text = st.sampled_from(["", "\0", "\ud800", "\udcff/x", "../../x", "x" * 9000, "a\nb", "\u202e"]) | st.text(
    max_size=20
)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.floats() | odd_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_text, inner, max_size=3),
    max_leaves=6,
)
NAMES = ["exit_code", "timed_out", "stopped", "left_running", "signalled", "duration_ms", "stdout_bytes",
         "stderr_bytes", "lost_bytes", "path", "size", "mode", "sha256", "killed", "taken", "truncated", "boot",
         "version", "running", "code", "detail", "unknown", "settled"]  # fmt: skip
GOOD = {"exit_code": 0, "timed_out": False, "stopped": False, "left_running": False, "signalled": False,
        "duration_ms": 1, "stdout_bytes": 0, "stderr_bytes": 0, "lost_bytes": 0, "path": "/x", "size": 0, "mode": 420,
        "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "killed": 0, "taken": 0,
        "truncated": False, "version": frames.VERSION, "boot": "boot1", "running": []}  # fmt: skip
fields = st.dictionaries(st.sampled_from(NAMES), values, max_size=4)
messages = fields.flatmap(
    lambda lie: st.sampled_from(
        [{"ok": GOOD | lie}, GOOD | lie, {"error": {"code": "no_space", "detail": "x"} | lie}, lie]
    )
)


def said(message):
    return json.dumps(message).encode()


payloads = (
    messages.map(said) | st.binary(max_size=200) | st.sampled_from([b"", b"[]", b"{", b'{"ok":' * 500, b"x" * 130_000])
)
steps = st.one_of(
    st.tuples(
        st.just("frame"), st.sampled_from(KINDS) | st.integers(0, 255), st.booleans(), st.integers(0, 7),
        st.sampled_from([0, 1, 100, 2**32, 2**62, 2**63, 2**64 - 1]), payloads,
    ),
    st.tuples(st.just("bytes"), st.binary(max_size=300)),
    st.tuples(st.just("broken"), st.integers(0, 35), payloads),
    st.tuples(st.just("cut"), st.integers(1, 40), payloads),
    st.tuples(st.just("stderr"), st.binary(max_size=300)),
    st.tuples(st.just("stream"), st.integers(0, 255), st.integers(0, 2**32 - 1)),
    st.tuples(st.just("hang up")),
    st.tuples(st.just("reborn")),
)  # fmt: skip
scripts = st.lists(st.lists(steps, max_size=5), min_size=1, max_size=4)


def perform(liar, ref, step):
    what, *rest = step
    if what == "frame":
        kind, ours, flags, offset, payload = rest
        liar.say(kind, payload, ref=ref if ours else ref + 7, flags=flags, offset=offset)
    elif what == "bytes":
        liar.raw(rest[0])
    elif what in ("broken", "cut"):
        whole = bytearray(frames.pack(liar.tag, frames.RESULT, rest[1], ref=ref))
        if what == "cut":
            del whole[-min(rest[0], len(whole)) :]
        else:
            whole[rest[0]] ^= 0x5A
        liar.raw(bytes(whole))
    elif what == "stderr":
        liar.raw(rest[0], stream=2)
    elif what == "stream":
        liar._writer.write(bytes([rest[0], 0, 0, 0]) + rest[1].to_bytes(4, "big") + b"x" * 50)
    elif what == "hang up":
        liar.hang_up()
    else:
        liar.boot = "boot2"
        liar.hang_up()


class Scripted:
    """Answers the n-th request as the n-th part says; then, or when nothing more is asked for a while, it is dead."""

    def __init__(self, script):
        self.parts = list(script)
        self.end = None

    async def __call__(self, liar, frame):
        if frame.kind != frames.REQUEST:
            return
        for step in self.parts.pop(0) if self.parts else ():
            perform(liar, frame.ref, step)
        if self.end:
            self.end.cancel()
        self.end = asyncio.get_running_loop().call_later(0.15 if self.parts else 0, self.die, liar)

    @staticmethod
    def die(liar):
        liar.state = KILLED
        liar.hang_up()


async def read(box):
    found = await box.read(OnePass(box.sandbox_id, "read"), "/work/x")
    return [len(chunk) async for chunk in found.chunks()]


async def write(box):
    async def blocks():
        for _ in range(20):
            yield bytes(100_000)

    return await box.write(OnePass(box.sandbox_id, "write"), WriteRequest(path="/work/x", size=2_000_000), blocks())


CALLS = {
    "run": lambda box: box.run(OnePass(box.sandbox_id, "run"), RunRequest(argv=["true"], timeout_s=5), Collected()),
    "start": lambda box: box.start(OnePass(box.sandbox_id, "run"), RunRequest(argv=["true"], timeout_s=5)),
    "send": lambda box: box.send(OnePass(box.sandbox_id, "stdin"), "act_1", b"x", end=True),
    "resume": lambda box: box.resume(OnePass(box.sandbox_id, "run"), Collected()),
    "follow": lambda box: box.follow("act_1", Collected()),
    "stop": lambda box: box.stop("act_1"),
    "emptied": lambda box: box.emptied("act_1"),
    "touch": lambda box: box.touch(),
    "read": read,
    "write": write,
    "look": lambda box: box.look("/work/x"),
    "entries": lambda box: box.entries(OnePass(box.sandbox_id, "list"), "/work", depth=2),
}


async def all_of(box, names):
    """Every call at once; each must end, and end well: with an answer or an error that names itself."""

    async def one(name):
        async with asyncio.timeout(WITHIN_S):
            try:
                await CALLS[name](box)
            except SandboxError as error:
                if not (error.code and str(error)):
                    raise

    done = await asyncio.gather(*[one(name) for name in names], return_exceptions=True)
    return [f"{name}: {error!r}" for name, error in zip(names, done, strict=True) if error is not None]


def play(script, names):
    """What went wrong: a call that ended in any other way, or anything that reached the loop's handler."""
    escaped = []

    async def scene(box):
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: escaped.append(context))
        return await all_of(box, names)

    with tempfile.TemporaryDirectory() as place:
        liar = Liar(Path(place) / "docker.sock", Scripted(script))
        bad = asyncio.run(boxed(liar, scene))
    ours = [context for context in escaped if "liar.py" not in repr(context)]
    return bad + [repr(context) for context in ours]


slow = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@slow
@given(scripts, st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=4))
def test_whatever_a_runner_says_every_call_ends_typed(script, names):
    assert play(script, names) == []


@slow
@given(st.lists(st.binary(max_size=200), max_size=8), st.sampled_from([1, 7, 64, 4096]))
def test_whatever_docker_says_an_attach_ends(pieces, size):
    """Also the stream around the frames is bytes from outside: heads cut anywhere, streams that do not exist."""

    async def answer(liar, frame):
        if frame.kind == frames.REQUEST:
            everything = b"".join(pieces)
            for at in range(0, len(everything), size):
                liar._writer.write(everything[at : at + size])
            liar.state = KILLED
            liar.hang_up()

    async def scene(box):
        return await all_of(box, ["run"])

    with tempfile.TemporaryDirectory() as place:
        assert asyncio.run(boxed(Liar(Path(place) / "docker.sock", answer), scene)) == []


def flood(send, scene, *, setup=None):
    """The most that the server held while `send` went on, beyond what it held before."""
    ended = asyncio.Event()

    async def answer(liar, frame):
        if frame.kind == frames.REQUEST and not liar.flooding:
            liar.flooding = True
            liar.pump = asyncio.create_task(pumped(liar, frame.ref))

    async def pumped(liar, ref):
        with contextlib.suppress(ConnectionError):
            n = 0
            while not ended.is_set() and not liar._writer.is_closing():
                send(liar, ref, n)
                n += 1
                await liar._writer.drain()
        liar.state = KILLED

    async def watched(box):
        tracemalloc.start()
        try:
            with contextlib.suppress(SandboxError):
                async with asyncio.timeout(WITHIN_S):
                    await scene(box)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            ended.set()

    with tempfile.TemporaryDirectory() as place:
        liar = Liar(Path(place) / "docker.sock", answer)
        liar.flooding = False
        return asyncio.run(boxed(liar, watched))


class Stuck(Collected):
    async def put(self, stream, offset, data):
        await asyncio.sleep(1)


def run_into(sink):
    return lambda box: box.run(OnePass(box.sandbox_id, "run"), RunRequest(argv=["true"], timeout_s=5), sink)


BLOCK = bytes(100_000)
FLOODS = {
    "output that nobody takes": lambda liar, ref, n: liar.say(frames.OUT, BLOCK, ref=ref, flags=1, offset=n * 100_000),
    "empty output that nobody takes": lambda liar, ref, n: liar.say(frames.OUT, b"", ref=ref, flags=1),
    "output of a call that nobody made": lambda liar, ref, n: liar.say(frames.OUT, BLOCK, ref=ref + 1 + n, flags=1),
    "pongs": lambda liar, ref, n: liar.say(frames.PONG, BLOCK),
    "welcomes": lambda liar, ref, n: liar.say(frames.WELCOME, {"version": frames.VERSION, "boot": "b" * 60_000}),
    "content nobody asked for": lambda liar, ref, n: liar.say(frames.CONTENT, BLOCK, ref=ref, offset=n * 100_000),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_without_an_end_is_cut_off_and_not_kept(name):
    async def scene(box):
        with pytest.raises(BoxGone) as caught:
            await run_into(Stuck())(box)
        assert caught.value.reason == "crashed"

    assert flood(FLOODS[name], scene) < 16 * MB


def test_what_pid_1_says_on_its_stderr_for_ever_is_not_kept():
    async def scene(box):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await run_into(Collected())(box)

    assert flood(lambda liar, ref, n: liar.raw(BLOCK, stream=2), scene) < 8 * MB


def test_noise_instead_of_a_welcome_is_not_kept():
    """Until the first frame everything is skipped, since an older client's rest may come; it must not be collected."""

    class Noisy(Liar):
        def say(self, kind, payload, **fields):
            for _ in range(300):
                self.raw(BLOCK)

    async def nothing(liar, frame):
        pass

    async def scene(box):
        pytest.fail("there was no welcome")

    with tempfile.TemporaryDirectory() as place:
        tracemalloc.start()
        try:
            with pytest.raises((TimeoutError, AttachFailed)):
                asyncio.run(boxed(Noisy(Path(place) / "docker.sock", nothing), scene))
            held = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert held < 60 * MB  # the liar's own: it writes 30 MB at once


def test_a_runner_that_always_hangs_up_keeps_the_loop_from_nobody():
    """The call goes on until its own time is over; meanwhile it is asked again a few times a second, not thousands."""

    async def answer(liar, frame):
        if frame.kind == frames.REQUEST:
            liar.hang_up()

    async def scene(box):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await run_into(Collected())(box)

    with tempfile.TemporaryDirectory() as place:
        liar = Liar(Path(place) / "docker.sock", answer)
        asyncio.run(boxed(liar, scene))
    assert 2 <= liar.attaches <= 20
