"""What is put into every sandbox: the runner and the keeper, in one volume that all of them mount read-only.

Owns that volume. It is named after its content, so a new version never changes under a sandbox that runs. Must be
readable by root alone inside: the sandbox's user has no business with it.
"""

import hashlib
import importlib.util
import io
import marshal
import struct
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType

import docker

from sandboxes import runner
from sandboxes.errors import NoRuntime
from sandboxes.runner import start

from .daemon import Daemon, NotFound, Refused
from .names import LABEL_INSTANCE, LABEL_RUNNER, runner_volume_name
from .shapes import EngineConfig

MOUNTED_AT = "/opt/sandgate"
VOLUME_AT = "/mnt"
START = (
    "python3",
    "-I",
    "-S",
    "-B",
    "-c",
    f"import sys; sys.path.append({MOUNTED_AT!r}); import start; start.main()",
    f"{MOUNTED_AT}/keeper",
    VOLUME_AT,
)
_SOURCE = Path(runner.__file__).parent
_FIRST = "start.py"
_UNCHECKED = 1


def pack(keeper: Path) -> bytes:
    """A tar of it, the same bytes for the same content."""
    try:
        binary = keeper.read_bytes()
    except OSError as error:
        raise NoRuntime(f"The keeper is not at {keeper} ({error.strerror}). Run bin/up, which compiles it.") from error
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _folder(tar, "__pycache__")
        _folder(tar, "runner")
        first, modules = _sources()
        name, code = _compiled(_FIRST, first)
        _file(tar, _FIRST, first, 0o600)
        _file(tar, f"__pycache__/{name}", code, 0o600)
        for path, source in modules.items():
            _file(tar, path, source, 0o600)
        _file(tar, start.bundle_name(), _bundle(modules), 0o600)
        _file(tar, "keeper", binary, 0o700)
    return out.getvalue()


def _sources() -> tuple[bytes, dict[str, bytes]]:
    """What is run first, and the runner's modules by their place in the kit."""
    found = {f"runner/{path.name}": path.read_bytes() for path in sorted(_SOURCE.glob("*.py"))}
    return found.pop(f"runner/{_FIRST}"), found


def _bundle(modules: Mapping[str, bytes]) -> bytes:
    """Code by module, for a sandbox with the same Python, each marshalled by itself: most are never asked for."""
    names = {path: path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in modules}
    return marshal.dumps({names[path]: marshal.dumps(_code(path, source)) for path, source in modules.items()})


def _compiled(name: str, source: bytes) -> tuple[str, bytes]:
    """As Python itself would cache it; any other version looks past it."""
    head = importlib.util.MAGIC_NUMBER + struct.pack("<I", _UNCHECKED) + importlib.util.source_hash(source)
    return Path(importlib.util.cache_from_source(name)).name, head + marshal.dumps(_code(name, source))


def _code(path: str, source: bytes) -> CodeType:
    """Named after its source in the sandbox, where tracebacks look for it."""
    return compile(source, f"{MOUNTED_AT}/{path}", "exec", dont_inherit=True)


def _folder(tar: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o700
    tar.addfile(entry)


def _file(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size = mode, len(content)
    tar.addfile(entry, io.BytesIO(content))


async def install(daemon: Daemon, config: EngineConfig) -> str:
    """The volume's name; made and filled if it is not there. Older ones that no sandbox uses are removed."""
    content = pack(config.keeper)
    name = runner_volume_name(config.instance, hashlib.sha256(content).hexdigest()[:12])
    await daemon.call(lambda client: _install(client, config, name, content))
    return name


async def ensure(daemon: Daemon, config: EngineConfig, name: str) -> str:
    """Somebody may have pruned volumes since; Docker would quietly mount a new, empty one in its place."""

    def there(client: docker.DockerClient) -> bool:
        with suppress(NotFound):
            return LABEL_RUNNER in (client.volumes.get(name).attrs.get("Labels") or {})
        return False

    known = await daemon.call(there) if name else False
    return name if known else await install(daemon, config)


def _install(client: docker.DockerClient, config: EngineConfig, name: str, content: bytes) -> None:
    used = {"volume": name}
    known = [volume.name for volume in client.volumes.list(filters={"label": f"{LABEL_INSTANCE}={config.instance}"})]
    if name in known and client.api.containers(all=True, filters=used):
        return  # a sandbox was made with it, so it had been filled
    for other in known:
        if other.startswith(runner_volume_name(config.instance, "")):
            with suppress(Refused):  # in use by a sandbox of an earlier version
                client.api.remove_volume(other)
    labels = {LABEL_INSTANCE: config.instance, LABEL_RUNNER: "kit"}
    client.volumes.create(name, driver="local", labels=labels)
    porter = client.containers.create(
        config.image,
        ["true"],
        labels=labels,
        network_mode="none",
        mounts=[docker.types.Mount(MOUNTED_AT, name, no_copy=True)],
    )
    try:
        client.api.put_archive(porter.id, MOUNTED_AT, content)
    finally:
        with suppress(NotFound):
            porter.remove(force=True)


async def forget(daemon: Daemon, config: EngineConfig) -> None:
    """The volumes of this instance that hold a kit and that no sandbox uses."""

    def remove(client: docker.DockerClient) -> None:
        labels = [f"{LABEL_INSTANCE}={config.instance}", LABEL_RUNNER]
        for volume in client.volumes.list(filters={"label": labels}):
            with suppress(Refused):
                client.api.remove_volume(volume.name)

    await daemon.call(remove)
