"""Which request about files makes which transfer.

Owns the two tables of such requests, and the reading of their fields: a field that is missing or of another type is a
KeyError, TypeError or ValueError, which the host is told. Must never touch a file: it runs on the runner's loop.
"""

from collections.abc import Callable, Mapping

from .files import Pool, Transfer
from .hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .editing import Wish

Message = Mapping[str, Any]
Make = Callable[[Pool, int, Message, bytes], Transfer]
"""Of the pool, the call's number, the request and the bytes that came with it."""


def _read(pool: Pool, ref: int, message: Message, attached: bytes) -> Transfer:
    how = {"offset": message["offset"], "limit": message["limit"], "fixed": message["fixed"]}
    from .copying import Read

    return Read(pool, ref, message["path"], **how)


def _list(pool: Pool, ref: int, message: Message, attached: bytes) -> Transfer:
    from .listing import Listing

    return Listing(pool, ref, message["path"], depth=message["depth"])


def _write(pool: Pool, ref: int, message: Message, attached: bytes) -> Transfer:
    how = {
        "size": message["size"],
        "mode": message["mode"],
        "base": message.get("base"),
        "version": message.get("version"),
        "seal": message.get("seal") is True,
    }
    from .copying import Write

    return Write(pool, message["id"], ref, message["path"], **how)


def _view(pool: Pool, ref: int, message: Message, attached: bytes) -> Transfer:
    how = {"offset": _number(message["offset"]), "limit": _number(message["limit"]), "form": message["form"]}
    from .viewing import View

    return View(pool, ref, message["path"], **how)


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def _glob(pool: Pool, ref: int, message: Message, attached: bytes) -> Transfer:
    from .finding import Find  # what searches is loaded when first asked for: an idle sandbox need not hold it

    return Find(pool, ref, message)


def _grep(pool: Pool, ref: int, message: Message, attached: bytes) -> Transfer:
    from .searching import Search

    return Search(pool, ref, message)


def _wish(message: Message, attached: bytes) -> "Wish":
    from .editing import Wish

    seen = {"base": message["base"], "becomes": message["becomes"]}
    return Wish(message["path"], attached, version=message["version"], **seen)


def _draft(pool: Pool, ref: int, message: Message, attached: bytes) -> Transfer:
    from .editing import Draft

    return Draft(pool, ref, _wish(message, attached))


def _edit(pool: Pool, ref: int, message: Message, attached: bytes) -> Transfer:
    from .editing import Edit

    return Edit(pool, message["id"], ref, _wish(message, attached))


LOOKS: Mapping[str, Make] = {"read": _read, "list": _list, "view": _view, "draft": _draft, "glob": _glob, "grep": _grep}
"""They change nothing and have no id: who asks again looks again."""
CHANGES: Mapping[str, Make] = {"write": _write, "edit": _edit}
"""Each is done once, by its id."""
