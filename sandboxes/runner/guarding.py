"""The guard of protected files: refuses writes to them, seals them against commands, tells of those newly made.

Owns one thread, the only one in the sandbox that may mount, and with it the seals and the sweeps. Must never hold the
runner's loop, and never seal what a person has unsealed before the sandbox is started again.
"""

import os
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue

from . import rights
from .files import Refused, named, refusal
from .hints import Any, T
from .packages import Packages
from .paths import BUILT_IN, Content, Protection
from .pinning import Pins
from .putting import Hold, Nobody, again
from .remembering import Remembered
from .sealing import COVERED, Seals
from .stillness import World
from .sweeping import Found, Sweeper

ROOTS = ("/work", "/home/agent")
"""What outlives a command and its sandbox's stop. /tmp and /var/tmp are for what does not."""
UNSEAL = "a person has let POST /v1/sandboxes/{id}/unseal lift that"
TOLD_MOST = 50
KNOWN_MOST = 10_000
OWED_MOST = 2000
"""Of what commands made. What is more is told once, and no more tried."""
ANSWER_S = 10.0
Told = dict[str, Any]


class Guard:
    """Without `start` it refuses and knows no seal: so in tests of the rest."""

    def __init__(self, roots: tuple[str, ...] = ROOTS) -> None:
        self.protection = BUILT_IN
        self.post: Callable[[Callable[[], None]], None] = lambda call: call()
        self.world: World | Nobody = Nobody()
        self._seals = Seals(roots)
        self._pins = Pins(self._seals)
        self._roots = roots
        self._sweeper: Sweeper | None = None
        self._remembered = Remembered()
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._unsealed: set[str] = set()
        self._owed: dict[str, bool] = {}  # to be sealed, and not sealed yet; whether to tell when it is
        self._told: set[tuple[str, bool]] = set()
        self._found: dict[str, bool] = {}
        self._lock = threading.Lock()
        self._may_mount, self._is_ready = threading.Event(), threading.Event()

    def start(self, remembered: Remembered, copies: int) -> None:
        """Before PID 1 gives up its right to mount; returns when the thread has what it needs of it. `copies`: the
        open folder for those of pinned scripts."""
        self._remembered = remembered
        self._pins = Pins(self._seals, copies)
        threading.Thread(target=self._work, daemon=True, name="guard").start()
        self._may_mount.wait()

    def wait_until_sealed(self) -> None:
        """What was there at the start."""
        self._is_ready.wait()

    def _work(self) -> None:
        try:
            rights.thread_as_mounting_agent()
            self._sweeper = Sweeper(self._roots)
            self._may_mount.set()
            self._owed |= dict.fromkeys(self._remembered, False)
            self._pay()
            self._keep(self._sweeper.everything(), at_start=True)
            self._found.clear()
        except Exception:  # without it protected files are open to commands, and nobody would know
            os.write(2, b"runner: the guard of protected files could not start\n")
            os._exit(70)
        self._is_ready.set()
        while True:
            self._jobs.get()()

    # --- asked by file threads ---------------------------------------------------------------------------------------

    def refuse(self, *paths: str) -> None:
        """Raises Refused when one of them, the path as asked or the real one, is protected, or is sealed under a name
        that its person alone knows for a secret's."""
        for path in paths:
            where = "it" if path == paths[0] else f"{named(path)}, where this leads,"
            if (what := self.protection.check(path)) is not None:
                raise Refused("protected_path", f"{where} is protected ({what}): it can be read, and never written")
            if path in self._seals:
                raise Refused("protected_path", f"{where} is sealed: it can be read, and written after {UNSEAL}")
            if self._seals.is_covered(path):
                raise Refused("busy", COVERED)

    def is_sealed(self, path: str) -> bool:
        return path in self._seals

    def watch(self, path: str) -> Content | None:
        """For what is written to, or lies at, the real path; None when it may be anything there."""
        return None if self.protection.exempts(path) else Content(path)

    def unmoved(self, path: str) -> str:
        """That name where no folder above can be moved: what lies beside it is found again."""
        return f"{self._seals.top(path)}/{os.path.basename(path)}"

    def make_way(self, path: str) -> None:
        """Through folders of the sandbox's user that are shut."""
        self._seals.make_way(path)

    def check_may_seal(self, path: str) -> None:
        """Raises Refused when a person's file cannot be sealed there."""
        if not self._seals.can_hold(path):
            raise Refused("bad_path", f"a file can be sealed below {' or '.join(self._roots)} only")

    def put(self, path: str, place: Callable[[Hold], T]) -> T:
        """What `place` answers, which puts a person's file at that real path and seals it. When it raises, the path is
        as it was. On the thread, which has then nothing else to do: what is held still meanwhile does not wait for a
        walk."""
        return self._ask(lambda: self._put(path, place))

    def _put(self, path: str, place: Callable[[Hold], T]) -> T:
        is_new = self._remembered.add(path)
        try:
            placed = place(Hold(self._seals, path))
        except BaseException:
            if is_new:
                self._remembered.drop(path)
            raise
        self._unsealed.discard(path)
        self._owed.pop(path, None)
        return placed

    def _ask(self, act: Callable[[], T]) -> T:
        """Of the thread, and waited for."""
        if not self._may_mount.is_set():
            raise Refused("sandbox_error", "no file can be sealed here")
        answers: SimpleQueue[tuple[T | None, Exception | None]] = SimpleQueue()
        self._jobs.put(lambda: answers.put(_answer(act)))
        answer, error = answers.get()
        if error is not None:
            raise error
        return answer  # type: ignore[return-value]

    # --- asked by the loop -------------------------------------------------------------------------------------------

    def after_command(self, then: Callable[[dict[str, Any]], None]) -> None:
        """`then`, on the loop, with what the result says of protected files. At once when nothing was made."""
        if self._sweeper is None:
            then({})
            return
        told = self._sweeper.take()
        if told or self._is_owing:
            self._do(lambda: self._sweep(self._sweeper_there().among(told)), {}, then)
        else:
            then(self._news())
        if self._sweeper.must_walk:  # nobody waits for that: what it finds is told at the end of the next command
            self._jobs.put(lambda: _kept(self._walk, None))

    def collect(self) -> None:
        """Now and then while commands run: else the kernel would keep all that they make until one ends. What could
        not be let go of is let go of then."""
        if self._sweeper is not None:
            self._sweeper.collect()
        if self._pins.is_owing:
            self._jobs.put(lambda: _kept(lambda: self._pins.let_go(self.world), None))

    def unseal(self, path: str, then: Callable[[dict[str, Any]], None]) -> None:
        """A result: where it was, and whether there was a seal."""
        self._do(lambda: self._unseal(path), {}, then)

    def pin(self, run: str, path: str, sha256: str, then: Callable[[dict[str, Any]], None]) -> None:
        """Before that run is started: its script stays as it is, which has that hash, until `release`."""
        self._do(lambda: self._pin(run, path, sha256), {}, then)

    def when_done(self, then: Callable[[], None]) -> None:
        """`then`, on the loop, after all that the thread was given before."""
        self._do(dict, {}, lambda told: then())

    def release(self, run: str) -> None:
        self._jobs.put(lambda: _kept(lambda: self._pins.release(run, self.world), None))

    def obey(self, protection: Protection, then: Callable[[dict[str, Any]], None]) -> None:
        """From now on; seals what it adds, and lifts what it exempts."""
        self.protection = protection
        self._do(lambda: self._obey(protection), {"ok": {}}, then)

    def _do(self, act: Callable[[], Told], otherwise: Told, then: Callable[[Told], None]) -> None:
        def work() -> None:
            result = _kept(act, otherwise)
            self.post(lambda: then(result))

        self._jobs.put(work)

    # --- on the thread -----------------------------------------------------------------------------------------------

    def _sweeper_there(self) -> Sweeper:
        assert self._sweeper is not None
        return self._sweeper

    def _walk(self) -> None:
        self._keep(self._sweeper_there().everything())

    def _sweep(self, found: Iterable[Found]) -> Told:
        self._keep(found)
        self._pay()
        return self._news()

    def _keep(self, found: Iterable[Found], *, at_start: bool = False) -> None:
        packages, new = Packages(self._roots), dict[str, bool]()  # path → whether to seal it
        for each in found:
            path = each.path
            if path not in self._seals and path not in self._unsealed and path not in self._owed:
                is_packages = each.reported_only or (not at_start and packages.own(path))
                new[path] = new.get(path, False) or not is_packages
        sealed = self._sealed(path for path, may_seal in new.items() if may_seal)
        for path, may_seal in new.items():
            self._take(path, path in sealed, may_seal=may_seal)

    def _sealed(self, paths: Iterable[str]) -> set[str]:
        """Of these, all that can be sealed now: none when somebody could not be held still."""
        if not (worth := [path for path in paths if self._seals.may_take(path)]):
            return set()
        try:
            with self.world.still():
                return {path for path in worth if self._seals.seal(path)}
        except Refused:
            return set()

    def _take(self, path: str, is_sealed: bool, *, may_seal: bool) -> None:
        if may_seal and not is_sealed and len(self._owed) < OWED_MOST:
            self._owed[path] = True  # tried again before anything is told of it
        elif (path, is_sealed) not in self._told:
            if len(self._told) < KNOWN_MOST:
                self._told.add((path, is_sealed))
            self._tell(path, is_sealed)

    def _tell(self, path: str, is_sealed: bool) -> None:
        with self._lock:
            self._found[path] = is_sealed

    def _news(self) -> Told:
        """Also on the loop: what was found and not told yet."""
        with self._lock:
            news, self._found = list(self._found.items()), {}
        more = {"protected_more": len(news) - TOLD_MOST} if len(news) > TOLD_MOST else {}
        return {"protected": [list(new) for new in news[:TOLD_MOST]], **more} if news else {}

    @property
    def _is_owing(self) -> bool:
        """Also on the loop."""
        return bool(self._owed) and not self._owed.keys() <= self.protection.exempt

    def _pay(self) -> None:
        """Seals what should be sealed, and tells each time of what still is not: whatever stood in the way may be gone,
        and nobody may take it for sealed."""
        owed = {path: was_told for path, was_told in self._owed.items() if path not in self.protection.exempt}
        sealed = self._sealed(path for path in owed if path not in self._remembered)
        for path, was_told in owed.items():
            is_persons = path in self._remembered
            is_sealed = self._seal_again(path) if is_persons else path in sealed
            is_there = is_sealed or os.path.lexists(path)
            if is_sealed or not (is_persons or (is_there and self.protection.check(path))):
                del self._owed[path]
            elif is_there:
                self._owed[path] = True
            if is_there and (was_told or not is_sealed):
                self._tell(path, is_sealed)

    def _seal_again(self, path: str) -> bool:
        """What a person put there, parted from whatever else it could be written through."""
        self._seals.make_way(path)
        try:
            return path in self._seals or again(self.world, path, Hold(self._seals, path))
        except (OSError, Refused):  # it is not there, or somebody could not be held still
            return False

    def _unseal(self, path: str) -> dict[str, Any]:
        try:
            real = os.path.realpath(path, strict=True)
            if real != os.path.normpath(path):  # who approved it saw the path alone, and a link may be turned
                raise Refused("bad_path", f"it leads through a link to {real}; unseal that path itself")
            was_sealed = self._seals.lift(real)
        except (OSError, ValueError, Refused) as error:
            return refusal(error, path)
        if was_sealed or real in self._owed:
            self._unsealed.add(real)
            self._owed.pop(real, None)
            self._forget(real)
        return {"ok": {"path": real, "was_sealed": was_sealed}}

    def _pin(self, run: str, path: str, sha256: str) -> dict[str, Any]:
        try:
            self._pins.pin(run, path, sha256, self.world)
        except (OSError, Refused) as error:
            return refusal(error, path)
        return {"ok": {}}

    def _forget(self, path: str) -> None:
        self._told -= {(path, True), (path, False)}

    def _obey(self, protection: Protection) -> dict[str, Any]:
        self._sweeper_there().obey(protection)
        for path in protection.exempt:
            if self._lifted(path):
                self._owed[path] = False  # when that ends, whatever it has become
        for path in self._seals.loose():
            if protection.finds(path) is None and self._lifted(path):
                self._forget(path)
        for path in self._remembered:
            if path not in self._seals and path not in self._unsealed:
                self._owed.setdefault(path, False)
        self._walk()
        self._pay()
        return {"ok": {}}

    def _lifted(self, path: str) -> bool:
        try:
            return self._seals.lift(path)
        except (OSError, Refused) as error:
            _complain(error)
            return False


def _answer(act: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return act(), None
    except Exception as error:  # the boundary of the guard's thread: whoever asked is told
        return None, error


def _kept(act: Callable[[], T], otherwise: T) -> T:
    try:
        return act()
    except OSError as error:
        _complain(error)
        return otherwise


def _complain(error: Exception) -> None:
    os.write(2, f"runner: protected files: {error!r}\n".encode("utf-8", "replace"))
