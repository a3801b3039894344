"""The plain data that goes in and out of the engine. Owns no behaviour beyond reading its own configuration."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from console.workspaces.stock import STOCK_IMAGES
from sandboxes.errors import NoRuntime

StreamName = Literal["stdout", "stderr"]
Form = Literal["text", "hex", "base64"]


@dataclass(frozen=True)
class EngineConfig:
    """Where the engine is. `instance` is in every name it gives on the machine; `var` is the state directory."""

    docker_host: str
    runtime: str
    image: str
    instance: str
    keeper: Path
    var: Path
    images: Mapping[str, str] = field(default_factory=dict)  # other stock images by name, as far as they were built

    @classmethod
    def load(cls, var: Path, instance: str) -> "EngineConfig":
        """From the `engine.json` that `bin/up` writes."""
        path = var / "engine.json"
        try:
            known = json.loads(path.read_text())
            return cls(
                docker_host=known["docker_host"],
                runtime=known["runtime"],
                image=known["image"],
                instance=instance,
                keeper=Path(known["keeper"] or var / "keeper"),
                var=var,
                images=known.get("images", {}),
            )
        except (OSError, ValueError, KeyError) as error:
            raise NoRuntime(f"{path} does not name an engine ({error}). Run bin/up, which sets one up.") from error

    def image_in_docker(self, name: str) -> str:
        """A stock image has a name of its own here: what Docker has under `node` may be anything."""
        if name == STOCK_IMAGES[0]:
            return self.image
        if name in STOCK_IMAGES and name not in self.images:
            raise NoRuntime(f"The image `{name}` is not built here. Start Sandgate with `bin/up --image {name}` once.")
        return self.images.get(name, name)

    @property
    def run_dir(self) -> Path:
        return Path(f"/run/sandgate-{self.instance}")


@dataclass(frozen=True)
class BoxSpec:
    """What a sandbox is made of. `env` goes with each of its commands, never into the container."""

    sandbox_id: str
    image: str
    cpus: float = 1.0
    memory_mb: int = 512
    disk_mb: int = 1024
    processes: int = 200
    open_files: int = 4096
    writable_root: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    network: Literal["none", "public"] = "none"


@dataclass(frozen=True)
class Found:
    """A container with our label."""

    sandbox_id: str
    container_id: str
    running: bool
    created_at: datetime


@dataclass(frozen=True)
class Script:
    """A file that a command runs: its real path, and the SHA-256 of the text that a person saw."""

    path: str
    sha256: str


@dataclass(frozen=True)
class RunRequest:
    """A command. `bash -c` with a text too long for an argument is passed another way, with the same effect. Its
    `script` stays those bytes until nothing of the command is left, or it does not start: FileError `script_changed`.

    In the background it may have no `timeout_s`, and its stdin stays open after what is given here. As root it has no
    capability, and no variable of the sandbox: whoever made the sandbox chose those."""

    argv: Sequence[str]
    timeout_s: float | None
    cwd: str = "/work"
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    background: bool = False
    as_root: bool = False
    script: Script | None = None


@dataclass(frozen=True)
class RunResult:
    """How a command ended. `reason` is "oom" when the kernel killed parts of it for memory; `signalled`: it ended by
    a signal that did not come from us, and `exit_code` is 128 and that signal's number.

    `lost_bytes` were printed and never reached the sink; `stdout_bytes` and `stderr_bytes` are true totals.
    `protected` are new files under protected names, found right after it; there were `protected_more` beyond these.
    """

    exit_code: int
    timed_out: bool
    stopped: bool
    left_running: bool
    duration_ms: int
    stdout_bytes: int
    stderr_bytes: int
    lost_bytes: int
    signalled: bool = False
    reason: str | None = None
    protected: Sequence["Protected"] = ()
    protected_more: int = 0


@dataclass(frozen=True)
class Protected:
    """`sealed`: no command can change, remove or move it from now on; else it was only found."""

    path: str
    sealed: bool


@dataclass(frozen=True)
class WriteRequest:
    """A whole file. `size` None: as much as comes. `mode` None: as it was, or 0644. `base`: the SHA-256 of what it
    may replace, "" when nothing may be there, None when whatever is there may be; with a base no part of `path` may be
    a link. `version`: the same by version, which an agent read: 12 hex digits, "" when nothing may be there, None when
    nobody read it; with a version the result has a `report`. `seal`: a person puts a protected file there; it is sealed
    at once."""

    path: str
    size: int | None
    mode: int | None = None
    base: str | None = None
    version: str | None = None
    seal: bool = False


@dataclass(frozen=True)
class WriteResult:
    """`path` is where the bytes are: absolute, links resolved. `report`, of an edit or of a write with a `version`:
    what its agent is told, ready to be sent on: {path, version, changed, diff, lines: [[number, tag, text]], size,
    carried, moved: [[from_line, by]]}. `lines`: the changed blocks, with their neighbours; `moved`: old lines from
    `from_line` on have that much added to their number; `carried`: the file had changed since it was read, elsewhere.
    A line that is too long to be shown whole is cut and has the tag "". `held_us`: for how long everything else in the
    sandbox was held still, so that nobody's bytes were lost."""

    path: str
    size: int
    sha256: str
    report: Mapping[str, Any] = field(default_factory=dict)
    sealed: bool | None = None  # None: that was not asked
    held_us: int = 0


