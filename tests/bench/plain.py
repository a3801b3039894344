"""What a user would take instead: plain Docker on the same image and runtime, through Docker's API, so that no client
program costs it time."""

import ctypes
import os
import platform
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker

from sandboxes.engine import EngineConfig
from tests.gvisor.engines import engine_var

MB = 1 << 20
BLOCK = os.urandom(MB)
KCMP_VM = 1


def printing(mb: int) -> list[str]:
    """A command that prints so much text, as fast as it is taken."""
    line = "yes 'a line of what a long build prints, forty bytes more or less' 2>/dev/null"
    return ["bash", "-c", f"{line} | head -c {mb * MB}"]


class Plain:
    """A sleeping container, into and out of which things go through the pipe of an exec, and new ones beside it."""

    def __init__(self, mb: int) -> None:
        self.engine = EngineConfig.load(engine_var(), "")
        self.mb, self.client = mb, docker.DockerClient(self.engine.docker_host, max_pool_size=64)
        self._made: list[Any] = []
        self._sleeper = self.sleeping()

    def exec_(self, *argv: str) -> None:
        asked = self.client.api.exec_create(self._sleeper, list(argv), user="agent", workdir="/")
        self.client.api.exec_start(asked["Id"])
        assert self.client.api.exec_inspect(asked["Id"])["ExitCode"] == 0

    def put(self) -> None:
        asked = self._asked("cat > /tmp/f; wc -c < /tmp/f", stdin=True)
        wire = self.client.api.exec_start(asked, socket=True)
        sock: socket.socket = getattr(wire, "_sock", wire)
        for _ in range(self.mb):
            sock.sendall(BLOCK)
        sock.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: sock.recv(65536), b""))
        wire.close()
        assert str(self.mb * MB).encode() in said, said

    def get(self) -> None:
        got = sum(len(piece) for piece in self.client.api.exec_start(self._asked("cat /tmp/f"), stream=True))
        assert got == self.mb * MB, got

    def output(self) -> None:
        """So many bytes of a command's output, taken as they come."""
        asked = self.client.api.exec_create(self._sleeper, printing(self.mb), user="agent", workdir="/")
        got = sum(len(piece) for piece in self.client.api.exec_start(asked["Id"], stream=True))
        assert got == self.mb * MB, got

    def _asked(self, line: str, *, stdin: bool = False) -> str:
        options = {"user": "agent", "stdin": stdin, "workdir": "/"}
        return str(self.client.api.exec_create(self._sleeper, ["sh", "-c", line], **options)["Id"])

    def cold(self, **limits: Any) -> None:
        """`docker run` of one command, to its output. What it leaves is removed by `tidy`, which is not its fault."""
        made = self._make(["echo", "made"], **limits)
        made.start()
        assert made.wait()["StatusCode"] == 0
        assert made.logs() == b"made\n"

    def sleeping(self, **limits: Any) -> str:
        made = self._make(["sleep", "3600"], **limits)
        made.start()
        return str(made.id)

    def _make(self, argv: list[str], **limits: Any) -> Any:
        options = {"runtime": self.engine.runtime, "network_mode": "none", "labels": {"sandgate.bench": "plain"}}
        made = self.client.containers.create(self.engine.image, argv, **options, **limits)
        self._made.append(made)
        return made

    def tidy(self, *, keep: int = 1) -> None:
        """All but the sleeper, which was first."""
        while len(self._made) > keep:
            self._made.pop().remove(force=True)

    def close(self) -> None:
        self.tidy(keep=0)
        self.client.close()


def held_mb(client: docker.DockerClient, container_id: str) -> float:
    """Memory of all that runs on the machine for one container, a page that several share counted once over them:
    gVisor's kernel, file server and stubs, and Docker's shim above, which the container's own limit does not count."""
    shim = _parent(_pid(client, container_id))
    spaces: list[int] = []
    for pid in _tree(shim):
        if not any(_is_one_space(pid, other) for other in spaces):  # stubs come in pairs that share theirs
            spaces.append(pid)
    return sum(_pss_kb(pid) for pid in spaces) / 1024


def charged_mb(client: docker.DockerClient, container_id: str) -> float:
    """What the container's memory limit counts."""
    for line in Path(f"/proc/{_pid(client, container_id)}/cgroup").read_text().splitlines():
        number, names, path = line.split(":", 2)
        if "memory" in names.split(","):
            return int(Path(f"/sys/fs/cgroup/memory{path}/memory.usage_in_bytes").read_text()) / MB
        if number == "0" and (file := Path(f"/sys/fs/cgroup{path}/memory.current")).exists():
            return int(file.read_text()) / MB
    raise AssertionError(f"container {container_id[:12]} is in no memory cgroup")


def _pid(client: docker.DockerClient, container_id: str) -> int:
    return int(client.api.inspect_container(container_id)["State"]["Pid"])


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _tree(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has ended since
                parents.setdefault(_parent(int(folder.name)), []).append(int(folder.name))
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def _is_one_space(one: int, other: int) -> bool:
    number = {"x86_64": 312, "aarch64": 272}[platform.machine()]
    return bool(ctypes.CDLL(None).syscall(number, one, other, KCMP_VM, 0, 0) == 0)


def _pss_kb(pid: int) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return 0
