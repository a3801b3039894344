"""PID 1 of a sandbox: hears the host, starts commands, reads and writes files, tells what came of it.

Owns the session with the host and which sender may speak next. Must never run anything that did not come in a frame of
the host's session, and never keep a secret where the sandbox's user could look.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial

from . import asked, frames, keepers, pinning, remembering, resolving, rights
from .channel import Channel
from .commands import Command
from .files import Pool, Transfer
from .guarding import Guard
from .hints import Any, T
from .jobs import RUNNING_COMMANDS, Jobs
from .keepers import Keepers, Order
from .loop import Loop
from .paths import Protection
from .programs import Programs
from .publishing import Publisher
from .stdin import Closed, Full
from .stillness import World

WARM_DELAY_S = 0.5
COLLECT_S = 5.0
READY_S = 0.02
"""After a command's end, unless the host has stored it by then: a new keeper would take the processor from that."""
PINNED_S = 60.0
"""How long a pinned script waits for its run."""
WARMED = (f"{__package__}.listing", f"{__package__}.copying", "hashlib")
"""What files need, the last first."""
TOO_MANY = (
    f"{RUNNING_COMMANDS} commands run in this sandbox, or have left processes running: the most there may be. "
    "Wait for one, or stop one."
)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/home/agent/.local/bin"
"""What pip and npm install for the user comes last: `git` on a card is the image's git, whatever lies in the home."""
ENV = {
    "PATH": PATH,
    "HOME": "/home/agent",
    "USER": "agent",
    "LOGNAME": "agent",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TMPDIR": "/var/tmp",
    "PWD": "",
}


