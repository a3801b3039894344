"""What the sandbox host counts and times, for `/metrics`.

Owns one registry and a verb for each thing that happens; a call costs microseconds, from any thread. Labels come from
the fixed lists here: must never carry the name or id of a workspace, an agent, a sandbox or a command, and must import
nothing of the product, so that every layer may count.
"""

from typing import Literal, TypedDict

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

How = Literal["cold", "pooled"]
Outcome = Literal["ready", "failed", "refused"]
"""`refused`: there was no room for it, and it was told so; `failed`: it was begun and came to nothing."""

REASONS = (
    "deleted", "idle", "max_lifetime", "oom", "process_limit", "disk_limit", "crashed", "host_lost", "halted", "stray",
    "pool",
)  # fmt: skip
"""`ended_reason`s; `stray` is a container that no row knew, `pool` one that the pool gave up unused."""
ENDS = ("exited", "signalled", "timed_out", "stopped", "lost")
STATUSES = ("starting", "running", "stopped")

REGISTRY = CollectorRegistry()
ProcessCollector(namespace="sandgate", registry=REGISTRY)

_CREATE_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
_COMMAND_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 1800)
_OVERHEAD_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)

_creates = Counter(
    "sandgate_creates", "Sandboxes asked for, by how they came to be.", ["how", "outcome"], registry=REGISTRY
)
_create_s = Histogram(
    "sandgate_create_seconds", "From the request to a sandbox that answers: started cold, or claimed from the pool.",
    ["how"], buckets=_CREATE_S, registry=REGISTRY,
)  # fmt: skip
_commands = Counter("sandgate_commands", "Commands that ended, by how.", ["end"], registry=REGISTRY)
_command_s = Histogram(
    "sandgate_command_seconds", "A command that was waited for, from its approval to its end as stored.",
    buckets=_COMMAND_S, registry=REGISTRY,
)  # fmt: skip
_overhead_s = Histogram(
    "sandgate_command_overhead_seconds", "The part of it that the command itself did not take.",
    buckets=_OVERHEAD_S, registry=REGISTRY,
)  # fmt: skip
_reaps = Counter(
    "sandgate_reaps", "Sandboxes that ended, and strays removed, by reason.", ["reason"], registry=REGISTRY
)
_halts = Counter("sandgate_halts", "Halts declared, by what was halted.", ["of"], registry=REGISTRY)
_repairs = Counter("sandgate_jail_repairs", "Times the network jail was found changed and put back.", registry=REGISTRY)
_reconnects = Counter("sandgate_runner_reconnects", "Connections to a sandbox lost and made again.", registry=REGISTRY)
_sandboxes = Gauge("sandgate_sandboxes", "Live sandboxes, by status.", ["status"], registry=REGISTRY)
_pool_depth = Gauge("sandgate_pool_depth", "Sandboxes in the pool that can be claimed at once.", registry=REGISTRY)
_pending = Gauge("sandgate_actions_pending", "Proposals that wait for a person.", registry=REGISTRY)
_running = Gauge("sandgate_commands_running", "Commands that run now.", registry=REGISTRY)

for _how in ("cold", "pooled"):  # a series is there, at nought, before the first of its kind
    _create_s.labels(_how)
    for _outcome in ("ready", "failed", "refused"):
        _creates.labels(_how, _outcome)
for _reason in REASONS:
    _reaps.labels(_reason)
for _end in ENDS:
    _commands.labels(_end)
for _of in ("agent", "workspace"):
    _halts.labels(_of)


def created(*, how: How, seconds: float, outcome: Outcome = "ready") -> None:
    _creates.labels(how, outcome).inc()
    if outcome == "ready":
        _create_s.labels(how).observe(seconds)


def command_ended(end: str) -> None:
    _commands.labels(end if end in ENDS else "lost").inc()


def command_took(seconds: float, *, own_seconds: float) -> None:
    """`seconds`: as the server saw it; `own_seconds`: as the runner timed the command itself."""
    _command_s.observe(seconds)
    _overhead_s.observe(max(0.0, seconds - own_seconds))


def reaped(reason: str) -> None:
    _reaps.labels(reason if reason in REASONS else "crashed").inc()


def halted(of: Literal["agent", "workspace"]) -> None:
    _halts.labels(of).inc()


def jail_repaired() -> None:
    _repairs.inc()


def reconnected() -> None:
    _reconnects.inc()


class Measured(TypedDict):
    """What is counted in the table rather than as it happens. `sandboxes` by status; absent ones are none."""

    sandboxes: dict[str, int]
    pool_depth: int
    pending: int
    commands_running: int


def measure(found: Measured) -> None:
    for status in STATUSES:
        _sandboxes.labels(status).set(found["sandboxes"].get(status, 0))
    _pool_depth.set(found["pool_depth"])
    _pending.set(found["pending"])
    _running.set(found["commands_running"])


def unmeasured() -> None:
    """Nobody knows: an old number would pass for a new one."""
    for gauge in (*(_sandboxes.labels(status) for status in STATUSES), _pool_depth, _pending, _running):
        gauge.set(float("nan"))
