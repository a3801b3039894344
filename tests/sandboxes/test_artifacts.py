"""Artifacts and their files: each there as long as its row, no longer, and no more than there is room for."""

import asyncio
import os
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals.errors import TooMany
from sandboxes import artifacts
from sandboxes.models import Artifact
from tests.api.conftest import make_sandbox

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    options = {**settings.STORAGES["artifacts"]["OPTIONS"], "location": tmp_path / "artifacts"}
    settings.STORAGES = {**settings.STORAGES, "artifacts": {**settings.STORAGES["artifacts"], "OPTIONS": options}}
    (tmp_path / "artifacts").mkdir()
    return tmp_path / "artifacts"


@pytest.fixture
def sandbox(committed_cast):
    return make_sandbox(committed_cast.scout)


def make(sandbox, folder, *, days=30, size=1, agent=True):
    row = Artifact.objects.create(
        workspace=sandbox.workspace, agent=sandbox.agent if agent else None, sandbox=sandbox, path="/work/x", size=size,
        sha256="0" * 64, expires_at=timezone.now() + timedelta(days=days),
    )  # fmt: skip
    (folder / row.pk).write_bytes(b"x")
    return row


def aged(file):
    file.write_bytes(b"half")
    os.utime(file, (time.time(), time.time() - artifacts.UNNAMED_S - 1))


def test_what_has_expired_goes_with_its_file_and_what_has_not_stays(sandbox, folder):
    over = [make(sandbox, folder, days=-1) for _ in range(3)]
    kept = make(sandbox, folder)
    os.utime(folder / kept.pk, (0, 0))
    assert asyncio.run(artifacts.sweep()) == 3
    assert [file.name for file in folder.iterdir()] == [kept.pk]
    assert list(Artifact.objects.values_list("pk", flat=True)) == [kept.pk]
    assert not any((folder / row.pk).exists() for row in over)


def test_files_that_no_row_names_go_after_an_hour(sandbox, folder):
    aged(folder / "art_of_a_server_that_died.part")
    aged(folder / "art_without_a_row")
    (folder / "art_about_to_be_named").write_bytes(b"new")
    assert asyncio.run(artifacts.sweep()) == 2
    assert [file.name for file in folder.iterdir()] == ["art_about_to_be_named"]


def test_many_that_end_at_once_all_go(sandbox, folder, monkeypatch):
    monkeypatch.setattr(artifacts, "A_ROUND", 2)
    for _ in range(5):
        make(sandbox, folder, days=-1)
    assert asyncio.run(artifacts.sweep()) == 5
    assert list(folder.iterdir()) == []


def test_there_is_room_for_so_many_bytes_of_an_agent_and_what_expired_counts_no_more(sandbox, folder):
    make(sandbox, folder, size=artifacts.KEPT_BYTES, days=-1)
    make(sandbox, folder, size=artifacts.KEPT_BYTES, agent=False)
    artifacts.check_room(sandbox)
    make(sandbox, folder, size=artifacts.KEPT_BYTES)
    with pytest.raises(TooMany, match="1 artifacts of 2147483648 bytes"):
        artifacts.check_room(sandbox)


def test_there_is_room_for_so_many_files(sandbox, folder, monkeypatch):
    monkeypatch.setattr(artifacts, "KEPT_FILES", 1)
    artifacts.check_room(sandbox)
    make(sandbox, folder)
    with pytest.raises(TooMany):
        artifacts.check_room(sandbox)
