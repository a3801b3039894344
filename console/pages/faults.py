"""What a settings form sent that cannot be: each such field, in the words of its own label.

The acts' own checks say which; these are their words for people. Must never let through what an act refuses: a form
without faults still goes to the act, which decides.
"""

from collections.abc import Callable, Mapping
from typing import Any

from console.workspaces import agents, settings
from console.workspaces.errors import Invalid, SandgateError
from console.workspaces.settings import Number, Range

from .limits import WORDS, Words
from .words import listed, number

SAID_BY_ACTS = ("approvals_needed", "reviewers")
Faults = dict[str, str]  # by the name of the field; of the whole form under ""


def of_act(error: SandgateError) -> Faults:
    """What an act refused beyond what is asked here."""
    field = str(error.fields.get("field", ""))
    return {field if field in SAID_BY_ACTS else "": error.detail}


def told(found: Faults) -> str:
    if "" in found:
        return f"{found['']} Nothing was changed."
    return f"Nothing was changed: {number(len(found), 'field is', 'fields are')} not right."


def of_cool_down(minutes: int | str) -> Faults:
    try:
        agents.check_cool_down(minutes)
    except Invalid:
        return {"cool_down_min": f"Cool-down: a whole number of minutes, 0 to {agents.COOL_DOWN_MOST_MIN}."}
    return {}


def of_limits(sent: Mapping[str, Mapping[str, Any]], spans: Mapping[str, Range], *, up_to: str) -> Faults:
    """`up_to` as in `checked_limits`: a workspace's go to the ceiling, an agent's to what its workspace allows."""
    found: Faults = {}
    for name, own in sent.items():
        found |= _of_limit(name, dict(own), spans[name], up_to)
    return found


def _of_limit(name: str, own: dict[str, Any], span: Range, up_to: str) -> Faults:
    found: Faults = {}
    while refused := _refusal(settings.checked_limits, {name: own}, {name: span}, up_to=up_to):
        part = str(refused.fields["field"]).rpartition(".")[2]
        ceiling = getattr(span, up_to)
        found[f"{name}.{part}"] = _words(WORDS[name], part, own, span, ceiling, here=up_to == "most")
        if part == "default":
            del own["default"]
        else:  # what the default is held against must not be the value that was wrong itself
            own["most"] = ceiling
    return found


def _words(words: Words, part: str, own: Mapping[str, Any], span: Range, ceiling: Number, *, here: bool) -> str:
    label = f"{words.title}, {'default' if part == 'default' else 'at most'}"
    return f"{label}: {_rule(words, own[part], own, span, ceiling, here)}."


def _rule(words: Words, value: Any, own: Mapping[str, Any], span: Range, ceiling: Number, here: bool) -> str:
    if isinstance(value, str) or value != value:
        return "a number" if isinstance(span.least, float) else "a whole number"
    if value < span.least:
        return f"at least {_with_unit(span.least, words)}"
    if value > ceiling:
        return f"at most {_with_unit(ceiling, words)}{' in this workspace' if here else ''}"
    if isinstance(span.least, int) and isinstance(value, float):
        return "a whole number" + (" of seconds" if words.factor > 1 else "")
    most = own.get("most", min(span.most, ceiling))
    return f"no more than {_with_unit(most, words)}, which is the most there may be"


def _with_unit(value: Number, words: Words) -> str:
    return f"{round(value / words.factor, 2):.10g} {words.unit}".strip()


def of_images(names: list[str]) -> Faults:
    bad = [name for name in names if _refusal(settings.checked_images, [name])]
    if bad:
        what = "is no name of an image" if len(bad) == 1 else "are no names of images"
        return {"images": f"{listed([f'`{name}`' for name in bad])} {what}, such as `team/tools:2`."}
    if _refusal(settings.checked_images, names):
        return {"images": f"At most {settings.MOST_IMAGES} names."}
    return {}


def of_pool(size: Any) -> Faults:
    most = settings.MOST_POOLED
    return {"pool_size": f"How many: 0 to {most}."} if _refusal(settings.check_pool, size) else {}


def _refusal(check: Callable[..., Any], *given: Any, **more: Any) -> Invalid | None:
    try:
        check(*given, **more)
    except Invalid as error:
        return error
    return None
