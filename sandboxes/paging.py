"""What a command printed, as pages of bytes that end between characters.

Owns where a page may end. Blocking: for a thread of the database's, as the files are local.
"""

from dataclasses import dataclass

from . import outputs
from .models import Command


@dataclass(frozen=True)
class Page:
    """`begin` is later than the offset asked for when `lost_bytes` before it are not kept any more; it is earlier when
    so much was never printed."""

    begin: int
    content: bytes
    lost_bytes: int

    @property
    def end(self) -> int:
        return self.begin + len(self.content)


def page(row: Command, name: outputs.Name, offset: int, *, limit: int) -> Page:
    """A character whose rest is still to come waits for it, so that texts read page by page join without a flaw."""
    begin, content = outputs.page(row.action_id, name, offset=offset, limit=limit)
    if not content:
        return Page(min(offset, max(begin, getattr(row, f"{name}_bytes"))), b"", 0)
    whole = _whole_characters(content)
    return Page(begin, whole if row.status == "running" else whole or content, begin - offset)


def _whole_characters(content: bytes) -> bytes:
    """Without the first bytes of a UTF-8 character at the end whose other bytes are missing."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte & 0xC0 == 0x80:
            continue
        needs = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return content[:-back] if needs > back else content
    return content
