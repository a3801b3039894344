"""A listing that is none, in each way that one can be none: its caller gets BoxGone, and nothing of it is believed."""

import hashlib
import json

import pytest

from sandboxes.engine import transfers
from sandboxes.errors import BoxGone
from sandboxes.runner import frames
from tests.engine.test_hostile_runner import play
from tests.gvisor.engines import OnePass

INFO = {"path": "/work", "size": 1, "truncated": False}
GOOD = ["f", "file", 1, 0o644, 0]


def entries(box):
    return box.entries(OnePass(box.sandbox_id, "list"), "/work", depth=1)


def tell(content: bytes, info=INFO):
    def lie(liar, ref):
        liar.say(frames.INFO, info, ref=ref)
        for at in range(0, len(content), frames.CHUNK_BYTES):
            liar.say(frames.CONTENT, content[at : at + frames.CHUNK_BYTES], ref=ref, offset=at)
        end = {"ok": {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}}
        liar.say(frames.RESULT, end, ref=ref)

    return lie


def test_the_truth_is_believed(tmp_path):
    name = "a\udcff\nb"
    found, _ = play(tmp_path, tell(json.dumps([GOOD, [name, "link", 0, 0o7777, -5]]).encode()), entries)
    assert [(entry.path, entry.type, entry.mtime_ms) for entry in found.entries] == [
        (b"f", "file", 0), (b"a\xff\nb", "link", -5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "lie",
    [
        b"", b"{", b"{}", b"7", b'"x"', b"[7]", b"[[]]", b"[" * 50_000,
        json.dumps([GOOD[:4]]).encode(), json.dumps([[*GOOD, 1]]).encode(),
        *(
            json.dumps([[*GOOD[:at], wrong, *GOOD[at + 1 :]]]).encode()
            for at, wrongs in enumerate((
                (7, None, "\ud800", "x" * 9000), ("socket", None, 1), (-1, 1.5, True, "1", 2**63), (-1, 0o10000, None),
                (1.5, True, None, 2**63, -(2**63)),
            ))
            for wrong in wrongs
        ),
    ],
)  # fmt: skip
def test_what_is_no_listing_is_the_end_of_the_sandbox(tmp_path, lie):
    async def scene(box):
        with pytest.raises(BoxGone):
            await entries(box)

    play(tmp_path, tell(lie), scene)


@pytest.mark.parametrize("info", [{}, {"path": 1, "truncated": False}, {"path": "/work", "truncated": 0}])
def test_facts_that_are_none_are_not_believed(tmp_path, info):
    async def scene(box):
        with pytest.raises(BoxGone):
            await entries(box)

    play(tmp_path, tell(b"[]", info), scene)


def test_a_listing_without_an_end_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(transfers, "LISTING_BYTES", 100_000)

    async def scene(box):
        with pytest.raises(BoxGone):
            await entries(box)

    play(tmp_path, tell(b" " * 200_000), scene)
