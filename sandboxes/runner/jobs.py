"""The table of what was asked, by id: running, finished and not yet settled, settled.

Owns how long results and output are kept. Must never forget an id while its sandbox may hear of it again: a request
that comes twice runs once. Bounded: output first, then results, then the ids of the oldest.
"""

from collections import OrderedDict

from .commands import Command
from .files import Transfer
from .hints import Any

Job = Command | Transfer

KEPT_OUTPUT_BYTES = 16 << 20
KEPT_JOBS = 512
KEPT_IDS = 20_000
RUNNING_COMMANDS = 20


class Jobs:
    def __init__(self) -> None:
        self._live: OrderedDict[str, Job] = OrderedDict()
        self._settled: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def add(self, job: Job) -> None:
        self._live[job.id] = job
        self._make_room()

    def find(self, job_id: str) -> Job | None:
        return self._live.get(job_id)

    def settled(self, job_id: str) -> dict[str, Any] | None:
        """The result of a job whose output is gone."""
        return self._settled.get(job_id)

    def live(self) -> list[Job]:
        return list(self._live.values())

    def running(self) -> list[str]:
        return [job.id for job in self._live.values() if job.result is None]

    @property
    def has_room(self) -> bool:
        """A command whose processes live on after its end counts too: each holds a keeper and files of ours."""
        commands = (job for job in self._live.values() if isinstance(job, Command))
        return sum(not job.tree_empty for job in commands) < RUNNING_COMMANDS

    def note(self, job_id: str, result: dict[str, Any]) -> None:
        """Of what is done in the moment it is asked, and must not be done again."""
        self._settled[job_id] = result
        self._forget_oldest()

    def drop(self, job_id: str) -> None:
        """As if it had never been asked: for what had no effect."""
        self._live.pop(job_id, None)

    def settle(self, job_id: str) -> None:
        """The host has stored the result: the output goes, the id stays."""
        job = self._live.get(job_id)
        if job is None or job.result is None:
            return
        job.forget_output()
        self._settled[job_id] = job.result
        if job.tree_empty:
            del self._live[job_id]
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self._settled) > KEPT_IDS:
            self._settled.popitem(last=False)

    def _make_room(self) -> None:
        for job in [job for job in self._live.values() if job.tree_empty and job.id in self._settled]:
            del self._live[job.id]
        finished = [job for job in self._live.values() if job.result is not None and job.ref is None]
        kept_bytes = sum(job.kept_bytes for job in finished)
        for job in finished:
            if kept_bytes <= KEPT_OUTPUT_BYTES:
                break
            kept_bytes -= job.kept_bytes
            job.forget_output()
        for job in finished[: max(0, len(finished) - KEPT_JOBS)]:
            self.settle(job.id)