class Runner:
    def __init__(self, keeper: str, boot: str, settings: Mapping[str, str], guard: Guard) -> None:
        self.loop = Loop()
        self.guard = guard
        guard.post = self.loop.post
        self.keepers = Keepers(keeper)
        self.jobs = Jobs()
        self._boot = boot
        self._processes, self._open_files = int(settings["processes"]), int(settings["open_files"])
        self._reads: dict[int, Transfer] = {}
        self._writes: dict[int, Transfer] = {}
        self._orders = {"stop": self._stop, "empty": self._empty, "protect": self._protect, "pin": self._pin}
        self._acts = {"run": self._run, "stdin": self._stdin, "unseal": self._unseal}
        self._exemption: dict[str, float] = {}
        self._pinned: set[str] = set()  # runs whose script is bound
        self._turn = 0
        self._pumping = self._collecting = False
        self.pool = Pool(self.loop, self.pump, self._tell, guard)
        self.pool.programs = Programs(self.loop, self.keepers, processes=self._processes, open_files=self._open_files)
        self.pool.publisher = Publisher(World(os.getpid(), self.loop.post))
        self.channel = Channel(self.loop, self._heard, self.pump)
        keepers.take_signals(self.loop, self.keepers.reap)

    def run(self) -> None:
        self.keepers.make_ready()
        self.guard.wait_until_sealed()
        self.guard.world = self.pool.publisher.world
        self.loop.later(WARM_DELAY_S, partial(self._warm, list(WARMED)))
        self.loop.run()

    def _warm(self, names: list[str]) -> None:
        """Not at start, where it would be waited for; not at the first file, which would wait too. One by one: what
        comes meanwhile waits for one."""
        __import__(names.pop())
        if names:
            self.loop.later(0, partial(self._warm, names))

    # --- speaking --------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Lets each sender in turn put one frame, while there is room. Never from within itself."""
        if self._pumping:
            return
        self._pumping = True
        try:
            self._pump()
        finally:
            self._pumping = False
        self.channel.flush()

    def _pump(self) -> None:
        silent = 0
        senders = [job for job in (*self.jobs.live(), *self._reads.values()) if job.ref is not None]
        while senders and silent < len(senders) and self.channel.has_room:
            self._turn += 1
            sender = senders[self._turn % len(senders)]
            silent = 0 if sender.produce(self.channel.send) else silent + 1
            if silent == 0:
                self.channel.flush()
                if sender.ref is None:
                    self._told(sender)
                    senders.remove(sender)

    def _told(self, job: Command | Transfer) -> None:
        for table in (self._reads, self._writes):
            for ref in [ref for ref, known in table.items() if known is job]:
                del table[ref]
        if isinstance(job, Command):
            self.loop.later(READY_S, self.keepers.make_ready)

    def _tell(self, transfer: Transfer, kind: int, offset: int) -> None:
        if transfer.ref is not None:
            self.channel.send(kind, b"", ref=transfer.ref, offset=offset)
            self.channel.flush()

    def _answer(self, ref: int, message: dict[str, Any]) -> None:
        self.channel.send(frames.RESULT, message, ref=ref)
        self.channel.flush()

    # --- hearing ---------------------------------------------------------------------------------------------------

    def _heard(self, frame: frames.Frame) -> None:
        try:
            self._take(frame)
        except (frames.BrokenFrame, KeyError, TypeError, ValueError) as error:
            if frame.kind == frames.REQUEST:
                self._answer(frame.ref, _error("bad_request", f"The runner does not understand this: {error!r}"))

    def _take(self, frame: frames.Frame) -> None:
        if frame.kind == frames.REQUEST:
            self._request(frame)
        elif frame.kind == frames.DATA:
            if (write := self._writes.get(frame.ref)) is not None:
                write.content(frame.payload, last=bool(frame.flags & frames.END))
        elif frame.kind == frames.ACK:
            self._acked(frame)
        elif frame.kind == frames.CANCEL:
            self._cancel(frame.ref)
        elif frame.kind == frames.SETTLE:
            for job_id in frame.message()["ids"]:
                self.jobs.settle(job_id)
            self.keepers.make_ready()
        elif frame.kind == frames.PING:
            self.channel.send(frames.PONG, b"", offset=frame.offset)
            self.channel.flush()
        elif frame.kind == frames.HELLO:
            self._hello(frame.message())

    def _hello(self, message: dict[str, Any]) -> None:
        """A new client, or the same one after a break. What it did not get it asks for again, by id."""
        self.channel.start_over()
        for job in (*self.jobs.live(), *self._reads.values()):
            job.unfollow()
        for write in self._writes.values():
            if write.result is None and not write.is_whole:
                self.jobs.drop(write.id)
        self._reads.clear()
        self._writes.clear()
        running = self.jobs.running()
        self.channel.send(frames.WELCOME, {"version": frames.VERSION, "boot": self._boot, "running": running})
        self.channel.flush()

    def _acked(self, frame: frames.Frame) -> None:
        if (read := self._reads.get(frame.ref)) is not None:
            read.acked(frame.flags, frame.offset)
            return
        for job in self.jobs.live():
            if job.ref == frame.ref:
                job.acked(frame.flags, frame.offset)

    def _cancel(self, ref: int) -> None:
        if (read := self._reads.pop(ref, None)) is not None:
            read.abort()
        elif (write := self._writes.pop(ref, None)) is not None and write.result is None and not write.is_whole:
            self.jobs.drop(write.id)
            write.abort()
        else:
            for job in self.jobs.live():
                if job.ref == ref:
                    job.unfollow()

    def _request(self, frame: frames.Frame) -> None:
        """A look is looked again; what changes something, and comes twice, is followed."""
        message, attached = frames.request_parts(frame)
        verb, ref = message["op"], frame.ref
        if (look := asked.LOOKS.get(verb)) is not None:
            self._reads[ref] = look(self.pool, ref, message, attached)
        elif verb in self._orders:
            self._orders[verb](ref, message)
        elif not self._known(ref, message):
            if (change := asked.CHANGES.get(verb)) is not None:
                self._writes[ref] = job = change(self.pool, ref, message, attached)
                self.jobs.add(job)
            elif verb in self._acts:
                self._acts[verb](ref, message, attached)
            else:
                self._answer(ref, {"unknown": True})

    def _known(self, ref: int, message: dict[str, Any]) -> bool:
        """A job that was asked before is followed, not started."""
        job = self.jobs.find(message["id"])
        if isinstance(job, Transfer) and job.result is None and not job.is_whole:
            self._answer(ref, _error("busy", "This write is under way."))
            return True
        if isinstance(job, Command) and message.get("background"):
            self._say_when_begun(ref, job)
            return True
        if job is not None:
            if job.ref is not None:
                self._answer(job.ref, _error("busy", "Another call follows this now."))
            job.follow(ref, {frames.STDOUT: message.get("stdout", 0), frames.STDERR: message.get("stderr", 0)})
            return True
        if (result := self.jobs.settled(message["id"])) is not None:
            self._answer(ref, {**result, "settled": True})
            return True
        return False

    def _pin(self, ref: int, message: dict[str, Any]) -> None:
        run, tell = message["id"], self._to_this_client(partial(self._answer, ref))
        if self.jobs.find(run) or self.jobs.settled(run):  # asked again, and whatever became of its script: it has run
            tell({"ok": {}})
            return

        def pinned(told: dict[str, Any]) -> None:
            if "ok" in told:
                self._pinned.add(run)
                self.loop.later(PINNED_S, partial(self._unpin_unused, run))
            tell(told)

        self.guard.pin(run, message["path"], message["sha256"], pinned)

    def _unpin_unused(self, run: str) -> None:
        if self.jobs.find(run) is None:
            self._unpin(run)

    def _unpin(self, run: str) -> None:
        self._pinned.discard(run)  # at once: the guard may be busy, and a run that comes now must not start
        self.guard.release(run)

    def _run(self, ref: int, message: dict[str, Any], attached: bytes) -> None:
        if (is_pinned := message.get("pinned") is True) and message["id"] not in self._pinned:
            self._answer(ref, _error("busy", "Its script is not bound to it any more, so it was not started."))
            return
        if not self.jobs.has_room:
            self._not_started(ref, message["id"], "too_many_commands", TOO_MANY)
            return
        size, background, timeout_s = message.get("script_bytes", 0), message["background"], message["timeout_s"]
        env = {**ENV, "PWD": message["cwd"], **message["env"]}
        order = Order(
            message["argv"], message["cwd"], env, self._processes, self._open_files,
            stdin=attached[size:], script=attached[:size], stdin_stays_open=background, as_root=message["as_root"],
        )  # fmt: skip
        command = Command(self.loop, self.guard, message["id"], self.pump)
        command.is_pinned = is_pinned
        try:
            command.start(self.keepers, order, None if timeout_s is None else float(timeout_s))
        except OSError as error:
            why = f"The command was not started: {os.strerror(error.errno or 0)}."
            self._not_started(ref, command.id, "sandbox_error", why)
            return
        self.jobs.add(command)
        if is_pinned:
            command.when_empty(lambda killed: self._unpin(command.id))
        if not self._collecting:
            self._collecting = True
            self.loop.later(COLLECT_S, self._collect)
        if background:
            self._say_when_begun(ref, command)
            self.keepers.make_ready()
        else:
            command.follow(ref, {})

    def _not_started(self, ref: int, run: str, code: str, detail: str) -> None:
        if run in self._pinned:
            self._unpin(run)  # else its script would be held for a run that does not come
        self._answer(ref, _error(code, detail))

    def _collect(self) -> None:
        """As long as something runs."""
        self.guard.collect()
        self._collecting = bool(self.jobs.running())
        if self._collecting:
            self.loop.later(COLLECT_S, self._collect)

    def _say_when_begun(self, ref: int, command: Command) -> None:
        command.when_begun(self._to_this_client(lambda answer: self._answer(ref, answer)))

    def _stdin(self, ref: int, message: dict[str, Any], data: bytes) -> None:
        command = self.jobs.find(message["command"])
        if not isinstance(command, Command) or command.result is not None:
            self._answer(ref, _error("command_ended", "The command has ended."))
            return
        try:
            command.send(data, end=bool(message["end"]))
        except Full:
            self._answer(ref, _error("stdin_full", "The command has not read what was sent to it before."))
        except Closed:
            self._answer(ref, _error("stdin_closed", "The command's standard input is closed."))
        else:
            taken = {"ok": {"taken": len(data)}}
            self.jobs.note(message["id"], taken)
            self._answer(ref, taken)

    def _stop(self, ref: int, message: dict[str, Any]) -> None:
        number = int(message["signal"])
        if isinstance(command := self.jobs.find(message["id"]), Command):
            command.stop(number)
        self._empty(ref, message)

    def _empty(self, ref: int, message: dict[str, Any]) -> None:
        if isinstance(command := self.jobs.find(message["id"]), Command):
            command.when_empty(self._to_this_client(lambda killed: self._answer(ref, {"ok": {"killed": killed}})))
        else:
            self._answer(ref, {"unknown": True})

    def _protect(self, ref: int, message: dict[str, Any]) -> None:
        more, exempt = tuple(map(str, message["more"])), message["exempt"]
        ends = {str(path): time.monotonic() + float(left_s) for path, left_s in exempt.items()}
        self._exempt(more, ends, self._to_this_client(partial(self._answer, ref)))

    def _exempt(self, more: tuple[str, ...], ends: dict[str, float], then: Callable[[dict[str, Any]], None]) -> None:
        """Until then, also when nobody calls; what was told later holds instead."""
        self._exemption = ends
        self.guard.obey(Protection(more, frozenset(ends)), then)
        if ends:
            left_s = max(0.0, min(ends.values()) - time.monotonic())
            self.loop.later(left_s, lambda: self._end_exemptions(more, ends))

    def _end_exemptions(self, more: tuple[str, ...], ends: dict[str, float]) -> None:
        if ends is self._exemption:
            now = time.monotonic()
            self._exempt(more, {path: until for path, until in ends.items() if now < until}, lambda told: None)

    def _unseal(self, ref: int, message: dict[str, Any], attached: bytes) -> None:
        tell = self._to_this_client(partial(self._answer, ref))

        def unsealed(told: dict[str, Any]) -> None:
            self.jobs.note(message["id"], told)
            tell(told)

        self.guard.unseal(message["path"], unsealed)

    def _to_this_client(self, tell: Callable[[T], None]) -> Callable[[T], None]:
        """What is told later goes to who asked: after a break, the next client's calls have the same numbers."""
        tag = self.channel.tag
        return lambda told: tell(told) if tag == self.channel.tag else None


