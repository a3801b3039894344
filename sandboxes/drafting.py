"""What an edit would do now, asked of its sandbox, and how a proposal is bound to that. Must never write there."""

from collections.abc import Mapping
from typing import Any

from .engine import Box, Draft
from .toolsets.two import edit


async def draft(box: Box, arguments: Mapping[str, Any]) -> Draft:
    """Whatever it was made for before. FileError when it cannot be done."""
    return await box.draft(edit.request(arguments, {}))


def bases_of(arguments: Mapping[str, Any], found: Draft) -> dict[str, str | None]:
    return {arguments["path"]: found.sha256, edit.BECOMES: found.becomes}


def shown(found: Draft) -> dict[str, int]:
    """SHA-256 → bytes of both sides of its difference."""
    return {found.sha256: len(found.old), found.becomes: len(found.new)}
