"""What the head of a card says of its agent: what it wants, and once that is decided, what it did or did not do.

Must never say that something ran when nobody knows. What is said while it runs stays true when it has ended: a page may
show it until then.
"""

from approvals import draw
from approvals.models import Action

DOES = {
    "run": ("run", "ran", "a command"),
    "install": ("install", "installed", "system packages"),
    "stdin": ("send", "sent", "input to a running command"),
    "write": ("write", "wrote", "a file"),
    "edit": ("change", "changed", "a file"),
    "publish": ("keep", "kept", "a copy of a file"),
    "unseal": ("have", "had", "a protected file unsealed"),
}
BEFORE = {"pending": "wants to", "approved": "asked to", "running": "asked to", "failed": "tried to"}


def of(action: Action) -> str:
    """`wants to run a command`, `ran a command`, `wanted to run a command`."""
    does, did, what = DOES.get(action.tool, ("use", "used", draw.one_line(action.tool)))
    if action.status == "succeeded":
        return f"{did} {what}"
    if action.status == "unknown":
        return f"began to {does} {what}"
    return f"{BEFORE.get(action.status, 'wanted to')} {does} {what}"
