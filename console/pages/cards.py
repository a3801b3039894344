"""What a card says of an action: every argument that the digest binds is on it, whole, or the card can only be denied.

Plain values for templates; its texts are `sheets`, what stands beside them `facts`, what warns of them `flags`. Must
never fail: what cannot be shown makes a card without sheets, which nobody can approve.
"""

import logging
from dataclasses import dataclass, field

from approvals.models import Action

from . import facts, flags, overtaken, sheets, titles
from .flags import Flag
from .sheets import Sheet
from .texts import Undrawable

UNDRAWABLE = "Drawing this text failed, so nobody can see what would run. It can only be denied."
_log = logging.getLogger(__name__)


@dataclass
class Matter:
    wants: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    sheets: list[Sheet] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    undrawable: str = ""


def matter(action: Action, anchor: str = "change") -> Matter:
    """Never raises. `anchor`: how the ids of its changes begin."""
    found = Matter(wants=titles.of(action))
    try:
        found.sheets, found.facts = list(sheets.of(action, anchor)), list(facts.of(action))
    except Undrawable as error:
        found.sheets, found.undrawable = [], str(error)
    except Exception:
        _log.exception("Drawing action %s failed; its card can only be denied", action.pk)
        found.sheets, found.undrawable = [], UNDRAWABLE
    found.flags = [*overtaken.flags(action), *flags.of(action, found.sheets)]
    return found
