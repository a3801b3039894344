"""The bytes of files as agents have lately read or written them, by path and version.

Owns what an edit that was made for an earlier version is judged by. Bounded: the oldest go first, and a large file is
not kept at all. Must never be taken for what a file is now.
"""

import threading
from collections import OrderedDict

KEPT_BYTES = 16 << 20
FILE_BYTES = 4 << 20


class Versions:
    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def keep(self, path: str, version: str, data: bytes) -> None:
        if len(data) > FILE_BYTES:
            return
        with self._lock:
            self._bytes += len(data) - len(self._known.pop((path, version), b""))
            self._known[path, version] = data
            while self._bytes > KEPT_BYTES or len(self._known) > 1000:
                self._bytes -= len(self._known.popitem(last=False)[1])

    def find(self, path: str, version: str) -> bytes | None:
        with self._lock:
            if (path, version) in self._known:
                self._known.move_to_end((path, version))
            return self._known.get((path, version))
