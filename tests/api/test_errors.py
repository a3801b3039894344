"""Refusals: one shape, the right status, the field named, and never a trace."""

import inspect
import re

import pytest

from console import doorman
from console.api import errors, gated, me
from console.workspaces.errors import SandgateError
from sandboxes.engine.answers import FILE_CODES

pytestmark = pytest.mark.anyio


def kinds(cls=SandgateError):
    return {cls}.union(*(kinds(sub) for sub in cls.__subclasses__()))


def test_each_code_there_is_has_a_status():
    codes = {kind.code for kind in kinds() if hasattr(kind, "code")} - {"error"}
    doormans = set(re.findall(r'code="(\w+)"', inspect.getsource(doorman)))
    assert codes | FILE_CODES | {*gated.REFUSALS} | doormans <= set(errors.STATUS)
    assert "too_slow" in doormans
    assert len(codes) > 10


def test_file_errors_tell_apart_what_happened():
    assert {errors.STATUS[code] for code in FILE_CODES} == {403, 404, 409, 413, 422}


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"label": "a", "label": "a"}', "label"),
        (b'{"label": "a", "l\\u0061bel": "b"}', "label"),
        (b'{"env": {"A:\\"": "1", "B": "2", "A:\\u0022": "3"}}', 'A:"'),
        (b'{"label": "\\ud800", "env": {"A": "1", "A": "2"}}', "A"),
        (b'{"label": ":", "x": [[{"y": 1}, {"y": 1, "y": null}]]}', "y"),
    ],
)
async def test_a_name_that_an_object_has_twice_is_refused_and_said(ask, place, body, name):
    answer = await ask("POST", "/sandboxes", key=place.alices, content=body)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "malformed", name)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "not JSON"),
        (b'{"label": NaN}', "NaN"),
        (b'{"label": "\xff"}', "UTF-8"),
        (b"[" * 100_000, "nested"),
        (b'{"cpus": ' + b"9" * 5000 + b"}", "JSON"),
        (b'{"label": "a",}', "line 1"),
    ],
)
async def test_a_body_that_is_no_json(ask, place, body, says):
    answer = await ask("POST", "/sandboxes", key=place.alices, content=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    assert says in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"label": 5}', "label"),
        (f'{{"label": "{"x" * 201}"}}', "label"),
        ('{"network": "private"}', "network"),
        ('{"cpus": "2"}', "cpus"),
        ('{"cpus": 1e999}', "cpus"),
        ('{"memory_mb": 1.5}', "memory_mb"),
        ('{"env": {"A": 1}}', "env.A"),
        ('{"persistant": true}', "persistant"),
        ("[]", "body"),
        ('"text"', "body"),
        ('{"label": "\\ud800"}', "label"),
        ('{"label": "a\\u0000b"}', "label"),
        ('{"label": "a\\nb"}', "label"),
        ('{"label": "\\u001b[2J"}', "label"),
        ('{"label": "a\\u0085b"}', "label"),
        ('{"label": "a\\u2028b"}', "label"),
    ],
)
async def test_a_body_that_will_not_do_names_the_field(ask, place, body, field):
    answer = await ask("POST", "/sandboxes", key=place.alices, content=body.encode())
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")
    assert answer.json()["field"] == answer.json()["errors"][0]["field"] == field
    assert field in answer.json()["detail"]
    assert "pydantic" not in answer.text


@pytest.mark.parametrize("path", ["/agents", "/keys", "/members"])
async def test_a_name_is_one_line(ask, place, path):
    body = {"name": "a\0b", **({"email": "new@example.com"} if path == "/members" else {})}
    answer = await ask("POST", path, key=place.alices, json=body)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "validation", "name")


async def test_a_label_may_be_in_any_script(ask, place, hub):
    label = "отчёт 报告 📊 👩‍🔬"
    answer = await ask("POST", "/sandboxes", key=place.alices, json={"label": label})
    assert answer.json()["code"] == "no_runtime"


async def test_no_body_at_all_is_an_empty_one(ask, place, hub):
    answer = await ask("POST", "/sandboxes", key=place.alices)
    assert answer.json()["code"] == "no_runtime"


async def test_a_chunked_body_is_read(ask, place, hub):
    async def pieces():
        yield b'{"label": '
        yield b"7}"

    answer = await ask("POST", "/sandboxes", key=place.alices, content=pieces())
    assert (answer.status_code, answer.json()["field"]) == (422, "label")


@pytest.mark.parametrize("path", ["/sandboxes/%00", "/actions?conversation=%00"])
async def test_a_nul_in_an_address(ask, place, path):
    answer = await ask("GET", path, key=place.alices)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


@pytest.mark.parametrize("path", ["/", "/nothing", "/sandboxes/", "/sandboxes/x/y/z"])
async def test_where_nothing_is_there_is_json(ask, place, path):
    answer = await ask("GET", path, key=place.alices)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert answer.headers["content-type"] == "application/json"


async def test_a_fault_of_ours_tells_its_name_in_the_log_and_nothing_else(ask, place, monkeypatch, caplog):
    def broken(**_):
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(me.schemas, "Me", broken)
    answer = await ask("GET", "/admin/me", key=place.alices, headers={"X-Request-Id": "find-me"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "find-me" in answer.json()["detail"]
    assert "secret" not in answer.text
    assert "the secret of the house" in caplog.text
