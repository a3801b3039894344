"""Where one instance keeps its things. Every host-wide name carries the instance id made from the state directory."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Place:
    var: Path  # state directory, resolved, mode 0700
    cache: Path  # downloads and images, shared by all instances of this machine

    @property
    def instance(self) -> str:
        return hashlib.sha256(str(self.var).encode()).hexdigest()[:8]

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
    var = Path(os.environ.get("SANDGATE_VAR") or CHECKOUT / default_var).resolve()
    var.mkdir(parents=True, exist_ok=True)
    var.chmod(0o700)
    usual = Path("/var/cache/sandgate") if os.geteuid() == 0 else Path.home() / ".cache/sandgate"
    cache = Path(os.environ.get("SANDGATE_CACHE") or usual).resolve()
    cache.mkdir(parents=True, exist_ok=True)
    return Place(var=var, cache=cache)
