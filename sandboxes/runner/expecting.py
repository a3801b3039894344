"""What a write must find in its place: what a person saw there, what its agent read there, nothing, or anything.

Owns the looks before and at the replacing, and what an agent that wrote by version is told. Must never take a file for
the expected one by its time or size.
"""

import os
import stat

from . import reporting
from .edits import Change
from .files import Refused, named
from .hints import Any
from .lines import VERSION_DIGITS, Text, common_ends, fault_at, version_of
from .publishing import Publisher

REPORTED_BYTES = 1 << 20
COMPARED_LINES = 600
FRESH_LINES = 60


class Expected:
    """`base`: the SHA-256 of what was approved to be replaced; `version`: of what was read. Of either, "" is nothing,
    and None that nobody looked. `exactly`: under this very name, through no link; so is what has a base."""

    def __init__(self, path: str, base: str | None, version: str | None, *, exactly: bool = False) -> None:
        self._path = path
        self._exactly = exactly or base is not None
        self._base, self.version = base, version
        self._old: bytes | None = b""
        self._old_sha256 = ""

    @property
    def is_anything(self) -> bool:
        return self._base is None and self.version is None

    @property
    def is_nothing(self) -> bool:
        return "" in (self._base, self.version)

    def look(self, real: str) -> None:
        """Before any content comes: what is refused now need not be sent."""
        self.check_links(real)
        if self.version is None:
            return
        if not self.version and os.path.lexists(self._path):
            raise fresh("there is a file of that name: read it, and send its version to replace it", real)
        if self.version:
            try:
                self._check(real)
            except Refused as error:
                raise fresh(str(error), real) from error
            if os.stat(real).st_nlink > 1:
                raise Refused("hard_link", "it has several names (hard links), which a write would part")
            if not os.access(real, os.W_OK, effective_ids=True):
                raise Refused("permission_denied_in_sandbox", "the sandbox's user may not write it")
            with open(real, "rb") as file:
                old = file.read(REPORTED_BYTES + 1)
            self._old = old if len(old) <= REPORTED_BYTES else None

    def check_links(self, real: str) -> None:
        if self._exactly and real != os.path.normpath(self._path):
            raise Refused(
                "bad_path", f"it leads through a link to {named(real)}; name that path itself, or remove the link"
            )

    def _check(self, real: str) -> None:
        found = self._old_sha256 = hash_of(real)
        if self._base not in (None, found):
            raise Refused("stale_edit", "it is no longer the version this write was made for; nothing was written")
        if self.version is not None and (self.version != found[:VERSION_DIGITS] or not found):
            raise Refused("stale_edit", f"its version is not {self.version or 'that of nothing'}")

    def put(self, publisher: Publisher, temporary: str, real: str, mode: int | None) -> float:
        """In its place, if that is as expected. For how many seconds everything else was held still."""
        if self.is_anything:
            os.rename(temporary, real)
            return 0.0
        try:
            if not self.is_nothing:
                return publisher.replace(temporary, real, lambda: self._last_look(real), mode=mode)
            publisher.create(temporary, real)
        except FileExistsError as error:
            raise fresh("something of that name has come meanwhile; nothing was written", real) from error
        except Refused as error:
            if error.code == "stale_edit":
                raise fresh(str(error), real) from error
            raise
        return 0.0

    def _last_look(self, real: str) -> None:
        now = os.path.realpath(self._path)
        self.check_links(now)
        if now != real:
            raise Refused("stale_edit", "it leads elsewhere now")
        self._check(real)

    def report(self, new: bytes | None, sha256: str) -> dict[str, Any]:
        """`new`: what was written, None when it is too large to be told of."""
        old, told = self._old, {"version": sha256[:VERSION_DIGITS], "changed": sha256 != self._old_sha256}
        if old is None or new is None or fault_at(old) is not None or fault_at(new) is not None:
            return {**told, "diff": "", "lines": [], "carried": False, "moved": []}
        before, after = Text(old), Text(new)
        changes = compared(before, after)
        return {
            **told,
            "diff": reporting.diff(before, changes),
            "lines": reporting.changed(after, changes),
            "carried": False,
            "moved": reporting.moved(before, changes),
        }


def fresh(why: str, real: str) -> Refused:
    """`stale_edit`, with the beginning of what is there now, if that is a text."""
    try:
        if not stat.S_ISREG(os.stat(real).st_mode):
            return Refused("stale_edit", why)
        with open(real, "rb") as file:
            data = file.read(REPORTED_BYTES + 1)
    except OSError:
        return Refused("stale_edit", why)
    if len(data) > REPORTED_BYTES or fault_at(data) is not None:
        return Refused("stale_edit", why, version=hash_of(real)[:VERSION_DIGITS])
    text = Text(data)
    return Refused("stale_edit", why, version=version_of(data), lines=reporting.top(text, FRESH_LINES))


def hash_of(path: str) -> str:
    """ "" when nothing is there."""
    import hashlib

    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def compared(old: Text, new: Text) -> list[Change]:
    """Changes that make the one of the other; between equal ends one by one if that is not too much to find out."""
    above, below = common_ends(old, new)
    below = min(below, old.count - above, new.count - above)
    before = [old.line(number) for number in range(above + 1, min(old.count - below, above + COMPARED_LINES) + 1)]
    after = [new.line(number) for number in range(above + 1, min(new.count - below, above + COMPARED_LINES) + 1)]
    if max(len(before), len(after)) >= COMPARED_LINES:
        rest = tuple(new.line(number) for number in range(above + 1, new.count - below + 1))
        return [Change(1, "replace", above + 1, old.count - below, rest, (0, 0))]
    import difflib

    steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        Change(nth, "replace", above + a + 1, above + b, tuple(after[c:d]), (0, 0))
        for nth, (kind, a, b, c, d) in enumerate(steps, 1)
        if kind != "equal"
    ]
