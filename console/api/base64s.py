"""Base64 of large contents, a mebibyte at a time: the standard functions hold up all threads until they are done. The
pieces are not collected: so many of them would stay with the memory allocator long after."""

import base64
import binascii
from io import BytesIO

ENCODED_STEP = 1 << 20  # whole groups of 4
STEP = ENCODED_STEP // 4 * 3


def encode(content: bytes | bytearray) -> str:
    view, encoded = memoryview(content), BytesIO()
    for at in range(0, len(view), STEP):
        encoded.write(base64.b64encode(view[at : at + STEP]))
    return encoded.getvalue().decode()


def decode(text: str) -> bytes:
    """Raises ValueError for anything but the one canonical spelling of some bytes."""
    view, content = memoryview(text.encode("ascii")), BytesIO()
    for at in range(0, len(view), ENCODED_STEP):
        piece = binascii.a2b_base64(view[at : at + ENCODED_STEP], strict_mode=True)
        if len(piece) != STEP and at + ENCODED_STEP < len(view):
            raise ValueError("padding in the middle")
        content.write(piece)
    return content.getvalue()
