"""Waits for who guesses passwords: per address typed and client, growing, and never for good.

In this process alone, which is the only one that signs people in: a restart forgets. A try counts from its beginning,
so that a hundred at once are not a hundred guesses. Must never know whether an address is anybody's.
"""

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from approvals.draw import one_line
from console import whence

FREE_TRIES = 5
WITHIN_S = 300  # tries further apart are no guessing; so long after a wait its growth is forgotten
FIRST_WAIT_S, LONGEST_WAIT_S = 30, 900
MOST_KEYS = 10_000
Key = tuple[str, str]
_log = logging.getLogger(__name__)


@dataclass
class _Tries:
    times: deque[float] = field(default_factory=lambda: deque(maxlen=FREE_TRIES))
    waits: int = 0
    until: float = 0.0


class Throttle:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._tries: OrderedDict[Key, _Tries] = OrderedDict()

    def begin(self, key: Key) -> float:
        """0, and a try has begun; or how many seconds are to be waited, and none has."""
        with self._lock:
            now, tries = self._clock(), self._tries.setdefault(key, _Tries())
            if now < tries.until:
                return tries.until - now
            self._count(key, tries, now)
            return 0.0

    def _count(self, key: Key, tries: _Tries, now: float) -> None:
        if now > tries.until + WITHIN_S:
            tries.waits = 0
        tries.times.append(now)
        if tries.waits or (len(tries.times) == FREE_TRIES and now - tries.times[0] <= WITHIN_S):
            wait_s = min(FIRST_WAIT_S << tries.waits, LONGEST_WAIT_S)
            tries.waits, tries.until = min(tries.waits + 1, 16), now + wait_s
            _log.warning("Sign-in: wait of %s s for %s from %s", wait_s, one_line(key[0]), one_line(key[1]))
        self._tries.move_to_end(key)
        while len(self._tries) > MOST_KEYS:
            self._tries.popitem(last=False)

    def succeeded(self, key: Key) -> None:
        with self._lock:
            self._tries.pop(key, None)

    def wait_s(self, key: Key) -> float:
        with self._lock:
            tries = self._tries.get(key)
            return max(0.0, tries.until - self._clock()) if tries else 0.0

    def left(self, key: Key) -> int:
        """How many tries in a row are free before a wait."""
        with self._lock:
            now, tries = self._clock(), self._tries.get(key, _Tries())
            recent = sum(now - at <= WITHIN_S for at in tries.times)
            return max(0, FREE_TRIES - recent) if not tries.waits else 0

    def forget(self) -> None:
        with self._lock:
            self._tries.clear()


def key_of(request: Any, address: str) -> Key:
    return address.strip().casefold(), client_of(request)


def client_of(request: Any) -> str:
    """Behind a proxy (SANDGATE_ORIGINS has HTTPS) whom it names last; of IPv6 the network, which is one's own."""
    client = whence.of_request(request)
    try:
        found = ip_address(client)
    except ValueError:
        return client
    return str(ip_network((found, 64), strict=False)) if found.version == 6 else str(found)