def _error(code: str, detail: str) -> dict[str, Any]:
    return {"error": {"code": code, "detail": detail}}


def prepare(volume: str, resolvers: str, guard: Guard) -> None:
    """Lays /work, the home and /var/tmp onto the sandbox's capped volume, and over Docker's list of DNS servers ours;
    then gives up the right to mount, which only the guard's thread keeps."""
    places = {"work": "/work", "home": ENV["HOME"], "tmp": "/var/tmp"}
    os.chmod(volume, 0o700)
    for name, target in places.items():
        source = os.path.join(volume, name)
        if not os.path.isdir(source):
            os.mkdir(source, 0o755)
            os.chown(source, rights.AGENT_UID, rights.AGENT_GID)
        rights.bind(source, target)
    resolving.lay(volume, resolvers)
    hidden = os.path.join(volume, "hidden")
    os.makedirs(hidden, mode=0o555, exist_ok=True)
    # gVisor shows PID 1 with its environment and open files to all; in a /proc mounted anew still. No secret is there.
    rights.bind(hidden, "/proc/1")
    guard.start(remembering.opened(volume), pinning.opened(volume))
    rights.keep_only_what_keepers_need()


def main() -> None:
    """`runner KEEPER VOLUME NAME=VALUE…`: `processes` and `open_files`, what its commands may have; `resolvers`, whom
    they may ask for names."""
    keeper, volume, *words = sys.argv[1:]
    settings = dict(word.split("=", 1) for word in words)
    os.umask(0o022)
    os.setgroups([])
    rights.be_subreaper()
    rights.be_nobodys()
    os.chdir("/")
    keepers.reserve_low_fds()
    guard = Guard()
    prepare(volume, settings.get("resolvers", ""), guard)
    Runner(keeper, os.urandom(8).hex(), settings, guard).run()
