"""A real engine for tests: on the Docker that `bin/` brought up, with an instance and a state directory of its own, so
that nothing of a running console is seen or touched. It runs on a loop of its own thread; tests stay synchronous."""

import asyncio
import os
import secrets
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import docker
import docker.errors

from approvals.errors import PassSpent
from sandboxes.engine import Box, BoxSpec, Engine, EngineConfig, RunRequest, RunResult, WriteRequest, WriteResult
from sandboxes.engine.names import LABEL_INSTANCE
from tests.gvisor import leavings

T = TypeVar("T")
CHECKOUT = Path(__file__).resolve().parents[2]


def engine_var() -> Path:
    """The state directory whose engine.json names the engine."""
    if named := os.environ.get("SANDGATE_ENGINE_VAR"):
        return Path(named)
    own = Path(os.environ.get("SANDGATE_VAR", ""))
    return own if (own / "engine.json").exists() else CHECKOUT / "var"


def new_config(var: Path) -> EngineConfig:
    """This machine's engine, under a name that nobody else has."""
    found = EngineConfig.load(engine_var(), secrets.token_hex(4))
    leavings.note(found.instance)
    return replace(found, var=var)


def new_id() -> str:
    return f"sbx_{secrets.token_hex(8)}"


class OnePass:
    """Stands in for the gate's Pass, which needs a database: same promise, spent once, for one sandbox and tool."""

    def __init__(self, sandbox_id: str, tool: str, action_id: str = "") -> None:
        self.action_id = action_id or f"act_{secrets.token_hex(8)}"
        self.sandbox_id = sandbox_id
        self.tool = tool
        self._spent = False

    def spend(self, sandbox_id: str, tool: str) -> None:
        if self._spent or (sandbox_id, tool) != (self.sandbox_id, self.tool):
            raise PassSpent(f"{self.action_id} is for one {self.tool} in {self.sandbox_id}.")
        self._spent = True


class Collected:
    """A sink that keeps everything and notes gaps."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.gaps: list[tuple[str, int, int]] = []
        self._ends = {"stdout": 0, "stderr": 0}

    async def put(self, stream: str, offset: int, data: bytes) -> None:
        assert offset >= self._ends[stream], "output came twice"
        if offset > self._ends[stream]:
            self.gaps.append((stream, self._ends[stream], offset))
        self._ends[stream] = offset + len(data)
        (self.stdout if stream == "stdout" else self.stderr).extend(data)


@dataclass
class Ran:
    result: RunResult
    out: bytes
    err: bytes
    gaps: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def code(self) -> int:
        return self.result.exit_code


class Bench:
    """A loop on a thread, and one engine on it."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="engine", daemon=True)
        self._thread.start()
        self.engine = self.do(self._made())

    async def _made(self) -> Engine:
        return Engine(self.config)

    def begin(self, work: Coroutine[Any, Any, T]) -> "Any":
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def do(self, work: Coroutine[Any, Any, T], timeout_s: float = 120) -> T:
        return self.begin(work).result(timeout_s)

    def spec(self, **changes: Any) -> BoxSpec:
        return replace(BoxSpec(sandbox_id=new_id(), image=self.config.image), **changes)

    def create(self, **changes: Any) -> Box:
        return self.do(self.engine.create(self.spec(**changes)))

    def run(self, box: Box, *argv: str, action_id: str = "", **changes: Any) -> Ran:
        return self.do(self.running(box, *argv, action_id=action_id, **changes))

    async def running(self, box: Box, *argv: str, action_id: str = "", **changes: Any) -> Ran:
        sink = Collected()
        request = replace(RunRequest(argv=argv, timeout_s=60), **changes)
        result = await box.run(OnePass(box.sandbox_id, "run", action_id), request, sink)
        return Ran(result, bytes(sink.stdout), bytes(sink.stderr), sink.gaps)

    def bash(self, box: Box, command: str, **changes: Any) -> Ran:
        return self.run(box, "bash", "--noprofile", "--norc", "-c", command, **changes)

    def bashing(self, box: Box, command: str, **changes: Any) -> "Coroutine[Any, Any, Ran]":
        return self.running(box, "bash", "--noprofile", "--norc", "-c", command, **changes)

    def write(self, box: Box, path: str, content: bytes, mode: int | None = None) -> WriteResult:
        async def blocks() -> AsyncIterator[bytes]:
            for at in range(0, len(content), 65536):
                yield content[at : at + 65536]

        request = WriteRequest(path=path, size=len(content), mode=mode)
        return self.do(box.write(OnePass(box.sandbox_id, "write"), request, blocks()))

    def read(self, box: Box, path: str, **part: Any) -> bytes:
        async def whole() -> bytes:
            found = await box.read(OnePass(box.sandbox_id, "read"), path, **part)
            return b"".join([chunk async for chunk in found.chunks()])

        return self.do(whole())

    def docker(self) -> docker.DockerClient:
        return docker.DockerClient(base_url=self.config.docker_host)

    def give_to_root(self, box: Box, path: str) -> None:
        """Shut to the user for good, as nobody in the sandbox could: a shut folder of the user's own is opened to its
        owner when protected files are looked for."""
        container = self.docker().containers.get(box.container_id)
        assert container.exec_run(["chown", "0:0", path], user="0:0").exit_code == 0
        assert container.exec_run(["chmod", "700", path], user="0:0").exit_code == 0

    def left_over(self) -> list[str]:
        """Every container, network, volume, file and loop device that a sandbox of this instance has."""
        client = self.docker()
        mine = {"label": f"{LABEL_INSTANCE}={self.config.instance}"}
        names = [each.name for each in client.containers.list(all=True, filters=mine)]
        names += [each.name for each in client.networks.list(filters=mine)]
        names += [each.name for each in client.volumes.list(filters=mine) if "-runner-" not in each.name]
        names += [path.name for path in (self.config.var / "disks").glob("*")]
        names += [path.name for path in (self.config.run_dir / "disks").glob("*")]
        return names + [device for device in loop_files() if str(self.config.var) in device]

    def close(self) -> None:
        for found in self.do(self.engine.found()):
            self.do(self.engine.remove(found.container_id))
        self.do(self.engine.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        client = self.docker()
        for volume in client.volumes.list(filters={"label": f"{LABEL_INSTANCE}={self.config.instance}"}):
            with suppress(docker.errors.APIError):  # Docker miscounts mounts after a restart
                volume.remove(force=True)


def loop_files() -> list[str]:
    """Backing files of all loop devices on the machine."""
    files = Path("/sys/block").glob("loop*/loop/backing_file")
    found = []
    for file in files:
        try:
            found.append(file.read_text().strip())
        except OSError:  # detached between the two
            continue
    return found
