"""The clock of the real hub removes what nothing names, soon after the start."""

import os

import pytest

from approvals import payloads
from sandboxes import clock

from .conftest import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def leftover(monkeypatch):
    monkeypatch.setattr(clock, "LEFTOVERS_FIRST", 1)
    held = payloads.hold(b"left over" * 1000)
    payloads.keep(held)
    os.utime(payloads.path(held), (0, 0))
    return payloads.path(held)


async def test_the_clock_removes_leftovers(leftover, hub):
    await until(lambda: not leftover.exists())
