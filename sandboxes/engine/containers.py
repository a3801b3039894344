"""How the container of a sandbox is made. Owns its limits and what it may not do.

Must never mount a path of the host, share a namespace, or start anything but the runner. Commands hold no capability
at all; these are the runner's: mounting (dropped once it has set itself up), giving files to the user, and becoming
and killing the user.
"""

from collections.abc import Sequence
from typing import Any

import docker
from docker.types import LogConfig, Mount

from . import kit
from .names import LABEL_INSTANCE, LABEL_MARKER, LABEL_ROOT_MB, LABEL_SANDBOX, container_name
from .rules import Lane
from .shapes import BoxSpec, EngineConfig

PIDS_EACH, PIDS_BESIDE = 2, 624
"""A backstop: at this limit gVisor's kernel itself dies, which has two host threads for each of the sandbox's and some
of its own. Commands meet RLIMIT_NPROC long before."""
CPU_PERIOD_US = 100_000
TMP = "size=64m,mode=1777,nosuid,nodev,exec"
RUN = "size=8m,mode=0755,nosuid,nodev,noexec"
"""Where a root may be written its user must still find no folder to write to without a limit, as /run/lock is."""
CAPABILITIES = ("CHOWN", "KILL", "SETUID", "SETGID", "SETPCAP", "SYS_ADMIN")


def options(config: EngineConfig, spec: BoxSpec, *, marker: bytes, disk: str, runner: str) -> dict[str, Any]:
    """For docker-py's `containers.create`."""
    memory = f"{spec.memory_mb}m"
    return {
        "image": spec.image or config.image,
        "entrypoint": [*kit.START, f"processes={spec.processes}", f"open_files={spec.open_files}"],
        "name": container_name(config.instance, spec.sandbox_id),
        "hostname": "sandbox",
        "runtime": config.runtime,
        "user": "0:0",
        "working_dir": "/",
        "labels": {
            LABEL_INSTANCE: config.instance,
            LABEL_SANDBOX: spec.sandbox_id,
            LABEL_MARKER: marker.hex(),
            **({LABEL_ROOT_MB: str(spec.disk_mb)} if spec.writable_root else {}),
        },
        "detach": True,  # else docker-py makes stdin end with the first client that goes away
        "stdin_open": True,
        "tty": False,
        "log_config": LogConfig(type="none"),
        "ipc_mode": "private",
        "read_only": not spec.writable_root,
        "tmpfs": {"/tmp": TMP, **({"/run": RUN} if spec.writable_root else {})},
        "mounts": [
            Mount(kit.MOUNTED_AT, runner, read_only=True, no_copy=True),
            Mount(kit.VOLUME_AT, disk, no_copy=True),
        ],
        "cap_drop": ["ALL"],
        "cap_add": list(CAPABILITIES),
        "security_opt": ["no-new-privileges"],
        "mem_limit": memory,
        "memswap_limit": memory,
        "cpu_period": CPU_PERIOD_US,  # Docker refuses `nano_cpus` beyond what the machine has
        "cpu_quota": int(spec.cpus * CPU_PERIOD_US),
        "pids_limit": PIDS_EACH * spec.processes + PIDS_BESIDE,
        "shm_size": "16m",
    }


def network(lane: Lane | None, resolvers: Sequence[str]) -> dict[str, Any]:
    """For docker-py too. Whom to ask for names is on the runner's command line: it may mount only before it is told
    anything else."""
    if lane is None:
        return {"network_mode": "none", "command": []}
    # And Docker's own name server, which gVisor's other network stack reaches, passes questions on to nobody else.
    return {"network": lane.network, "dns": list(resolvers), "command": [f"resolvers={','.join(resolvers)}"]}


def create(client: docker.DockerClient, wanted: dict[str, Any]) -> str:
    return str(client.containers.create(**wanted).id)
