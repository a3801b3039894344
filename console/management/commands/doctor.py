"""`manage.py doctor`: proves each part by using it, one line each, with the fix for what fails. Changes nothing."""

import asyncio
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from django.core.management import BaseCommand, CommandParser
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from console import first_run
from console.workspaces import audit, audit_heads
from console.workspaces.models import Agent, Workspace
from sandboxes.engine import doctor
from sandboxes.engine.machine import Check
from sandboxes.models import PooledSandbox

STORES = ("blobs", "outputs", "artifacts")


class Command(BaseCommand):
    help = "Proves each part of this instance and prints one line each, with the fix for what fails."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON list, for a program that watches")

    def handle(self, **options: Any) -> None:
        self.as_json = options["json"]
        found = self._shown(ours())
        images = allowed_images() if all(check.ok for check in found if check.name == "database") else set()
        found += asyncio.run(self._engine(images))
        failed = sum(not check.ok for check in found)
        if self.as_json:
            self.stdout.write(json.dumps([asdict(check) for check in found], indent=2))
        else:
            self.stdout.write(f"{len(found) - failed} of {len(found)} parts are as they should be.")
        if failed:
            raise SystemExit(1)

    async def _engine(self, images: set[str]) -> list[Check]:
        return [self._show(check) async for check in doctor.checks(settings.VAR, settings.INSTANCE, images)]

    def _shown(self, checks: Iterator[Check]) -> list[Check]:
        return [self._show(check) for check in checks]

    def _show(self, check: Check) -> Check:
        if self.as_json:
            return check
        mark = self.style.SUCCESS("ok  ") if check.ok else self.style.ERROR("FAIL")
        fix = "" if check.ok or not check.fix else f"  Fix: {check.fix}"
        self.stdout.write(f"{mark} {check.name}: {check.detail}{fix}")
        return check


def ours() -> Iterator[Check]:
    """The state directory, the database and the audit chains."""
    mode = stat.S_IMODE(settings.VAR.stat().st_mode)
    yield Check("state directory", not mode & 0o077, f"{settings.VAR}, mode {mode:04o}", f"chmod 700 {settings.VAR}")
    yield Check("privileges", os.geteuid() == 0, f"user id {os.geteuid()}", "Run as root: disk caps need it.")
    yield from map(_store, STORES)
    yield from _database()
    if settings.ENGINE:
        runsc = settings.ENGINE.get("runsc") or {}
        yield Check("gVisor", True, f"runsc {runsc.get('version', 'of unknown version')} at {runsc.get('path', '?')}")
    if first_run.exists():
        fix = "Note the keys, then run bin/up --forget-first-run."
        yield Check("first-run.json", True, f"still there, with keys in it. {fix}", fix)


def _store(name: str) -> Check:
    store = storages[name]
    if not isinstance(store, FileSystemStorage):
        return Check(f"storage {name}", True, type(store).__name__)
    place, fix = store.location, f"Give {os.geteuid()}, the user this runs as, the right to write there."
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"x")
    except OSError as error:
        return Check(f"storage {name}", False, f"{place}: {error.strerror}", fix)
    return Check(f"storage {name}", True, f"{place} can be written")


def allowed_images() -> set[str]:
    """What some workspace or agent allows beside the default image."""
    named = [*Workspace.objects.values_list("images", flat=True), *Agent.objects.values_list("images", flat=True)]
    return {image for images in named for image in images}


def _pool() -> Check:
    wanted = sum(Workspace.objects.values_list("pool_size", flat=True))
    ready, begun = PooledSandbox.objects.exclude(ready_at=None).count(), PooledSandbox.objects.count()
    detail = f"{ready} sandboxes are ready, {begun - ready} on their way, {wanted} are kept at most"
    fix = "Start the console, which takes away what is too much; its log says why when it does not."
    return Check("pool", begun <= wanted, detail, fix)


def _whole() -> Check:
    """What SQLite says of its own file; other databases look after theirs."""
    if connection.vendor != "sqlite":
        return Check("database file", True, connection.vendor)
    try:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA quick_check(1)")
            said = cursor.fetchone()[0]
    except DatabaseError as error:
        said = str(error)
    return Check("database file", said == "ok", said, "Stop the console and put a backup in its place.")


def _database() -> Iterator[Check]:
    name = str(settings.DATABASES["default"]["NAME"])
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    yield Check(
        "database", not missing, f"{name}, {len(missing)} migrations missing", "Start with bin/up, which migrates."
    )
    if missing:
        return
    yield _whole()
    yield _pool()
    broken = [
        f"{workspace}: {fault}" for workspace in Workspace.objects.all() for fault in audit.broken_links(workspace)
    ]
    detail = broken[0] if broken else "every row follows the one before"
    yield Check("audit chain", not broken, detail, "Somebody changed rows by hand. Compare with a backup.")
    for place in audit_heads.standing():
        fix = f"See SANDGATE_AUDIT_HEAD_{place.place.upper()}; it is tried again each hour."
        yield Check(f"audit heads, {place.place}", not place.error, place.said, fix)
