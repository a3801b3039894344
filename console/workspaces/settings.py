"""What members set for a workspace and for one agent: limits, images, the pool; and who hears of what nobody decides.

Owns what may be set and how the two combine: an agent's own default comes before its workspace's, and the least of what
both allow is the most there may be. Must never decide on one sandbox: that is `sandboxes.profiles`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from . import audit, permissions, reviewers
from .errors import Invalid
from .members import by_need
from .models import Agent, Member, Workspace
from .stock import STOCK_IMAGES

Number = int | float


@dataclass(frozen=True)
class Range:
    """`default` and `most` hold until somebody sets others; no setting goes below `least` or above `ceiling`."""

    default: Number
    least: Number
    most: Number
    ceiling: Number


RANGES = {
    "cpus": Range(1.0, 0.1, 4.0, 64.0),
    "memory_mb": Range(512, 128, 4096, 65536),
    "disk_mb": Range(1024, 64, 8192, 102400),
    "processes": Range(200, 16, 1000, 4000),
    "open_files": Range(4096, 64, 16384, 16384),
    "output_mb": Range(10, 1, 10, 10),
    "idle_timeout_s": Range(15 * 60, 60, 8 * 3600, 24 * 3600),
    "max_lifetime_s": Range(8 * 3600, 60, 24 * 3600, 7 * 24 * 3600),
}
MOST_IMAGES = 50
MOST_POOLED = 8
IMAGE = re.compile(r"[a-z0-9][a-z0-9._/:@-]{0,199}\Z")
MOST_ESCALATE_MIN = 24 * 60
SETTINGS = ("limits", "images", "pool_size", "escalate_after_min", "escalate_to")


def ranges(workspace: Workspace, agent: Agent | None = None) -> dict[str, Range]:
    """What holds for new sandboxes of the workspace's own keys, or of one agent."""
    found = {name: _under(built_in, workspace.limits.get(name, {})) for name, built_in in RANGES.items()}
    if agent is None:
        return found
    return {name: _within(span, agent.limits.get(name, {})) for name, span in found.items()}


def _under(span: Range, own: Mapping[str, Number]) -> Range:
    """A workspace's, which an admin may raise up to the ceiling."""
    most = own.get("most", span.most)
    return replace(span, default=min(own.get("default", span.default), most), most=most)


def _within(span: Range, own: Mapping[str, Number]) -> Range:
    """An agent's. The workspace's most holds whatever was set before it was lowered."""
    most = min(own.get("most", span.most), span.most)
    return replace(span, default=min(own.get("default", span.default), most), most=most)


@transaction.atomic
def change_workspace(*, by: Member, **settings: Any) -> Workspace:
    """New settings of the member's own workspace; audited with what they were. Those of sandboxes hold for new ones."""
    by_need(by, permissions.WORKSPACE_MANAGE)
    if unknown := sorted(set(settings) - set(SETTINGS)):
        raise Invalid(f"A workspace has no setting `{unknown[0]}`.", field=unknown[0])
    if "limits" in settings:
        settings["limits"] = checked_limits(settings["limits"], RANGES, up_to="ceiling", where="")
    if "images" in settings:
        settings["images"] = checked_images(settings["images"])
    if "pool_size" in settings:
        check_pool(settings["pool_size"])
    if "escalate_after_min" in settings:
        check_escalation(settings["escalate_after_min"])
    if "escalate_to" in settings:
        named = reviewers.checked_names(by.workspace_id, settings["escalate_to"], field="escalate_to")
        settings["escalate_to"] = named
    workspace = Workspace.objects.select_for_update(no_key=True).get(pk=by.workspace_id)
    changed = {name: value for name, value in settings.items() if getattr(workspace, name) != value}
    if changed:
        before = {name: getattr(workspace, name) for name in changed}
        Workspace.objects.filter(pk=workspace.pk).update(**changed)
        audit.append(
            workspace_id=workspace.pk, actor=audit.Actor("member", by.pk), event="workspace.settings_changed",
            subject_id=workspace.pk, before=before, after=changed,
        )  # fmt: skip
        workspace.refresh_from_db()
    return workspace


def checked_limits(
    given: Any, spans: Mapping[str, Range], *, up_to: str = "most", where: str = " in this workspace"
) -> dict[str, dict[str, Number]]:
    """`{name: {"default": …, "most": …}}`, either left out where it stays; Invalid names the field."""
    if not isinstance(given, Mapping):
        raise Invalid('`limits` is like {"memory_mb": {"default": 512, "most": 2048}}.', field="limits")
    found = {}
    for name, own in given.items():
        if name not in spans:
            raise Invalid(f"There is no limit `{name}`; there are {', '.join(spans)}.", field=f"limits.{name}")
        if kept := _checked(name, own, spans[name], getattr(spans[name], up_to), where):
            found[name] = kept
    return found


def _checked(name: str, own: Any, span: Range, ceiling: Number, where: str) -> dict[str, Number]:
    field = f"limits.{name}"
    if not isinstance(own, Mapping) or set(own) - {"default", "most"}:
        raise Invalid(f"`{field}` has `default` and `most`, and nothing else.", field=field)
    kept = {part: own[part] for part in ("default", "most") if own.get(part) is not None}
    for part, value in kept.items():
        _check_number(f"{field}.{part}", value, span, ceiling, where)
    most = kept.get("most", min(span.most, ceiling))
    if "default" in kept and kept["default"] > most:
        why = f"`{field}.default` is {kept['default']}, above the most there may be, {most}. Lower it, or raise `most`."
        raise Invalid(why, field=f"{field}.default")
    return kept


def _check_number(field: str, value: Any, span: Range, ceiling: Number, where: str) -> None:
    whole = isinstance(span.least, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or value != value:
        raise Invalid(f"`{field}` is a {'whole number' if whole else 'number'}, not {value!r}.", field=field)
    if value < span.least:
        raise Invalid(f"`{field}` is at least {span.least}, not {value}.", field=field)
    if value > ceiling:
        raise Invalid(f"`{field}` is at most {ceiling}{where}, not {value}.", field=field)


def checked_images(given: Any) -> list[str]:
    """Names as Docker knows them, each once. The stock ones are allowed everywhere and are not listed."""
    if not isinstance(given, list | tuple) or len(given) > MOST_IMAGES:
        raise Invalid(f"`images` is a list of at most {MOST_IMAGES} names.", field="images")
    for name in given:
        if not isinstance(name, str) or not IMAGE.match(name):
            raise Invalid(f"{name!r} is no name of an image, such as team/tools:2.", field="images")
    return [name for name in dict.fromkeys(given) if name not in STOCK_IMAGES]


def check_pool(size: Any) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MOST_POOLED:
        raise Invalid(f"`pool_size` is 0 to {MOST_POOLED}, not {size!r}.", field="pool_size")


def check_escalation(minutes: Any) -> None:
    if isinstance(minutes, bool) or not isinstance(minutes, int) or not 0 <= minutes <= MOST_ESCALATE_MIN:
        why = f"`escalate_after_min` is 0 (never) to {MOST_ESCALATE_MIN} minutes, not {minutes!r}."
        raise Invalid(why, field="escalate_after_min")
