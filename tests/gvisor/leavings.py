"""What a run of tests leaves on the machine when it is killed, or a test fails half-way: tables, bridges, containers.

Each instance that a test makes is noted with the process that made it. What was noted goes at the end of that run, or,
when that run was killed, at the start of the next. Must never touch one that is not noted, or whose maker lives.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import docker
import docker.errors

from lib import jail
from sandboxes.engine.names import LABEL_INSTANCE

NOTES = Path("/run/sandgate-tests")


@dataclass(frozen=True)
class Instance:
    """As much of a place as the jail asks for."""

    instance: str

    @property
    def run(self) -> Path:
        return Path(f"/run/sandgate-{self.instance}")


def note(instance: str) -> None:
    with suppress(OSError):  # without root there is nothing to leave
        NOTES.mkdir(mode=0o700, exist_ok=True)
        (NOTES / instance).write_text(f"{os.getpid()} {_born(os.getpid())}")


def clear(docker_host: str, *, mine: bool) -> list[str]:
    """`mine`: what this process noted; else what one that is dead did. Returns which instances they were."""
    found = [file for file in NOTES.glob("*") if _is_to_go(file.read_text(), mine=mine)]
    for file in found:
        _containers(docker_host, file.name)
        jail.clear(Instance(file.name))  # type: ignore[arg-type]
        file.unlink(missing_ok=True)
    return [file.name for file in found]


def _is_to_go(noted: str, *, mine: bool) -> bool:
    pid, _, born = noted.partition(" ")
    lives = _born(int(pid)) == born
    return lives and int(pid) == os.getpid() if mine else not lives


def _born(pid: int) -> str:
    """When a process began, in ticks: its number alone may be another's by now. Empty: it is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _containers(docker_host: str, instance: str) -> None:
    with suppress(docker.errors.DockerException):
        client = docker.DockerClient(docker_host, timeout=60)
        label = {"label": f"{LABEL_INSTANCE}={instance}"}
        for found in client.containers.list(all=True, filters=label, ignore_removed=True):
            with suppress(docker.errors.APIError):
                found.remove(force=True, v=True)
        for network in client.networks.list(names=[f"sandgate-{instance}-"]):
            with suppress(docker.errors.APIError):
                network.remove()
        client.close()
