"""What a tool answered, whole: what is long or no row takes in a file beside what commands print, the rest
in the action's row.

Owns that file. It is there before the row says that the action succeeded, and goes when outputs go: then the row still
says what it was. Must never make a row large: an agent reads all day.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage, storages

SHORT_CHARACTERS = 1000


def _file(action_id: str) -> Path:
    store = storages["outputs"]
    assert isinstance(store, FileSystemStorage)
    return Path(store.path(action_id)) / "answer.json"


def parts(result: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """For the row, and for the file."""
    long = {name: value for name, value in result.items() if _is_for_the_file(value)}
    return {name: value for name, value in result.items() if name not in long}, long


def _is_for_the_file(value: object) -> bool:
    """Long, or with a NUL, which no row of PostgreSQL takes."""
    if isinstance(value, str):
        return len(value) > SHORT_CHARACTERS or "\0" in value
    text = json.dumps(value) if isinstance(value, list | dict) else ""
    return len(text) > SHORT_CHARACTERS or r"\u0000" in text


def keep(action_id: str, long: Mapping[str, Any]) -> None:
    """Blocking. Whole or not there."""
    file = _file(action_id)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(long))
    os.replace(part, file)


def kept(action_id: str) -> dict[str, Any]:
    """Blocking. Empty when nothing was kept, or it is kept no more."""
    try:
        found: dict[str, Any] = json.loads(_file(action_id).read_text())
    except FileNotFoundError:
        return {}
    return found
