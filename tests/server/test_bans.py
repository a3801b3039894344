"""Two names that look right and are not, on this Python and under this server."""

import re

import pytest

from .conftest import CHECKOUT


@pytest.mark.parametrize(("name", "instead"), [
    (r"asyncio\.wait_for|from asyncio import .*\bwait_for",
     "async with asyncio.timeout(...): 3.11's wait_for loses a cancel that comes with the result"),
    (r"\bFileResponse\b", "an asynchronous generator: Django collects the whole file in memory first"),
])  # fmt: skip
def test_not_used_anywhere(name, instead):
    files = [path for top in ("console", "approvals", "sandboxes") for path in (CHECKOUT / top).rglob("*.py")]
    assert len(files) > 50
    assert not [str(path) for path in files if re.search(name, path.read_text())], f"use {instead}"
