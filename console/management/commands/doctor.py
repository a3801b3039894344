"""`manage.py doctor`: proves each part by using it, one line each, with the fix for what fails. Changes nothing."""

import asyncio
import os
import stat
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from console import first_run
from console.workspaces import audit
from console.workspaces.models import Workspace
from sandboxes.engine import doctor
from sandboxes.engine.doctor import Check


class Command(BaseCommand):
    help = "Proves each part of this instance and prints one line each, with the fix for what fails."
    requires_system_checks: list[str] = []

    def handle(self, **_: Any) -> None:
        found = [*self._shown(ours()), *asyncio.run(self._engine())]
        failed = sum(not check.ok for check in found)
        self.stdout.write(f"{len(found) - failed} of {len(found)} parts are as they should be.")
        if failed:
            raise SystemExit(1)

    async def _engine(self) -> list[Check]:
        return [self._show(check) async for check in doctor.checks(settings.VAR, settings.INSTANCE)]

    def _shown(self, checks: Iterator[Check]) -> list[Check]:
        return [self._show(check) for check in checks]

    def _show(self, check: Check) -> Check:
        mark = self.style.SUCCESS("ok  ") if check.ok else self.style.ERROR("FAIL")
        fix = "" if check.ok or not check.fix else f"  Fix: {check.fix}"
        self.stdout.write(f"{mark} {check.name}: {check.detail}{fix}")
        return check


def ours() -> Iterator[Check]:
    """The state directory, the database and the audit chains."""
    mode = stat.S_IMODE(settings.VAR.stat().st_mode)
    yield Check("state directory", not mode & 0o077, f"{settings.VAR}, mode {mode:04o}", f"chmod 700 {settings.VAR}")
    yield Check("privileges", os.geteuid() == 0, f"user id {os.geteuid()}", "Run as root: disk caps need it.")
    yield from _database()
    if first_run.exists():
        fix = "Note the keys, then run bin/up --forget-first-run."
        yield Check("first-run.json", True, f"still there, with keys in it. {fix}", fix)


def _database() -> Iterator[Check]:
    name = str(settings.DATABASES["default"]["NAME"])
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    yield Check(
        "database", not missing, f"{name}, {len(missing)} migrations missing", "Start with bin/up, which migrates."
    )
    if missing:
        return
    broken = [
        f"{workspace}: {fault}" for workspace in Workspace.objects.all() for fault in audit.broken_links(workspace)
    ]
    detail = broken[0] if broken else "every row follows the one before"
    yield Check("audit chain", not broken, detail, "Somebody changed rows by hand. Compare with a backup.")
