"""What began with a Pass in this process, and how it ended, for the request that waits for it here: nothing that has
just been written is read again.

Owns no fact: it is told after the commit of the rows, and before the bell. Must never be the only way to an end:
whoever waits elsewhere, or for what somebody else ended, reads the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from approvals.gate import Pass
from approvals.models import Action

from .models import Command


@dataclass(frozen=True)
class Begun:
    """`command`: the row of one, which learns its end when the action does."""

    pass_: Pass
    command: Command | None = None

    @property
    def ended(self) -> Action | None:
        """The action as its end was written; None before, and when it was somebody else who ended it."""
        return self.pass_.ended
