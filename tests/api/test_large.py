"""Large contents: the pieces join to what the standard functions make, and nothing else is taken for base64."""

import base64
import json
import random
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from console.api import answers, base64s, schemas
from sandboxes.outputs import Kept

ACROSS = "A" * (base64s.ENCODED_STEP - 4) + "AA==AAAA"  # padding where one step ends
SIZES = [0, 1, 2, 3, base64s.STEP - 1, base64s.STEP, base64s.STEP + 1, 2 * base64s.STEP + 2]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.dictionaries(st.text(), inner) | st.lists(inner),
)


@pytest.mark.parametrize("size", SIZES)
def test_base64_is_as_ever(size):
    content = random.Random(size).randbytes(size)
    assert base64s.encode(content) == base64.b64encode(content).decode()
    assert base64s.decode(base64s.encode(content)) == content


@pytest.mark.parametrize(
    "text",
    ["A", "AA", "AAA", "AA=", "=AAA", "AA==AA==", "AAAA\n", " AAAA", "AA-_", "ÄAAA", ACROSS],
)
def test_what_is_no_base64_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  (any of binascii's)
        base64s.decode(text)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine it is
@given(st.dictionaries(st.text(), ANY_JSON))
def test_pieces_are_json(value):
    assert json.loads("".join(answers._pieces(value))) == value


def in_files(folder, content):
    """In three, as a head and two segments of the end would be."""
    third = len(content) // 3 + 1
    parts = [content[at : at + third] for at in range(0, len(content), third)]
    for nth, part in enumerate(parts):
        (folder / str(nth)).write_bytes(b"before" + part + b"after")
    return Kept(tuple((folder / str(nth), 6, len(part)) for nth, part in enumerate(parts)), third, len(content))


class Shown(BaseModel):
    out: str
    n: int


@pytest.mark.anyio
@pytest.mark.parametrize(
    "size", [0, 10, answers.WHOLE_BYTES, answers.WHOLE_BYTES + 1, answers.PIECE_CHARACTERS * 9 + 1]
)
async def test_what_was_printed_is_the_same_text_however_it_is_sent(size, tmp_path):
    """Characters of every length across every border of a piece, and bytes that are none at the end of it all."""
    for unit in (b"x", 'é漢😀"\n'.encode(), b"\xff\x00\xe6\xbc", b"\xf0\x9f"):
        for shift in range(4):
            content = (b"." * shift + unit * size)[:size] if size else b""
            answer = await answers.printed(Shown(out="", n=1), out=in_files(tmp_path, content))
            parts = [part async for part in answer] if answer.streaming else [answer.content]
            assert json.loads(b"".join(parts)) == {"out": content.decode(errors="replace"), "n": 1}


@pytest.mark.anyio
async def test_a_large_answer_is_never_held_whole_however_often_it_is_asked_for(tmp_path):
    kept = in_files(tmp_path, b"a line of what a long build prints\n" * (10 << 20 >> 5))
    tracemalloc.start()
    try:
        for _ in range(3):
            answer = await answers.printed(Shown(out="", n=1), out=kept)
            assert sum([len(part) async for part in answer]) > kept.size_bytes
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["x" * 700_000, 'é\0"\\\n🎉' * 100_000])
async def test_a_large_answer_is_the_same_as_a_small_one(text):
    answer = schemas.File(path="/work/x", content=text, encoding="utf-8", size=1, sha256="0")
    streamed = await answers.large(answer, size_bytes=len(text))
    assert streamed.streaming
    pieces = [piece async for piece in streamed]
    assert max(map(len, pieces)) < 1 << 19
    assert json.loads(b"".join(pieces)) == json.loads(answer.model_dump_json())
