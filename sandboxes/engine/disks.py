"""The capped volume of a sandbox, and the one that holds the runner.

Owns volumes, loop devices and their files under the state directory. Must leave none behind, and must never name a
loop device in a volume: its number is given to another file after a restart. The volume names a link in the run
directory, which a restart of the machine removes, so that a stale one fails instead of mounting somebody else's disk.

A loop device with ext4 caps at its size whatever is written, lives on disk and outlives a stop: put away, a disk is its
file alone, and holds nothing of the machine. It needs root on the daemon's machine; without, the volume is a tmpfs:
capped as well, but it counts as memory and is empty after a stop.
"""

import asyncio
import logging
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from time import monotonic

import docker

from .daemon import Daemon, NotFound, Refused
from .names import LABEL_DISK, LABEL_INSTANCE, LABEL_SANDBOX, volume_name
from .shapes import EngineConfig

TOOL_S = 30
MENDED = 1  # e2fsck's word for it
INODE_BYTES = 8192
"""One inode per so many bytes: node_modules and the like are many small files."""
ASK_AGAIN_S = 60
"""For the name of a volume that Docker keeps; it lets go after its own next start, which nothing tells us of."""
log = logging.getLogger("sandgate.disks")


class NoDisk(Exception):
    """This way of making a disk does not work here."""


