"""Tags and filters of the pages: icons, drawn text, times, sizes."""

from datetime import UTC, datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from approvals.draw import one_line
from console.pages import draw, icons

register = template.Library()
register.filter("drawn", draw.inline)
register.filter("drawn_block", draw.block)
register.filter("drawn_address", draw.address)
register.filter("drawn_output", draw.output)


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    # "" + …: the template engine hands over its strings marked as safe
    return icons.icon("" + name, "" + label)


@register.filter
def plainly(text: object) -> str:
    """Where no markup can stand: titles, options, attributes."""
    return one_line(str(text))


@register.filter
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


@register.filter
def ago(at: datetime | None, words: str = "ago") -> SafeString:
    """Relative, with UTC in the title. `words` is put behind: "ago" or nothing."""
    if at is None:
        return SafeString("")
    return _time(at, f"{_coarse(timezone.now() - at)} {words}".strip(), since=words)


@register.filter
def clock(at: datetime | None) -> SafeString:
    return SafeString("") if at is None else _time(at, at.strftime("%H:%M:%S"))


@register.filter
def moment(at: datetime) -> SafeString:
    return _time(at, at.strftime("%-d %b %H:%M:%S"))


@register.filter
def day(at: datetime | None) -> SafeString:
    if at is None:
        return SafeString("")
    return _time(at, at.strftime("%-d %B" if at.year == timezone.now().year else "%-d %B %Y"))


@register.filter
def left(until: datetime) -> SafeString:
    """`23 h 57 min left`, as a time that the script counts down."""
    return _time(until, f"{span(until - timezone.now())} left", left="")


def _coarse(length: timedelta) -> str:
    return span(timedelta(hours=length // timedelta(hours=1))) if length >= timedelta(hours=1) else span(length)


def _time(at: datetime, words: str, **live: str) -> SafeString:
    """`live` says to the script how the words are kept current."""
    data = format_html_join("", ' data-{}="{}"', live.items())
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC"{}>{}</time>',
        utc.isoformat(),
        utc.strftime("%Y-%m-%d %H:%M:%S"),
        data,
        words,
    )


@register.filter
def count(number: int) -> str:
    """1 234 with a thin gap."""
    return f"{number:,}".replace(",", "\u2009")


@register.filter
def size(size_bytes: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return "1 byte" if size_bytes == 1 else f"{size_bytes} bytes"


@register.simple_tag
def number(amount: int, one: str, many: str = "") -> str:
    """`{% number 1 "line" %}` is `1 line`, of 2 it is `2 lines`."""
    return f"{count(amount)} {one if amount == 1 else many or one + 's'}"


@register.filter
def initials(name: str) -> str:
    """Two letters for a face; names come from outside, so letters and digits only."""
    words = [word for word in "".join(c if c.isalnum() else " " for c in str(name)).split() if word]
    letters = words[0][0] + words[1][0] if len(words) > 1 else "".join(words)[:2]
    return letters.upper() or "?"


@register.filter
def breakable(name: str) -> SafeString:
    """A permission's name, which may wrap after its colon."""
    return format_html_join(mark_safe(":<wbr>"), "{}", ((part,) for part in name.split(":")))
