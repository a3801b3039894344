"""Which programs of an instance run on this machine."""

from contextlib import suppress
from pathlib import Path

from lib.place import Place


def of_instance(place: Place) -> list[str]:
    """Programs with a path of this instance in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = entry.read_bytes().split(b"\0")
            if any(word.startswith(str(place.run).encode()) for word in b"=".join(words).split(b"=")):
                found.append(words[0].decode())
    return found
