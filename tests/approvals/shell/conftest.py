from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.shell import formatter

from .bash import Bash


@pytest.fixture(autouse=True, scope="session")
def _patience() -> Iterator[None]:
    """On a machine that is busy with tests, a parser that comes late has said nothing yet."""
    before, formatter.TIMEOUT_S = formatter.TIMEOUT_S, 60.0
    yield
    formatter.TIMEOUT_S = before


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Bash:
    folder: Path = tmp_path_factory.mktemp("bash")
    return Bash(folder)
