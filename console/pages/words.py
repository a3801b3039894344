"""How quantities, lengths of time and lists are said to people: with units, a thin gap in large numbers."""

from collections.abc import Sequence
from datetime import timedelta


def count(amount: int) -> str:
    """1 234 with a thin gap."""
    return f"{amount:,}".replace(",", "\u2009")


def number(amount: int, one: str, many: str = "") -> str:
    """`1 line`, `2 lines`."""
    return f"{count(amount)} {one if amount == 1 else many or one + 's'}"


def size(size_bytes: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return number(size_bytes, "byte")


def span(length: timedelta) -> str:
    """`38 s`, `2 min`, `23 h 57 min`, `12 days`."""
    seconds = max(0, int(length.total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 60:
        return f"{seconds} s"
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{days} days"


def duration(duration_ms: int) -> str:
    """`38 ms`, `2.4 s`, `1 min 5 s`: of what was measured."""
    seconds = duration_ms // 1000
    if seconds >= 60:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{duration_ms / 1000:.1f} s" if seconds else f"{duration_ms} ms"


def listed(names: Sequence[str]) -> str:
    """`Alice`, `Bob and Ines`, `Alice, Bob and Ines`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
