"""Outputs and answers go once they were kept long enough: the row still says what there was.

Owns when. Must never remove what a command still writes to, nor what belongs to an action that has not ended.
"""

import asyncio
import logging
import shutil
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from django.db.models import Q
from django.utils import timezone

from approvals.models import Action
from console.workspaces import db

from .models import Command

log = logging.getLogger("sandgate.retention")
A_ROUND = 500


async def sweep() -> None:
    """A folder is an action's; one without an action is of a call that died before it was recorded."""
    removed = 0
    for folders in await asyncio.to_thread(lambda: list(_rounds())):
        kept = await db.read(_needed, [folder.name for folder in folders])
        gone = [folder for folder in folders if folder.name not in kept]
        await asyncio.to_thread(_remove, gone)
        removed += len(gone)
    if removed:
        log.info("Removed the outputs of %d actions that ended more than %d days ago.", removed, settings.OUTPUT_DAYS)


def _rounds() -> Iterator[list[Path]]:
    """Folders in which nothing was made or removed for so long."""
    store = storages["outputs"]
    assert isinstance(store, FileSystemStorage)
    root, before = Path(store.location), time.time() - settings.OUTPUT_DAYS * 86400
    old = [folder for folder in root.iterdir() if folder.stat().st_mtime < before] if root.exists() else []
    return (old[at : at + A_ROUND] for at in range(0, len(old), A_ROUND))


def _needed(action_ids: list[str]) -> set[str]:
    since = timezone.now() - timedelta(days=settings.OUTPUT_DAYS)
    young = Action.objects.filter(Q(ended_at=None) | Q(ended_at__gt=since), pk__in=action_ids)
    going = Command.objects.filter(
        Q(status="running") | Q(left_running=True) | Q(ended_at__gt=since), action_id__in=action_ids
    )
    return set(young.values_list("pk", flat=True)) | set(going.values_list("action_id", flat=True))


def _remove(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
