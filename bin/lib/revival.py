"""Our Docker daemon under a running console: started again when it died, until that is plainly no use.

Owns how often and after which pauses. Must never wait: whoever calls it has a console's end and Ctrl-C to see to.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lib.say import say

if TYPE_CHECKING:
    from lib.daemon import OwnDaemon

PAUSES_S = (0, 2, 5, 15, 30)
"""Before each try. One that lived for FORGOTTEN_S since the last try begins anew."""
FORGOTTEN_S = 300


class Revival:
    def __init__(self, own: "OwnDaemon", pauses_s: Sequence[float] = PAUSES_S) -> None:
        self.own, self.pauses_s = own, pauses_s
        self.tries = 0
        self.died_at: float | None = None  # until it is started again
        self.tried_at = float("-inf")
        self.given_up = False

    def look(self) -> None:
        if self.given_up or self.own.pid() is not None:
            return
        now = time.monotonic()
        if self.died_at is None:
            self._note_death(now)
        if self.tries == len(self.pauses_s):
            self._give_up()
        elif self.died_at is not None and now - self.died_at >= self.pauses_s[self.tries]:
            self._start(now)

    def _note_death(self, now: float) -> None:
        self.died_at = now
        if now - self.tried_at > FORGOTTEN_S:
            self.tries = 0
        say(f"our Docker daemon died; if it said why, it stands at the end of {self.own.log}")

    def _start(self, now: float) -> None:
        self.tries, self.tried_at, self.died_at = self.tries + 1, now, None
        try:
            self.own.start_again()
        except OSError as problem:
            say(f"it could not be started: {problem}")

    def _give_up(self) -> None:
        self.given_up = True
        say(
            f"our Docker daemon was started again {self.tries} times and died each time, so it is left: no sandbox "
            f"can be made or used. Mend what {self.own.log} says at its end, then stop this (Ctrl-C) and run bin/up."
        )
