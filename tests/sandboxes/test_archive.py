"""Files of a sandbox in quarantine, on their way to whoever asked: nobody else is kept from it for longer than that."""

import asyncio

import pytest

from sandboxes import reads
from sandboxes.errors import Busy, FileError
from sandboxes.passage import HELD_BYTES, Passage

pytestmark = pytest.mark.anyio
PIECE = bytes(256 << 10)
PIECES = 8 * HELD_BYTES // len(PIECE)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Kept:
    """Stands in for boxes and their engine: one lock, and an archive that notes whether it was closed."""

    def __init__(self) -> None:
        self.one, self.closed = asyncio.Lock(), False

    def lock(self, _: str) -> asyncio.Lock:
        return self.one

    def is_at_work_on(self, _: str) -> bool:
        return self.one.locked()

    def ready(self) -> "Kept":
        return self

    async def archive(self, _: str):
        try:
            for _ in range(PIECES):
                yield PIECE
        finally:
            self.closed = True


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(reads, "TAKEN_WITHIN_S", 0.2)


async def free(kept: Kept) -> None:
    async with asyncio.timeout(5), kept.one:
        pass


async def test_who_asks_and_takes_nothing_gives_the_sandbox_back(quick):
    kept, passage = Kept(), Passage()
    reading = reads.Reads(kept)
    await reading.archive("sbx_1", passage)
    await asyncio.sleep(0.05)
    with pytest.raises(Busy):
        await reading.archive("sbx_1", Passage())
    await free(kept)
    assert kept.closed
    assert len(await passage.take()) >= HELD_BYTES
    with pytest.raises(FileError, match="was cut"):
        await passage.take()


async def test_who_takes_slowly_gets_all_of_it(quick):
    kept, passage, got = Kept(), Passage(), 0
    await reads.Reads(kept).archive("sbx_1", passage)
    while piece := await passage.take():
        got += len(piece)
        await asyncio.sleep(0.1)
    assert got == PIECES * len(PIECE)
    await free(kept)
