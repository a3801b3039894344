"""Rows that every call reads and writes, by SQL that is written once: Django writes it anew each time, which takes
several times what the database then does with it.

Must never be given a model with parents, or one that somebody listens to: no signals are sent.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections, models, transaction

Row = TypeVar("Row", bound=models.Model)
Text = str | None
# Of a type of Python, the kinds of fields for which a database takes it as it is. All else its field makes ready, which
# costs as much as writing it does.
AS_IT_IS: Mapping[type, tuple[type[Any], ...]] = {
    NoneType: (models.Field,),
    str: (models.CharField, models.TextField, models.ForeignKey),
    int: (models.IntegerField,),
    bool: (models.BooleanField,),
}


def ask(sql: str, values: Sequence[Any] = ()) -> Any:
    """The cursor that has executed it, on this thread's handle: behind `connection` each look at that is a search."""
    return connections[DEFAULT_DB_ALIAS].cursor().execute(sql, values)


class Question:
    """A QuerySet of `values_list` whose SQL is written when it is first asked. `build` makes it of the texts that
    differ from one call to the next, and must put each into a comparison as it is. The time may not be in it: it would
    stay that of the first call."""

    def __init__(self, build: Callable[..., "models.QuerySet[Any, Any]"]) -> None:
        self._build = build
        self._written = cache(self._write)

    def __call__(self, *texts: Text) -> list[Any]:
        compiler, sql, places, converters = self._written(tuple(text is None for text in texts))
        found = ask(sql, [texts[at] if at >= 0 else given for at, given in places]).fetchall()
        return list(compiler.apply_converters(found, converters))

    def _write(self, are_none: tuple[bool, ...]) -> tuple[Any, str, list[tuple[int, Any]], dict[int, Any]]:
        """None is written otherwise than a text. `places`: which text goes there, or what always does."""
        marks = [None if is_none else f"\x01{at}\x01" for at, is_none in enumerate(are_none)]
        compiler = self._build(*marks).query.get_compiler(connection=connection)  # of whichever thread uses it
        sql, given = compiler.as_sql()
        places = [(marks.index(each) if isinstance(each, str) and each in marks else -1, each) for each in given]
        asked = {at for at, _ in places}
        assert all(mark is None or at in asked for at, mark in enumerate(marks)), "a text that is in no comparison"
        return compiler, sql, places, compiler.get_converters([each for each, *_ in compiler.select])


def columns(model: type[models.Model]) -> tuple[str, ...]:
    """For `values_list`: what `whole` makes a row of."""
    return tuple(field.attname for field in model._meta.concrete_fields)


def whole(model: type[Row], found: tuple[Any, ...]) -> Row:
    return model.from_db(connection.alias, columns(model), found)


def update(model: type[models.Model], values: Mapping[str, Any], **where: Any) -> int:
    """As `filter(**where).update(**values)`, each of `where` a field's name; how many there were."""
    names = tuple((name, value is None) for name, value in where.items())
    sql, fields = _update(model, tuple(values), names)
    given = [*values.values(), *(value for value in where.values() if value is not None)]
    return int(_change(sql, fields, given).rowcount)


@cache
def _update(
    model: type[models.Model], values: tuple[str, ...], where: tuple[tuple[str, bool], ...]
) -> tuple[str, list[Any]]:
    def column(name: str) -> str:
        return connection.ops.quote_name(str(model._meta.get_field(name).column))  # type: ignore[union-attr]

    sets = ", ".join(f"{column(name)} = %s" for name in values)
    holds = " AND ".join(f"{column(name)} {'IS NULL' if is_none else '= %s'}" for name, is_none in where)
    names = [*values, *(name for name, is_none in where if not is_none)]
    table = connection.ops.quote_name(model._meta.db_table)
    return f"UPDATE {table} SET {sets} WHERE {holds}", [model._meta.get_field(name) for name in names]


def insert(row: Row) -> Row:
    """As `save(force_insert=True)`; a number that the database itself gives to it is not learned."""
    sql, fields, values_of = _insert(type(row))
    _change(sql, fields, values_of(row))
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    return row


@cache
def _insert(model: type[models.Model]) -> tuple[str, list[Any], Callable[[models.Model], tuple[Any, ...]]]:
    """The statement, whose values it takes in which order, and these of a row."""
    meta, quoted = model._meta, connection.ops.quote_name
    assert not meta.parents, f"{model.__name__} has more than one table."
    fields = [field for field in meta.local_concrete_fields if field is not meta.auto_field]
    assert not any(getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False) for field in fields)
    names = ", ".join(quoted(str(field.column)) for field in fields)
    sql = f"INSERT INTO {quoted(meta.db_table)} ({names}) VALUES ({', '.join(['%s'] * len(fields))})"
    return sql, fields, attrgetter(*(field.attname for field in fields))


def _change(sql: str, fields: Sequence[Any], values: Sequence[Any]) -> Any:
    """The cursor. An error is the end of the transaction, whoever swallows it."""
    handle = connections[DEFAULT_DB_ALIAS]
    ready = [
        value if isinstance(field, AS_IT_IS.get(type(value), ())) else field.get_db_prep_save(value, handle)
        for field, value in zip(fields, values, strict=True)
    ]
    with transaction.mark_for_rollback_on_error(using=handle.alias):
        return handle.cursor().execute(sql, ready)
