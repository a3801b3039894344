"""The JSON Schema of tools' arguments, and checking against it: the few words of it that tools use, told so that a
model can mend its call. Pure. Must never let through what the schema refuses, nor change what a call says."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from console.workspaces.errors import Invalid

Schema = Mapping[str, Any]
TYPES: Mapping[str, tuple[type, str]] = {
    "string": (str, "a text"),
    "integer": (int, "a whole number"),
    "number": (int | float, "a number"),  # type: ignore[dict-item]
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}


class BadArguments(Invalid):
    """`field` is where in the call, `example` a call that is right."""

    def __init__(self, detail: str, *, field: str, example: Mapping[str, Any]) -> None:
        super().__init__(detail, field=field)
        self.fields["example"] = dict(example)


def closed(properties: Mapping[str, Schema], required: Sequence[str]) -> dict[str, Any]:
    """Of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def checked(given: Any, schema: Schema, *, example: Mapping[str, Any]) -> dict[str, Any]:
    """`given` without the properties that are null: some models send every property that a schema has."""
    given = _without_nulls(given, schema)
    if fault := _fault(given, schema, "arguments"):
        field, why = fault
        raise BadArguments(f"`{field}` {why}.", field=field, example=example)
    return dict(given)


def _without_nulls(value: Any, schema: Schema) -> Any:
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {
            name: _without_nulls(each, known[name]) if name in known else each
            for name, each in value.items()
            if each is not None or name not in known
        }
    if isinstance(value, list) and "items" in schema:
        return [_without_nulls(each, schema["items"]) for each in value]
    return value


def _fault(value: Any, schema: Schema, at: str) -> tuple[str, str] | None:
    """Where the first fault is, and what is wrong there."""
    if not _is_one_of(value, kinds := _kinds(schema)):
        wanted = " or ".join(TYPES[kind][1] for kind in kinds)
        return at, f"is {wanted}, not {_named(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return at, f"is one of {', '.join(schema['enum'])}"
    for word, wrong in _LIMITS.items():
        if word in schema and (why := wrong(value, schema[word])):
            return at, why
    if isinstance(value, dict):
        return _in_object(value, schema, at)
    if isinstance(value, list) and "items" in schema:
        return _first(_fault(each, schema["items"], f"{at}.{n}") for n, each in enumerate(value))
    return None


def _kinds(schema: Schema) -> Sequence[str]:
    kinds = schema["type"]
    return [kinds] if isinstance(kinds, str) else kinds


def _is_one_of(value: Any, kinds: Sequence[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, TYPES[kind][0]) for kind in kinds)


def _named(value: Any) -> str:
    if value is None:
        return "null"
    return next((words for kind, (_, words) in TYPES.items() if _is_one_of(value, [kind])), "that")


def _in_object(value: Mapping[str, Any], schema: Schema, at: str) -> tuple[str, str] | None:
    known = schema.get("properties", {})
    if missing := [name for name in schema.get("required", ()) if name not in value]:
        return f"{at}.{missing[0]}", "is missing"
    rest = schema.get("additionalProperties", True)
    for name, each in value.items():
        inner = known.get(name, rest)
        if inner is False:
            return f"{at}.{name[:100]}", f"is not known; there are {', '.join(known) or 'no arguments'}"
        if isinstance(inner, Mapping) and (fault := _fault(each, inner, f"{at}.{name[:100]}")):
            return fault
    return None


def _first(faults: Any) -> tuple[str, str] | None:
    return next((fault for fault in faults if fault), None)


def _too_short(value: Any, least: int) -> str:
    if not isinstance(value, str) or len(value) >= least:
        return ""
    return "is empty" if least == 1 else f"has at least {least} characters"


def _too_long(value: Any, most: int) -> str:
    return f"has {len(value)} characters; the limit is {most}" if isinstance(value, str) and len(value) > most else ""


def _no_match(value: Any, pattern: str) -> str:
    return f"does not match {pattern}" if isinstance(value, str) and not re.search(pattern, value) else ""


def _too_small(value: Any, least: float) -> str:
    return f"is at least {least}, not {value}" if _is_one_of(value, ["number"]) and not value >= least else ""


def _too_large(value: Any, most: float) -> str:
    return f"is at most {most}, not {value}" if _is_one_of(value, ["number"]) and not value <= most else ""


def _too_few(value: Any, least: int) -> str:
    return f"has {len(value)} items; the least is {least}" if isinstance(value, list) and len(value) < least else ""


def _too_many(value: Any, most: int) -> str:
    return f"has {len(value)} items; the limit is {most}" if isinstance(value, list) and len(value) > most else ""


_LIMITS: Mapping[str, Callable[[Any, Any], str]] = {
    "minLength": _too_short, "maxLength": _too_long, "pattern": _no_match, "minimum": _too_small,
    "maximum": _too_large, "minItems": _too_few, "maxItems": _too_many,
}  # fmt: skip
