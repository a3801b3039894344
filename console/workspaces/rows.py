"""Rows that every call writes, inserted by SQL that is written once for each model: Django writes it anew each time,
which takes several times what the database then does with it.

Must never be given a model with parents, or one that somebody listens to: no signals are sent.
"""

from functools import cache
from typing import Any, TypeVar

from django.db import connection, models, transaction

Row = TypeVar("Row", bound=models.Model)


def insert(row: Row) -> Row:
    """As `save(force_insert=True)`; a number that the database itself gives to it is not learned."""
    sql, fields = _insert(type(row))
    values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in fields]
    with transaction.mark_for_rollback_on_error(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(sql, values)
    row._state.adding, row._state.db = False, connection.alias
    return row


@cache
def _insert(model: type[models.Model]) -> tuple[str, list[Any]]:
    """The statement, and whose values it takes in which order."""
    meta, quoted = model._meta, connection.ops.quote_name
    assert not meta.parents, f"{model.__name__} has more than one table."
    fields = [field for field in meta.local_concrete_fields if field is not meta.auto_field]
    names = ", ".join(quoted(str(field.column)) for field in fields)
    return f"INSERT INTO {quoted(meta.db_table)} ({names}) VALUES ({', '.join(['%s'] * len(fields))})", fields
