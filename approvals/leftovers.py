"""Removes kept contents that no action names: those of calls that were refused after all, or died half-way.

Must never remove what a row names, or what one is about to name: `payloads` gives each content an hour for that.
"""

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from console.workspaces import db

from . import payloads
from .models import PayloadUse

FILES_A_ROUND = 5000
NAMES_A_QUERY = 500


def named(sha256s: list[str]) -> set[str]:
    return set(PayloadUse.objects.filter(sha256__in=sha256s).values_list("sha256", flat=True))


class Leftovers:
    """Goes through the files a part at a time; each round goes on where the one before stopped."""

    def __init__(self) -> None:
        self._files: Iterator[Path] = iter(())

    async def round(self) -> int:
        """How many were removed."""
        removed, old = 0, await asyncio.to_thread(self._old)
        for at in range(0, len(old), NAMES_A_QUERY):
            part = old[at : at + NAMES_A_QUERY]
            kept = await db.read(named, [file.name for file in part])
            garbage = [file for file in part if file.name not in kept]
            removed += await asyncio.to_thread(lambda files: sum(map(payloads.remove_old, files)), garbage)
        return removed

    def _old(self) -> list[Path]:
        seen = list(islice(self._files, FILES_A_ROUND))
        if len(seen) < FILES_A_ROUND:  # to the end: from the beginning
            self._files = payloads.files()
            seen += islice(self._files, FILES_A_ROUND - len(seen))
        return [file for file in dict.fromkeys(seen) if payloads.is_old(file)]
