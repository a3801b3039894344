"""What the gate says no with. Doors map `code` to HTTP; nothing here knows HTTP."""

from console.workspaces.errors import Conflict, SandgateError


class AlreadyDecided(Conflict):
    """Somebody or something was first; the message says who and when."""

    code = "already_decided"


class WrongDigest(Conflict):
    code = "wrong_digest"


class Outdated(Conflict):
    """Agent Tools changed between the moment a call was put together and the moment it was judged."""

    code = "superseded"

    def __init__(self, agent: str) -> None:
        super().__init__(f"The Agent Tools of {agent} changed meanwhile, so this was not run. Propose it again.")


class NotSeen(Conflict):
    """The page that decides did not show the whole text, of this digest, in this session."""

    code = "not_seen"

    def __init__(self, action_id: str) -> None:
        super().__init__(
            f"{action_id} was not shown whole on this page. Open the card and read it; nothing was decided."
        )


class ItemDenied(SandgateError):
    """A plan with an item that a rule, or a denial of a moment ago, says no to: none of it is asked about."""

    code = "denied"


class NoReviewer(Conflict):
    code = "no_reviewer"


class NotEnabled(SandgateError):
    code = "sandbox_not_enabled"

    def __init__(self, agent: str) -> None:
        super().__init__(
            f"The sandbox is switched off for agent {agent}. A member with `agents:manage` can switch it on, in "
            "Agent Tools."
        )


class TooMany(SandgateError):
    """A limit was reached; `retry_after` says in how many seconds to ask again."""

    code = "too_many"

    def __init__(self, detail: str, *, retry_after: int) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class PassSpent(Exception):
    """A Pass was shown twice, or for something that it does not name. Always a fault of ours, never of a caller."""


class IllegalMove(Exception):
    """A transition that the state table does not have. Always a fault of ours."""
