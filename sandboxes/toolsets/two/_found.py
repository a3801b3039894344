"""What search tools share: their bounds, and the last lines of an answer. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from approvals.told import named
from sandboxes.runner.searches import OFFSET_MOST, WITHIN_S
from sandboxes.runner.walking import NAMES

LIMIT, LIMIT_MOST = 100, 1000
NOT_ALL = (
    f"Not all was looked at ({WITHIN_S:g} s, or {NAMES} names in one folder, are the most), so there may be more: "
    "narrow `path`, or which files."
)
PAGING = {
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": LIMIT_MOST,
        "description": f"Most to answer with; {LIMIT} unless given.",
    },
    "offset": {
        "type": "integer",
        "minimum": 0,
        "maximum": OFFSET_MOST,
        "description": "How many to leave out: `next` of the answer before; 0 unless given.",
    },
    "include_ignored": {"type": "boolean", "description": "Also what .gitignore leaves out."},
}


def rest(result: Mapping[str, Any], shown: Sequence[object], what: str) -> list[str]:
    """How much there is, how to go on, and what was left out: so that none found is not taken for none there."""
    about = [_count(result, len(shown), what)]
    if result.get("incomplete"):
        about.append(NOT_ALL)
    if result["truncated"] and result.get("next") is not None:
        about.append(f"Go on with offset {result['next']}.")
    elif result["truncated"]:
        about.append("The rest cannot be paged to: narrow `path` or the pattern.")
    if ignored := result.get("ignored"):
        first = ", ".join(map(named, result.get("left_out") or []))
        about.append(f".gitignore left out {ignored} ({first}); include_ignored shows them.")
    if unreadable := result.get("unreadable"):
        about.append(f"{unreadable} could not be read.")
    return [f"[{' '.join(about)}]"]


def _count(result: Mapping[str, Any], shown: int, what: str) -> str:
    total = f"at least {result['found']}" if result.get("at_least") else str(result["found"])
    searched = f", {result['files_searched']} files searched" if "files_searched" in result else ""
    return f"{shown} of {total} {what}{searched}."
