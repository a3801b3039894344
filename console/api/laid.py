"""Large file contents on their way out, laid into a file without a name: a client that takes long over its answer holds
disk, and nobody's memory.

Owns the JSON of such an answer, made piece by piece as it is taken. Must never begin an answer that it may have to take
back: that the content is UTF-8 is known before.
"""

import asyncio
import base64
import codecs
import json
from collections.abc import AsyncIterator, Iterator
from tempfile import TemporaryFile
from typing import IO

from django.conf import settings
from django.http import StreamingHttpResponse

from sandboxes.errors import FileError, NoCapacity

from . import schemas
from .answers import JSON
from .base64s import STEP

CONTENT = '"content":""'
"""Where it goes in the JSON of the rest."""


def lay(content: bytes | bytearray) -> IO[bytes]:
    """Blocking. Raises NoCapacity when the disk has no room for it."""
    try:
        file = TemporaryFile(dir=settings.VAR)
        try:
            file.write(content)
            file.seek(0)
        except BaseException:
            file.close()
            raise
    except OSError as error:
        raise NoCapacity(f"The server has no room to answer with {len(content)} bytes: {error.strerror}.") from error
    return file


def check_utf8(content: bytes | bytearray, path: str) -> None:
    """By pieces: as a text, it would be up to four times as large. FileError `not_utf8` names the first wrong byte."""
    decoder, view = codecs.getincrementaldecoder("utf-8")(), memoryview(content)
    for at in range(0, len(view), STEP):
        before = len(decoder.getstate()[0])  # the first bytes of a character that the last piece cut
        try:
            decoder.decode(view[at : at + STEP], final=at + STEP >= len(view))
        except UnicodeDecodeError as error:
            detail = f"{path} is not UTF-8 (byte {at - before + error.start}). Read it with `encoding=base64`."
            raise FileError("not_utf8", detail, path=path) from error


def answer(about: schemas.File, file: IO[bytes]) -> StreamingHttpResponse:
    """`about`, with the content of `file` in the place of its own, which is empty. Whoever calls closes `file`."""
    return StreamingHttpResponse(_paced(_pieces(about, file)), content_type=JSON)


async def _paced(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(next, pieces, b""):  # the disk may be slow, and so is JSON of so much
        yield piece


def _pieces(about: schemas.File, file: IO[bytes]) -> Iterator[bytes]:
    before, _, after = about.model_dump_json().partition(CONTENT)
    yield f"{before}{CONTENT[:-1]}".encode()
    decoder = codecs.getincrementaldecoder("utf-8")()
    while piece := file.read(STEP):
        yield base64.b64encode(piece) if about.encoding == "base64" else _escaped(decoder.decode(piece))
    yield f'"{after}'.encode()


def _escaped(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()
