"""Large contents that lie on disk until they are taken: the JSON is what it would be of a small one."""

import io
import json

import pytest

from console.api import laid, schemas
from console.api.base64s import STEP
from sandboxes.errors import FileError, NoCapacity

pytestmark = pytest.mark.anyio
TEXT = ('é漢😀"\\\n\x00\x7f\u2028' * STEP)[: STEP + 5]


def about(encoding, size=1):
    return schemas.File(path='/work/"content":""', content="", encoding=encoding, size=size, sha256="0")


async def taken(answer):
    return json.loads(b"".join([piece async for piece in answer]))


@pytest.mark.parametrize("shift", range(4))
async def test_a_text_is_the_same_wherever_its_characters_are_cut(shift):
    text = "." * shift + TEXT
    file = laid.lay(text.encode())
    laid.check_utf8(text.encode(), "x")
    expected = about("utf-8").model_copy(update={"content": text})
    assert await taken(laid.answer(about("utf-8"), file)) == json.loads(expected.model_dump_json())


@pytest.mark.parametrize("size", [0, 1, STEP - 1, STEP, STEP + 1, 3 * STEP + 2])
async def test_bytes_are_the_same(size):
    import base64
    import random

    content = random.Random(size).randbytes(size)
    found = await taken(laid.answer(about("base64"), laid.lay(bytearray(content))))
    assert base64.b64decode(found["content"], validate=True) == content
    assert found["path"] == '/work/"content":""'


@pytest.mark.parametrize("at", [0, 1, STEP - 3, STEP - 1, STEP, 2 * STEP + 7])
def test_the_first_byte_that_is_no_utf8_is_named(at):
    for wrong in (b"\xff", b"\xe6\xbcx", b"\xf0\x9f"):
        content = (b"." * at + wrong)[: at + len(wrong)]
        with pytest.raises(UnicodeDecodeError) as whole:
            content.decode()
        with pytest.raises(FileError, match=rf"\(byte {whole.value.start}\)"):
            laid.check_utf8(bytearray(content), "x")


def test_without_room_on_disk_it_is_said_to_come_again(monkeypatch):
    class Full(io.BytesIO):
        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(laid, "TemporaryFile", lambda **_: Full())
    with pytest.raises(NoCapacity, match="No space left") as refusal:
        laid.lay(b"x")
    assert refusal.value.retry_after
