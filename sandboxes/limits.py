"""How many sandboxes there may be, and whether what was asked for one of them is within its range. Pure."""

from datetime import timedelta

from console.workspaces.errors import Invalid
from console.workspaces.settings import Number, Range

from .errors import NotAllowed

LIVE_PER_AGENT = 5
LIVE_PER_WORKSPACE = 30
PERSISTENT_FOR = timedelta(days=14)  # after its last use


def chosen(name: str, asked: Number | None, span: Range) -> Number:
    """The default, or what was asked for when it is within the range; NotAllowed names the field and the limit."""
    if asked is None:
        return span.default
    if asked != asked or asked < span.least:
        raise Invalid(f"`{name}` is at least {span.least}, not {asked}.", field=name)
    if asked > span.most:
        raise NotAllowed(
            f"`{name}` may be at most {span.most} here, not {asked}. Ask for less, or ask an admin.",
            field=name,
            limit=span.most,
        )
    return asked