@dataclass(frozen=True)
class EditRequest:
    """Edits by line: [{do: replace|delete|insert_before|insert_after|append|prepend, from?: "12kqzt", to?, lines?}], as
    the agent sent them; the runner judges them. `version`: of the file as the agent read it. `base`, `becomes`: the
    SHA-256 of what a person saw it replace, and saw it replaced by; of anything else, `stale_edit`. With a base no part
    of `path` may be a link."""

    path: str
    version: str
    edits: Sequence[Any]
    base: str | None = None
    becomes: str | None = None


@dataclass(frozen=True)
class GlobRequest:
    """Files by name, below the directory `path`. `pattern`: `*`, `?`, `[…]` within a name, `**`, `{a,b}`; without a
    slash it is for names at any depth. `limit` up to 1000, and `offset` with it up to 20,000."""

    path: str
    pattern: str
    limit: int = 100
    offset: int = 0
    sort: Literal["path", "recent"] = "path"
    include_ignored: bool = False


@dataclass(frozen=True)
class GrepRequest:
    """Lines that match `pattern`, ripgrep's kind of regular expression or with `literal` a text, in the file `path` or
    below the directory. `glob`: only in files of such names. `context`: lines before and after, up to 20. `limit` and
    `offset` as in GlobRequest: of lines, or with another `mode` of files."""

    path: str
    pattern: str
    glob: str | None = None
    literal: bool = False
    ignore_case: bool = False
    context: int = 0
    mode: Literal["lines", "files", "count"] = "lines"
    limit: int = 100
    offset: int = 0
    include_ignored: bool = False


@dataclass(frozen=True)
class Draft:
    """What an edit would do now. `sha256` and `old` are of the file as it is: an edit with this as its `base` replaces
    exactly that; `becomes` and `new`: of what it would be."""

    path: str
    mode: int
    sha256: str
    becomes: str
    old: bytes
    new: bytes
    carried: bool

    @property
    def changed(self) -> bool:
        return self.sha256 != self.becomes


@dataclass(frozen=True)
class Seen:
    """A file as it is now. `content` is None when it is larger than was asked to keep; `names`: how many it has."""

    path: str
    size: int
    mode: int
    sha256: str
    content: bytes | None
    names: int = 1
    is_sealed: bool = False


@dataclass(frozen=True)
class Entry:
    """One name in a listing. `path` is relative to the listed directory; any bytes but NUL. `size` and `mode` of a link
    are its own."""

    path: bytes
    type: Literal["file", "dir", "link", "other"]
    size: int
    mode: int
    mtime_ms: int


@dataclass(frozen=True)
class Listing:
    """`path`: the directory, absolute, links resolved. `truncated`: there is more than this."""

    path: str
    entries: Sequence[Entry]
    truncated: bool


class Sink(Protocol):
    async def put(self, stream: StreamName, offset: int, data: bytes) -> None:
        """Takes output in order. An offset beyond the last end is a gap: those bytes are lost."""
