"""A script as it is in its sandbox now: read to be shown, and looked at again before what was approved starts."""

from approvals import gate
from approvals.digest import reference
from approvals.models import Action
from console.workspaces import db

from .engine import Box
from .errors import FileError, SandboxError
from .runner.pinning import SCRIPT_BYTES
from .toolsets import run

CHANGED = "script_changed"


async def text(box: Box, path: str) -> tuple[str, bytes]:
    """Its real path, and what it holds. Raises FileError."""
    seen = await box.look(path, keep_bytes=SCRIPT_BYTES, most_bytes=SCRIPT_BYTES)
    if seen is None or seen.content is None:
        raise FileError("file_not_found", f"{path}: there is no such file.", path=path)
    return seen.path, seen.content


async def went_stale(action: Action, box: Box) -> bool:
    """Whether an approved action cannot start now: superseded when its script is not what was seen, tried again when it
    is out of reach."""
    if action.script is None:
        return False
    path = action.script["path"]
    try:
        path = run.named(action.arguments, run.script_of(action.arguments))
        real, content = await text(box, path)
        is_same = (real, reference(content)["sha256"]) == (action.script["path"], action.script["sha256"])
    except FileError:
        is_same = False
    except SandboxError:
        return True
    if not is_same:
        why = (
            f"Nothing was run. {path} is not the file any more that a person saw. Propose it again to show what it is."
        )
        await db.write(gate.supersede, action, why, code=CHANGED, path=path)
    return not is_same
