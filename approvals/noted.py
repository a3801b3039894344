"""Which reads are links of the chain: those of people, by their keys, and those of protected paths. Pure."""

from typing import TYPE_CHECKING

from .paths import BUILT_IN, Protection

if TYPE_CHECKING:
    from .models import Action


def is_noted(action: "Action") -> bool:
    if action.tool != "read":
        return False
    if action.agent is None:
        return True
    more = action.agent.protected_more
    protection = Protection(tuple(more), frozenset()) if more else BUILT_IN
    return protection.check(str(action.arguments.get("path", ""))) is not None
