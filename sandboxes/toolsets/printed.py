"""What a command printed and how it ended, as a model reads it: short, with where to find what was left out. Pure."""

from collections.abc import Mapping
from typing import Any

from approvals.told import named

PROTECTED_NAMED = 10
HEAD_CHARACTERS, TAIL_CHARACTERS = 10_000, 20_000  # of each stream; the end of it says more


def text(result: Mapping[str, Any], *, can_follow: bool = True) -> str:
    """Of a `run`. `can_follow`: whether there are tools to see the rest with, and to end it."""
    if result.get("background"):
        about = " Use follow with this id to see what it prints, stop to end it." if can_follow else ""
        return f"Started in the background as {result['id']}.{about}"
    parts = [_how(result), *(_stream(result, name, can_follow) for name in ("stdout", "stderr"))]
    if left := result.get("left_running"):
        how = "Use stop with this id to end them." if can_follow else "Use a command, such as pkill, to end them."
        parts.append(f"It left processes running: {', '.join(left)}. {how}")
    parts += _protected(result)
    return "\n".join(part for part in parts if part)


def _protected(result: Mapping[str, Any]) -> list[str]:
    found = result.get("protected", [])
    sealed, only = ([named(each["path"]) for each in found if each["sealed"] is is_so] for is_so in (True, False))
    said = []
    if sealed:
        names = ", ".join(sealed[:PROTECTED_NAMED])
        said.append(f"New protected files, which can be read and no longer changed, moved or removed: {names}.")
    if only:
        said.append(f"New files under protected names, not sealed: {', '.join(only[:PROTECTED_NAMED])}.")
    more = sum(max(0, len(names) - PROTECTED_NAMED) for names in (sealed, only)) + result.get("protected_more", 0)
    return said + ([f"And {more} more of them."] if more else [])


def _how(result: Mapping[str, Any]) -> str:
    took = f"after {result['duration_ms'] / 1000:.1f} s"
    if result.get("timed_out"):
        return f"Stopped at its time limit {took}, exit code {result['exit_code']}. This is what it printed until then."
    if result.get("reason") == "oom":
        return f"Killed because the sandbox's memory was full, {took}, exit code {result['exit_code']}."
    how = {"stopped": "Stopped", "signalled": "Ended by a signal"}.get(str(result.get("status")), "Ended")
    return f"{how} {took}, exit code {result['exit_code']}."


def _stream(result: Mapping[str, Any], name: str, can_follow: bool) -> str:
    content, total = str(result.get(name, "")), int(result.get(f"{name}_bytes", 0))
    if not total:
        return "" if name == "stderr" else "It printed nothing to stdout."
    shown, left_out = _shortened(content)
    if not left_out and not result.get("truncated"):
        return f"{name}:\n{shown}"
    rest = f"; to see the rest: follow {{id: {result.get('id')}, stream: {name}, offset: 0}}" if can_follow else ""
    return f"{name}, {total} bytes, shortened{rest}:\n{shown}"


def _shortened(content: str) -> tuple[str, bool]:
    if len(content) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        return content, False
    left_out = len(content) - HEAD_CHARACTERS - TAIL_CHARACTERS
    return f"{content[:HEAD_CHARACTERS]}\n[… {left_out} characters left out …]\n{content[-TAIL_CHARACTERS:]}", True
