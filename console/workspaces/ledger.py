"""The two numbered records of a workspace, its changes and its audit chain, under one lock and one write-back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from django.db import connection

from . import rows
from .models import Workspace

NUMBERS = ("change_seq", "audit_seq", "audit_head")


@dataclass
class Ledger:
    """Of one workspace: where its two records stand."""

    workspace_id: str
    change_seq: int
    audit_seq: int
    audit_head: str


@contextmanager
def opened(workspace_id: str) -> Iterator[Ledger]:
    """As the workspace's row has it, locked; written back at the end. Must be inside the transaction of what is
    recorded: the lock is what keeps both records without gaps."""
    read, write = _statements()
    found = rows.ask(read, [workspace_id]).fetchone()
    if found is None:
        raise Workspace.DoesNotExist(workspace_id)
    ledger = Ledger(workspace_id, *found)
    yield ledger
    rows.ask(write, [*(getattr(ledger, name) for name in NUMBERS), workspace_id])


def hold(workspace_id: str) -> None:
    """Take its lock at the beginning of a transaction that writes other rows before it opens the ledger: whoever locks
    the workspace first and all else after it never waits in a circle. SQLite has one writer, and needs none."""
    if connection.features.has_select_for_update:
        rows.ask(_statements()[0], [workspace_id])


@cache
def _statements() -> tuple[str, str]:
    """As text: each act opens it, and Django would write both anew each time, which takes longer than they do."""
    # Without the key: rows that only name the workspace are written meanwhile.
    table, lock = Workspace._meta.db_table, connection.ops.for_update_sql(no_key=True)
    names, values = ", ".join(NUMBERS), ", ".join(f"{name} = %s" for name in NUMBERS)
    read = f"SELECT {names} FROM {table} WHERE id = %s {lock if connection.features.has_select_for_update else ''}"
    return read, f"UPDATE {table} SET {values} WHERE id = %s"
