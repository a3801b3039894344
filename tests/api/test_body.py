"""Bodies: what the quick parser and the careful one make of them is the same, and no name stands twice."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.api import body
from console.api.errors import Refused

NAMES = st.text(st.sampled_from('ab:"\\{}[], é😀\n'), max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.lists(st.tuples(NAMES, inner), max_size=4).map(tuple),
)


def text(value, ascii_only):
    """JSON of lists, and of tuples of pairs, which are objects that may have a name twice."""
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{text(name, ascii_only)} : {text(each, ascii_only)}" for name, each in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(text(each, ascii_only) for each in value) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


def has_a_name_twice(value):
    if isinstance(value, tuple):
        names = [name for name, _ in value]
        return len(set(names)) < len(names) or any(has_a_name_twice(each) for _, each in value)
    return isinstance(value, list) and any(map(has_a_name_twice, value))


@given(VALUES, st.booleans())
def test_it_is_refused_if_and_only_if_a_name_stands_twice_in_one_object(value, ascii_only):
    content = text(value, ascii_only).encode()
    request = SimpleNamespace(body=content)
    if has_a_name_twice(value):
        with pytest.raises(Refused, match="twice"):
            body._parse(request)
    else:
        assert body._parse(request) == json.loads(content)


@pytest.mark.parametrize("depth", [150, 900])
def test_depth_is_no_way_round(depth):
    content = b'{"a":' * depth + b'{"b":1,"b":2}' + b"}" * depth
    with pytest.raises(Refused, match="twice|nested"):
        body._parse(SimpleNamespace(body=content))