def _tool(*argv: str, most: int = 0) -> str:
    """What it printed; exit codes above `most` are failures."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoDisk(f"{argv[0]}: {error}") from error
    if not 0 <= done.returncode <= most:
        raise NoDisk(f"{' '.join(argv[:2])}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Disks:
    def __init__(self, daemon: Daemon, config: EngineConfig) -> None:
        self._daemon = daemon
        self._instance = config.instance
        self._files = config.var / "disks"
        self._links = config.run_dir / "disks"
        self._kept_names: set[str] = set()
        self._ask_again_at = 0.0
        self.kind = "loop" if os.geteuid() == 0 and config.docker_host.startswith("unix://") else "tmpfs"

    async def make(self, sandbox_id: str, size_mb: int) -> str:
        """The name of a new, empty volume of that size."""
        if self.kind == "loop":
            options = await asyncio.to_thread(self._make_loop, sandbox_id, size_mb)
        else:
            options = {"type": "tmpfs", "device": "tmpfs", "o": f"size={size_mb}m,mode=0700,nosuid,nodev"}
        return await self._volume(sandbox_id, options)

    async def reopen(self, sandbox_id: str) -> str:
        """The name of a volume on the disk that was put away; NoDisk when it is not there or beyond repair."""
        return await self._volume(sandbox_id, await asyncio.to_thread(self._reopen_loop, sandbox_id))

    async def _volume(self, sandbox_id: str, options: dict[str, str]) -> str:
        labels = {LABEL_INSTANCE: self._instance, LABEL_SANDBOX: sandbox_id, LABEL_DISK: self.kind}
        name = volume_name(self._instance, sandbox_id)

        def create(client: docker.DockerClient) -> None:
            client.volumes.create(name, driver="local", driver_opts=options, labels=labels)

        await self._daemon.call(create)
        return name

    def _make_loop(self, sandbox_id: str, size_mb: int) -> dict[str, str]:
        try:
            return self._make_file(sandbox_id, size_mb)
        except OSError as error:
            raise NoDisk(f"{self._files}: {error}") from error

    def _make_file(self, sandbox_id: str, size_mb: int) -> dict[str, str]:
        self._files.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._links.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._file(sandbox_id)
        with file.open("xb") as empty:  # never over one that is there
            os.truncate(empty.fileno(), size_mb << 20)
        os.chmod(file, 0o600)
        features = "^has_journal,^resize_inode"
        lazy = "lazy_itable_init=1,root_owner=0:0"
        _tool("mkfs.ext4", "-q", "-F", "-O", features, "-m", "0", "-i", str(INODE_BYTES), "-E", lazy, str(file))
        return self._attached(sandbox_id)

    def _reopen_loop(self, sandbox_id: str) -> dict[str, str]:
        """It may have been cut off in the middle of a write, with the machine: without a journal that needs mending."""
        file = self._file(sandbox_id)
        if not file.exists():
            raise NoDisk(f"{file} is not there")
        _tool("e2fsck", "-y", str(file), most=MENDED)
        self._links.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._attached(sandbox_id)

    def _attached(self, sandbox_id: str) -> dict[str, str]:
        device = _tool("losetup", "--find", "--show", "--nooverlap", str(self._file(sandbox_id))).strip()
        link = self._links / sandbox_id
        link.unlink(missing_ok=True)
        link.symlink_to(device)
        return {"type": "ext4", "device": str(link), "o": "nosuid,nodev,discard,noatime"}

    def _file(self, sandbox_id: str) -> Path:
        return self._files / f"{sandbox_id}.ext4"

    async def remove(self, sandbox_id: str) -> None:
        """Whatever there is of it; the container must be gone."""
        await self.put_away(sandbox_id)
        self._file(sandbox_id).unlink(missing_ok=True)

    async def put_away(self, sandbox_id: str) -> None:
        """Volume and device go, the file stays; the container must be gone."""
        mine = {"label": [f"{LABEL_INSTANCE}={self._instance}", f"{LABEL_SANDBOX}={sandbox_id}"]}
        for name, stuck_at in (await self._daemon.call(lambda client: _drop_volumes(client, mine))).items():
            if self.kind == "loop":
                with suppress(NoDisk):
                    await asyncio.to_thread(_tool, "umount", stuck_at)
            self._note_kept(name)
        await asyncio.to_thread(self._detach, sandbox_id)

    def _note_kept(self, name: str) -> None:
        if name not in self._kept_names:
            log.warning("Docker keeps the name of volume %s until its own next start; it is removed then.", name)
            self._kept_names.add(name)
            self._ask_again_at = monotonic() + ASK_AGAIN_S

    async def _ask_again(self) -> None:
        if self._kept_names and monotonic() >= self._ask_again_at:
            self._ask_again_at = monotonic() + ASK_AGAIN_S
            asked = frozenset(self._kept_names)  # another may be noted while Docker is asked
            kept = await self._daemon.call(lambda client: {name for name in asked if not _drop(client, name)})
            self._kept_names -= asked - kept

    def _detach(self, sandbox_id: str) -> None:
        for device in _devices_of(self._file(sandbox_id)):
            _tool("losetup", "--detach", device)
        (self._links / sandbox_id).unlink(missing_ok=True)

    def tidy(self) -> None:
        """The folders, when they are empty."""
        for folder in (self._links, self._links.parent, self._files):
            with suppress(OSError):
                folder.rmdir()

    def keeps(self, sandbox_id: str) -> bool:
        """Whether its files are there, in use or put away. A tmpfs keeps none."""
        return self._file(sandbox_id).exists()

    async def found(self) -> set[str]:
        """Ids of all sandboxes that have a volume or a disk of ours; a mere name that Docker keeps is neither."""

        def volumes(client: docker.DockerClient) -> dict[str, str]:
            found = client.api.volumes(filters={"label": [f"{LABEL_INSTANCE}={self._instance}", LABEL_SANDBOX]})
            return {volume["Name"]: volume["Labels"][LABEL_SANDBOX] for volume in found["Volumes"] or ()}

        await self._ask_again()
        found = await self._daemon.call(volumes)
        files = {file.stem for file in self._files.glob("*.ext4")} if self._files.is_dir() else set()
        return {sandbox_id for name, sandbox_id in found.items() if name not in self._kept_names} | files


def _drop_volumes(client: docker.DockerClient, mine: dict[str, list[str]]) -> dict[str, str]:
    """Names that Docker will not let go of, and where one may still be mounted: it miscounts mounts after a restart
    under live sandboxes. What is then left is a name without content."""
    found = client.api.volumes(filters=mine)["Volumes"] or ()
    return {volume["Name"]: str(volume["Mountpoint"]) for volume in found if not _drop(client, volume["Name"])}


def _drop(client: docker.DockerClient, name: str) -> bool:
    """False when Docker will not; it is its count that stands against it, which `force` does not change."""
    try:
        client.api.remove_volume(name, force=True)
    except NotFound:
        return True
    except Refused:
        return False
    return True


def _devices_of(file: Path) -> list[str]:
    """Found by device and inode, so also where another path leads to the file; by its name when it was deleted."""
    if file.exists():
        return [line.split(":", 1)[0] for line in _tool("losetup", "--associated", str(file)).splitlines() if line]
    found = []
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # given back a moment ago
            if entry.read_text().strip() == f"{file} (deleted)":
                found.append(f"/dev/{entry.parts[3]}")
    return found
