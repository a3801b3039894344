"""The death of the process at its n-th write, whichever code writes it: nothing after that statement happens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.db import connection, transaction

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class Crash(BaseException):
    """Nothing catches it on its way out, as nothing runs after a `kill -9`."""


@contextmanager
def crash_at(number: int) -> Iterator[list[str]]:
    """Raises Crash in place of the n-th write (1 is the first; 0: never). Yields the writes so far."""
    seen: list[str] = []

    def count(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().upper().startswith(WRITES):
            seen.append(sql)
            if len(seen) == number:
                raise Crash(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        yield seen


def dies_at(number: int, act: Callable[[], Any]) -> bool:
    """Whether it died. Its transaction is rolled back as the database does it when the connection is gone."""
    try:
        with transaction.atomic(), crash_at(number):
            act()
    except Crash:
        return True
    return False


def everything() -> dict[str, list[Any]]:
    """All rows of ours, to compare."""
    ours = (apps.get_app_config(name) for name in ("workspaces", "approvals", "sandboxes"))
    models = [model for app in ours for model in app.get_models()]
    return {model._meta.label: sorted(map(repr, model.objects.values_list())) for model in models}
