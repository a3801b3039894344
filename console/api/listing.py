"""Lists by page: newest first, `cursor` is the id after which to go on. Ids are time-ordered, so a row that comes in
between shifts nothing."""

from typing import TypeVar

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)


def page(rows: QuerySet[Row], limit: int, cursor: str | None) -> tuple[list[Row], str | None]:
    """The rows, and the cursor of the next page; None when this is the last."""
    found = list((rows.filter(pk__lt=cursor) if cursor else rows).order_by("-pk")[: limit + 1])
    return found[:limit], str(found[limit - 1].pk) if len(found) > limit else None
