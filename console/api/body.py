"""JSON bodies: strict, and the big ones parsed off the loop, two at a time.

Owns the bytes of a body until they are JSON. Must never parse more than a mebibyte on the loop: everybody waits for it.
Nor let a name through that an object has twice: of the two values, whoever else reads the body may see the other one.
"""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser
from pydantic_core import from_json

from .errors import Refused

ON_LOOP_BYTES = 1 << 20
NAME_SHOWN = 100
_A_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_two_at_a_time = ThreadPoolExecutor(2, thread_name_prefix="json")


class Parsed(Parser):
    """Gives ninja what `read` has parsed before."""

    def parse_body(self, request: HttpRequest) -> Any:
        return request.json  # type: ignore[attr-defined]


async def read(request: Any) -> None:
    """Puts the body's JSON into `request.json`; none at all is `{}`. Raises Refused, `malformed`."""
    size = int(request.META.get("CONTENT_LENGTH") or 0)
    if 0 < size <= ON_LOOP_BYTES:
        request.json = _parse(request)
    else:  # a chunked body does not tell its length
        request.json = await asyncio.get_running_loop().run_in_executor(_two_at_a_time, _parse, request)
    # ninja looks whether there are bytes, and takes the JSON from `Parsed`: the bytes themselves are not kept twice.
    request._body, request._stream = b"{}", BytesIO()


def forget(request: Any) -> None:
    """For a view that waits long after it has what it needs of a large body."""
    request.json = None


def _parse(request: HttpRequest) -> Any:
    content = request.body
    if not content[:100].strip() and not content.strip():
        return {}
    try:
        found = from_json(content, allow_inf_nan=False)  # several times as fast as json; takes the last of two
    except ValueError:
        return _parse_slowly(content)
    return found if _says_each_once(content, _names(found)) else _parse_slowly(content)


def _says_each_once(content: bytes, names: int) -> bool:
    """Outside of strings a colon stands behind each name and nowhere else."""
    return names == content.count(b":") or names == _A_STRING.sub(b"", content).count(b":")


def _names(found: Any) -> int:
    """How many there are in all its objects. Not by recursion: it may be nested as deeply as the parser allows."""
    count, left = 0, [found]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            count += len(each)
            left += each.values()
        elif isinstance(each, list):
            left += each
    return count


def _parse_slowly(content: bytes) -> Any:
    """For what is wrong, to say where, and for half a surrogate pair: that is JSON, and the field is to be named."""
    try:
        return json.loads(content, parse_constant=_no_constant, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and too long numbers are ValueErrors
        raise Refused("malformed", f"The body is not JSON: {_why(error)}. Send one JSON object in UTF-8.") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            detail = f"The body says {json.dumps(name[:NAME_SHOWN])} twice in one object. Say it once."
            raise Refused("malformed", detail, field=name[:NAME_SHOWN])
        found[name] = value
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "it holds bytes that are no UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
