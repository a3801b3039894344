"""Where one instance keeps its things. Every host-wide name carries the instance id made from the state directory."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from console import state
from lib.say import Stop

T = TypeVar("T")
CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Place:
    var: Path  # state directory, resolved, mode 0700
    cache: Path  # downloads and images, shared by all instances of this machine

    @property
    def instance(self) -> str:
        return state.instance(self.var)

    @property
    def run(self) -> Path:
        """Short on purpose: a unix socket's path ends at 107 bytes."""
        return Path(f"/run/sandgate-{self.instance}")

    @property
    def socket(self) -> Path:
        return self.run / "docker.sock"

    @property
    def engine_json(self) -> Path:
        return self.var / "engine.json"


def place(default_var: str = "var") -> Place:
    return Place(var=told(lambda: state.directory(default_var)), cache=_cache())


def told(read: Callable[[], T]) -> T:
    """What `read` makes of the environment, or its sentence as ours."""
    try:
        return read()
    except state.Unusable as problem:
        raise Stop(str(problem)) from problem


def _cache() -> Path:
    usual = Path("/var/cache/sandgate") if os.geteuid() == 0 else Path.home() / ".cache/sandgate"
    cache = Path(os.environ.get("SANDGATE_CACHE") or usual)
    try:
        cache = cache.resolve()
        cache.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise Stop(f"Downloads cannot be kept in {cache} ({error}); name another with SANDGATE_CACHE.") from error
    return cache
