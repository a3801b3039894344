"""The table of limits in a settings form: what holds, what was set, what was typed. Checking is the acts' own."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from console.workspaces.settings import Number, Range


@dataclass(frozen=True)
class Words:
    """How people read a limit: `factor` of the stored unit make one of `unit`."""

    title: str
    unit: str = ""
    factor: int = 1


WORDS = {
    "cpus": Words("Processors"),
    "memory_mb": Words("Memory", "MB"),
    "disk_mb": Words("Disk", "MB"),
    "processes": Words("Processes"),
    "open_files": Words("Open files of one process"),
    "output_mb": Words("Output kept of a stream", "MB"),
    "idle_timeout_s": Words("Idle time", "min", 60),
    "max_lifetime_s": Words("Lifetime", "h", 3600),
}


@dataclass(frozen=True)
class Field:
    name: str
    label: str
    value: str
    placeholder: str
    error: str


@dataclass(frozen=True)
class Row:
    title: str
    unit: str
    reach: str
    fields: tuple[Field, Field]


def table(
    spans: Mapping[str, Range],
    kept: Mapping[str, Any],
    ceilings: Mapping[str, Number],
    post: Any = None,
    faults: Mapping[str, str] = MappingProxyType({}),
) -> list[Row]:
    """`spans` is what holds where nothing is set here. `faults` says by input what was wrong in a refused POST."""
    return [_row(name, span, kept.get(name, {}), ceilings[name], post, faults) for name, span in spans.items()]


def _row(
    name: str, span: Range, kept: Mapping[str, Number], ceiling: Number, post: Any, faults: Mapping[str, str]
) -> Row:
    words = WORDS[name]

    def field(part: str, title: str, unset: Number) -> Field:
        input_name = f"{name}.{part}"
        value = _shown(kept[part], words) if part in kept else ""
        return Field(
            name=input_name,
            label=f"{words.title}, {title}",
            value=post.get(input_name, value) if post else value,
            placeholder=_shown(unset, words),
            error=faults.get(input_name, ""),
        )

    reach = f"{round(span.least / words.factor, 2):g} to {_shown(ceiling, words)}"
    return Row(
        words.title, words.unit, reach, (field("default", "default", span.default), field("most", "at most", span.most))
    )


def _shown(value: Number, words: Words) -> str:
    return f"{value / words.factor:.10g}"


def typed(post: Any) -> dict[str, dict[str, Any]]:
    """What a form says, for the acts to check; what was left empty is not set. A text that is no number stays one."""
    found: dict[str, dict[str, Any]] = {}
    for name, words in WORDS.items():
        for part in ("default", "most"):
            if text := post.get(f"{name}.{part}", "").strip():
                found.setdefault(name, {})[part] = _number(text, words)
    return found


def _number(text: str, words: Words) -> Number | str:
    try:
        value = float(text.replace(",", ".")) * words.factor
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def listed(text: str) -> list[str]:
    """One name a line."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def whole(text: str) -> int | str:
    """A text that is no number stays one."""
    return int(text) if text.strip().isdecimal() and len(text) < 7 else text
