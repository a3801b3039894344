"""`manage.py audit`: proves the chains (`verify`), notes their heads (`head`), and removes old rows (`prune`).

Sentences for people, exit code 0 or 1 for programs. `verify` and `head` change nothing.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser
from django.db.models import QuerySet

from approvals.draw import one_line
from console.workspaces import audit, audit_export, audit_prune
from console.workspaces.chain import Head, heads_in
from console.workspaces.errors import SandgateError
from console.workspaces.models import AuditEntry, Workspace

SHOWN = 20  # sentences about one chain


class Command(BaseCommand):
    help = "Verifies the audit chains, prints their heads, and removes old rows once they are exported."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        verify = acts.add_parser("verify", help="every row, or every row of an export; exit code 1 when one is wrong")
        verify.add_argument("--workspace", default="", metavar="ID", help="this chain alone")
        verify.add_argument("--head", type=Path, metavar="FILE", help="heads noted earlier, which must still be there")
        verify.add_argument(
            "--export", type=Path, metavar="FILE", help="an export (JSON lines) instead of the database"
        )
        head = acts.add_parser("head", help="the heads of all chains, a line of JSON each")
        head.add_argument("--out", type=Path, metavar="FILE", help="append to this file instead of printing")
        prune = acts.add_parser("prune", help="export the rows of one chain up to a day, then remove them")
        prune.add_argument("--workspace", required=True, metavar="ID")
        prune.add_argument("--before", required=True, metavar="DATE", help="such as 2026-01-31, UTC: older rows go")
        prune.add_argument("--export", required=True, type=Path, metavar="FILE", help="made; must not be there yet")

    def handle(self, act: str, **options: Any) -> None:
        acts: dict[str, Callable[..., None]] = {"verify": self._verify, "head": self._head, "prune": self._prune}
        acts[act](**options)

    def _verify(self, workspace: str, head: Path | None, export: Path | None, **_: Any) -> None:
        noted = _noted(head) if head else []
        if export:
            return self._verify_export(export, noted)
        found, wrong = _chains(workspace), False
        for chain in found:
            here = [each for each in noted if each.workspace_id == chain.pk]
            wrong |= self._told(_name(chain), audit.broken_links(chain, here), _holds(chain, here))
        known = {chain.pk for chain in found}
        for lost in sorted({each.workspace_id for each in noted} - known) if not workspace else ():
            wrong = self._told(lost, ["Its head was noted, and there is no such workspace."], "")
        if wrong:
            raise SystemExit(1)

    def _verify_export(self, export: Path, noted: list[Head]) -> None:
        check = audit_export.Check(noted)
        with _opened(export) as lines:
            wrong = self._told(str(export), check.faults(lines), "")
        if wrong:
            raise SystemExit(1)
        self._say_heads(export, check, noted)
        if check.about["complete"]:
            self.stdout.write(f"{export}: rows {check.walk.first} to {check.walk.seq} hold, head {check.walk.head}.")
        else:
            self.stdout.write(
                f"{export}: each of {check.rows} rows is what was written. It is a selection: others exist."
            )

    def _say_heads(self, export: Path, check: audit_export.Check, noted: list[Head]) -> None:
        """Before anything is said to hold. Heads of which no row is here prove nothing of it: exit code 1."""
        if noted and not check.walk.proven:
            why = "no row of them is here" if check.about["complete"] else "a selection of rows is compared with none"
            self.stdout.write(f"{export}: the heads noted ({len(noted)}) prove nothing of this export: {why}.")
            raise SystemExit(1)
        if noted:
            self.stdout.write(
                f"{export}: every head noted of a row here is in it; the last is row {check.walk.proven}."
            )

    def _told(self, name: str, faults: Iterable[str], holds: str) -> bool:
        """Whether something was wrong."""
        wrong = 0
        for wrong, fault in enumerate(faults, 1):
            if wrong <= SHOWN:
                self.stdout.write(f"{name}: {fault}")
        if wrong > SHOWN:
            self.stdout.write(f"{name}: {wrong - SHOWN} more.")
        if not wrong and holds:
            self.stdout.write(f"{name}: {holds}")
        return wrong > 0

    def _head(self, out: Path | None, **_: Any) -> None:
        lines = [head.line() for head in audit.heads()]
        if out is None:
            return self.stdout.write("\n".join(lines))
        with out.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        self.stdout.write(f"{len(lines)} heads are noted in {out}. Keep it where this machine cannot write.")

    def _prune(self, workspace: str, before: str, export: Path, **_: Any) -> None:
        try:
            until = datetime.fromisoformat(before)
        except ValueError as error:
            raise CommandError(f"--before is a day, such as 2026-01-31, not {before!r}.") from error
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        try:
            removed = audit_prune.prune(_chains(workspace)[0], before=until, file=export, actor=audit.SYSTEM)
        except SandgateError as error:
            raise CommandError(error.detail) from error
        if removed:
            self.stdout.write(f"{removed} rows are in {export}, checked, and removed here. The chain goes on.")
        else:
            self.stdout.write("No row is that old; nothing was written or removed.")


def _chains(workspace: str) -> QuerySet[Workspace]:
    found = Workspace.objects.order_by("pk")
    if workspace and not (found := found.filter(pk=workspace)):
        raise CommandError(f"There is no workspace {workspace}. `manage.py audit head` names them.")
    return found


def _name(workspace: Workspace) -> str:
    return f"{workspace.pk} ({one_line(workspace.name)})"


def _holds(workspace: Workspace, noted: list[Head]) -> str:
    """Of heads before the first row nothing is known here: what they are of was exported and removed."""
    first = AuditEntry.objects.filter(workspace=workspace).order_by("seq").values_list("seq", flat=True).first()
    if first is None:
        return "No rows."
    gone = sum(head.seq < first for head in noted)
    heads = f", and every head noted is in it ({len(noted) - gone})" if noted else ""
    heads += f"; {gone} more are of rows before, which are in the export they were removed with" if gone else ""
    return f"Rows {first} to {workspace.audit_seq} hold{heads}. Head {workspace.audit_head}."


def _noted(file: Path) -> list[Head]:
    try:
        with _opened(file) as lines:
            found = list(heads_in(lines))
    except ValueError as error:
        raise CommandError(f"{file}: {error}") from error
    if not found:
        raise CommandError(f"{file} has no heads, as `manage.py audit head` or the hourly export write them.")
    return found


def _opened(file: Path) -> Any:
    try:
        return file.open(errors="replace")
    except OSError as error:
        raise CommandError(f"{file} cannot be read ({error.strerror}).") from error
