"""Base64 of large contents, a mebibyte at a time: the standard functions hold up all threads until they are done."""

import base64
import binascii

ENCODED_STEP = 1 << 20  # whole groups of 4
STEP = ENCODED_STEP // 4 * 3


def encode(content: bytes) -> str:
    view = memoryview(content)
    return b"".join(base64.b64encode(view[at : at + STEP]) for at in range(0, len(view), STEP)).decode()


def decode(text: str) -> bytes:
    """Raises ValueError for anything but the one canonical spelling of some bytes."""
    view = memoryview(text.encode("ascii"))
    steps = range(0, len(view), ENCODED_STEP)
    pieces = [binascii.a2b_base64(view[at : at + ENCODED_STEP], strict_mode=True) for at in steps]
    if any(len(piece) != STEP for piece in pieces[:-1]):
        raise ValueError("padding in the middle")
    return b"".join(pieces)
