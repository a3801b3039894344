"""A runner that says nothing while somebody waits: told soon when its host is gone or it is paused, waited for else."""

import asyncio
import time

import pytest

from sandboxes.engine import channel, link
from sandboxes.engine.daemon import Unreachable
from sandboxes.errors import BoxGone, OutOfReach
from sandboxes.runner import frames
from tests.engine.liar import KILLED, RUNNING, Liar, boxed
from tests.engine.test_hostile_runner import OK, run

PAUSED = {"Config": {"Labels": {}}, "State": {"Running": True, "Paused": True}}
SOON_S = 9  # 5 to 6 s, and a busy machine


class Quiet(Liar):
    """Answers nothing but the hello, until it is `awake`."""

    def __init__(self, path, state):
        super().__init__(path, self.hears)
        self.state, self.asked, self.awake, self.ref = state, 0, False, 0

    async def hears(self, _, frame):
        self.ref = frame.ref if frame.kind == frames.REQUEST else self.ref
        if self.awake:
            self.say(frames.PONG, b"") if frame.kind == frames.PING else None

    async def call(self, work, *, timeout_s=0):
        self.asked += 1
        if self.state is None:
            await asyncio.sleep(timeout_s)
            raise Unreachable("it does not answer")
        return self.state

    def tells(self):
        self.say(frames.RESULT, {"ok": OK}, ref=self.ref)


def meet(tmp_path, state, scene):
    quiet = Quiet(tmp_path / "docker.sock", state)
    return asyncio.run(boxed(quiet, lambda box: scene(box, quiet)))


@pytest.mark.parametrize("state", [None, PAUSED], ids=["its daemon hangs", "it is paused"])
def test_who_waits_is_told_soon_and_that_it_may_go_on(tmp_path, state):
    async def scene(box, quiet):
        began = time.monotonic()
        with pytest.raises(OutOfReach) as told:
            await run(box)
        assert told.value.fields["ended_reason"] == "host_lost"
        return time.monotonic() - began

    assert 4 < meet(tmp_path, state, scene) < SOON_S


def test_one_that_is_dead_is_told_as_dead(tmp_path):
    async def scene(box, quiet):
        with pytest.raises(BoxGone) as told:
            await run(box)
        assert not isinstance(told.value, OutOfReach)
        return told.value.reason

    assert meet(tmp_path, KILLED, scene) == "crashed"


def test_a_busy_one_is_waited_for_and_loses_nothing(tmp_path):
    """Its daemon says that it runs, so it is slow: neither its connection nor what it was asked is given up."""

    async def scene(box, quiet):
        answer = asyncio.ensure_future(run(box))
        await asyncio.sleep(link.GIVE_UP_S + 2 * channel.DOUBT_S)
        assert not answer.done()
        assert quiet.asked
        quiet.tells()
        return (await answer).exit_code, quiet.attaches

    assert meet(tmp_path, RUNNING, scene) == (0, 1)


def test_one_that_answers_pings_is_asked_about_by_nobody_however_long_it_takes(tmp_path):
    async def scene(box, quiet):
        quiet.awake = True
        answer = asyncio.ensure_future(run(box))
        await asyncio.sleep(4 * channel.DOUBT_S)
        quiet.tells()
        return (await answer).exit_code, quiet.asked

    assert meet(tmp_path, RUNNING, scene) == (0, 0)


def test_what_wakes_up_in_time_has_never_been_away(tmp_path):
    async def scene(box, quiet):
        answer = asyncio.ensure_future(run(box))
        await asyncio.sleep(2 * channel.DOUBT_S)
        quiet.awake = True
        await asyncio.sleep(link.GIVE_UP_S)
        quiet.tells()
        return (await answer).exit_code

    assert meet(tmp_path, PAUSED, scene) == 0


def test_nobody_waits_so_nobody_asks(tmp_path):
    async def scene(box, quiet):
        await asyncio.sleep(4 * channel.DOUBT_S)
        return quiet.asked, box._link.now() is not None

    assert meet(tmp_path, None, scene) == (0, True)
