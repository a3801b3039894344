"""How many calls of one key may wait at once. Owns the count, in this process; holds no thread and no row."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from django.conf import settings
from ninja import Query

from approvals.errors import TooMany

WAITS_PER_KEY = 20
WAIT_MOST_S = 55
Wait = Annotated[float, Query(ge=0, le=WAIT_MOST_S, description="For its end, this many seconds at the most.")]
_waiting: Counter[str] = Counter()


@contextmanager
def waiting(key_id: str) -> Iterator[None]:
    """Raises TooMany for one wait more than a key may have open."""
    most: int = getattr(settings, "WAITS_PER_KEY", WAITS_PER_KEY)
    if _waiting[key_id] >= most:
        detail = f"This key has {most} waits open, the most there may be. End one, or ask without `wait`."
        raise TooMany(detail, retry_after=5)
    _waiting[key_id] += 1
    try:
        yield
    finally:
        _waiting[key_id] -= 1
        if not _waiting[key_id]:
            del _waiting[key_id]
