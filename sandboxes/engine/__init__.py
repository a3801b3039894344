"""The sandbox engine: gVisor sandboxes on Docker, and the calls into them. The only code that imports docker."""

from .answers import Refusal
from .box import Box
from .daemon import Unreachable
from .engine import CreateFailed, Engine
from .rules import BLOCKED, CLOSED, Opening, Protocol
from .running import BadCommand
from .shapes import (
    BoxSpec,
    Draft,
    EditRequest,
    EngineConfig,
    Entry,
    Found,
    GlobRequest,
    GrepRequest,
    Listing,
    RunRequest,
    RunResult,
    Script,
    Seen,
    Sink,
    StreamName,
    WriteRequest,
    WriteResult,
)
from .transfers import FileRead, Interrupted, Overdue

__all__ = [
    "BLOCKED",
    "CLOSED",
    "BadCommand",
    "Box",
    "BoxSpec",
    "CreateFailed",
    "Draft",
    "EditRequest",
    "Engine",
    "EngineConfig",
    "Entry",
    "FileRead",
    "Found",
    "GlobRequest",
    "GrepRequest",
    "Interrupted",
    "Listing",
    "Opening",
    "Overdue",
    "Protocol",
    "Refusal",
    "RunRequest",
    "RunResult",
    "Script",
    "Seen",
    "Sink",
    "StreamName",
    "Unreachable",
    "WriteRequest",
    "WriteResult",
]
