"""Tags and filters of the pages: icons, drawn text, times, sizes."""

import shlex
from datetime import UTC, datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from approvals.draw import one_line
from console.pages import draw, icons, words
from console.pages.words import span

register = template.Library()
register.filter("drawn", draw.inline)
register.filter("drawn_block", draw.block)
register.filter("drawn_address", draw.address)
register.filter("drawn_output", draw.output)
register.filter("drawn_words", draw.words)
register.filter("granted", shlex.join)
register.filter("count", words.count)
register.filter("size", words.size)
register.simple_tag(words.number, name="number")


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    # "" + …: the template engine hands over its strings marked as safe
    return icons.icon("" + name, "" + label)


@register.filter
def plainly(text: object) -> str:
    """Where no markup can stand: titles, options, attributes."""
    return one_line(str(text))


@register.filter
def ago(at: datetime | None, since: str = "ago") -> SafeString:
    """Relative, with UTC in the title. `since` is put behind: "ago" or nothing."""
    if at is None:
        return SafeString("")
    return _time(at, f"{_coarse(timezone.now() - at)} {since}".strip(), since=since)


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


def _time(at: datetime, said: str, **live: str) -> SafeString:
    """`live` says to the script how it is kept current."""
    data = format_html_join("", ' data-{}="{}"', live.items())
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC"{}>{}</time>',
        utc.isoformat(),
        utc.strftime("%Y-%m-%d %H:%M:%S"),
        data,
        said,
    )


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
