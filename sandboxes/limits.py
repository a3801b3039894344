"""How many sandboxes there may be, and whether what was asked for one of them is within its range. Pure."""

from console.workspaces.errors import Invalid
from console.workspaces.settings import Number, Range

from .errors import NotAllowed

LIVE_PER_AGENT = 5
LIVE_PER_WORKSPACE = 30


@dataclass(frozen=True)
class Range:
    default: int | float
    least: int | float
    most: int | float


RANGES = {
    "cpus": Range(1.0, 0.1, 4.0),
    "memory_mb": Range(512, 128, 4096),
    "disk_mb": Range(1024, 64, 8192),
    "idle_timeout_s": Range(15 * 60, 60, 8 * 3600),
    "max_lifetime_s": Range(8 * 3600, 60, 24 * 3600),
}


def chosen(name: str, asked: int | float | None) -> int | float:
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
