"""Outputs go when their time is over, and never before: not of what is open, runs on, or ended lately."""

import os
import time
from datetime import timedelta

import pytest
from django.core.files.storage import storages
from django.utils import timezone

from approvals.models import Action
from console.workspaces import db
from sandboxes import answers, outputs, retention
from sandboxes.models import Command
from tests.api.conftest import make_sandbox
from tests.approvals.proposals import pending

pytestmark = pytest.mark.anyio
DAYS = 40


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


def printed(action_id, *, days=DAYS):
    """A folder in which nothing changed for so long."""
    answers.keep(action_id, {"lines": ["x" * 2000]})
    folder = storages["outputs"].path(action_id)
    at = time.time() - days * 86400
    os.utime(folder, (at, at))
    return folder


def ended(cast, *, days=DAYS, **command):
    action = pending(cast.caller(cast.scout), f"echo {days} {command}")
    then = timezone.now() - timedelta(days=days)
    Action.objects.filter(pk=action.pk).update(status="succeeded", started_at=then, ended_at=then)
    if command:
        box = make_sandbox(cast.scout)
        Command.objects.create(sandbox=box, action_id=action.pk, **command)
    return action.pk


async def test_only_what_ended_long_ago_and_is_not_written_to_goes(committed_cast):
    cast = committed_cast

    def make():
        old = timezone.now() - timedelta(days=DAYS)
        gone = [printed(ended(cast)), printed(ended(cast, status="exited", ended_at=old)), printed("act_unknown")]
        kept = [
            printed(ended(cast, days=9)), printed(ended(cast), days=9), printed(pending(cast.caller(cast.scout)).pk),
            printed(ended(cast, status="running", background=True)),
            printed(ended(cast, status="exited", ended_at=old, left_running=True)),
            printed(ended(cast, status="exited", ended_at=timezone.now())),
        ]  # fmt: skip
        return gone, kept

    gone, kept = await db.write(make)
    await retention.sweep()
    assert [folder for folder in gone if os.path.exists(folder)] == []
    assert [folder for folder in kept if not os.path.exists(folder)] == []


async def test_what_went_is_read_as_nothing_kept_of_so_much(committed_cast):
    action_id = await db.write(ended, committed_cast)
    await outputs.Outputs(action_id).put("stdout", 0, b"hello")
    printed(action_id)
    await retention.sweep()
    kept = outputs.kept(action_id, "stdout", 5)
    assert (kept.read(), kept.total_bytes, kept.truncated) == (b"", 5, True)
    assert answers.kept(action_id) == {}


async def test_a_machine_without_any_output_is_no_fault(committed_cast):
    await retention.sweep()
