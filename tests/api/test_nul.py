"""A NUL in a text: no row of PostgreSQL takes one, so it is refused at the door, by its field, or kept as bytes are."""

from collections.abc import Iterator
from typing import Any

import pytest

from approvals.models import Action
from console.api.urls import api
from console.workspaces import db, permissions
from sandboxes import toolsets

pytestmark = pytest.mark.anyio
BYTES = {
    ("post", "/v1/sandboxes/{sandbox_id}/files", "content"),
    ("post", "/v1/sandboxes/{sandbox_id}/commands/{command_id}/stdin", "data"),
}
NUL = "a\0b"


def kinds(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [schema, *schema.get("anyOf", ())]


def held(schema: dict[str, Any]) -> Any:
    """A value of that kind with a NUL in it; None where there can be none."""
    for each in kinds(schema):
        if each.get("type") == "string":
            return NUL
        if each.get("type") == "array" and any(kind.get("type") == "string" for kind in kinds(each["items"])):
            return [NUL]
        if each.get("type") == "object" and isinstance(each.get("additionalProperties"), dict):
            return {"A": NUL}
    return None


def fields() -> Iterator[tuple[str, str, str, Any]]:
    for path, methods in api.document["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            name = body.get("$ref", "").rsplit("/", 1)[-1]
            known = api.document["components"]["schemas"].get(name, {}).get("properties", {})
            for field, schema in known.items():
                if (value := held(schema)) is not None:
                    yield method, path, field, value


FIELDS = list(fields())


def test_there_are_texts_to_look_at():
    assert len(FIELDS) > 40
    assert {each[:3] for each in FIELDS} > BYTES


@pytest.mark.parametrize(("method", "path", "field", "value"), FIELDS, ids=lambda each: str(each)[:40])
async def test_each_text_of_each_body_is_refused_with_one(ask, place, hub, method, path, field, value):
    if (method, path, field) in BYTES:
        return
    address = path.removeprefix("/v1").replace("{sandbox_id}", place.sandbox.pk).replace("{tool}", "run")
    reviews = await db.write(place.workspace_key, place.bob, permissions.APPROVALS_REVIEW)
    for key in (place.alices, place.scouts, reviews):
        answer = await ask(method.upper(), address, key=key, json={field: value})
        if answer.status_code != 403:
            break
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")
    assert field in {each["field"].partition(".")[0] for each in answer.json()["errors"]}


def texts(schema: dict[str, Any]) -> Iterator[str]:
    for name, each in schema["properties"].items():
        if each.get("type") == "string":
            yield name


@pytest.mark.database
@pytest.mark.parametrize("number", [1, 2])
async def test_each_text_that_a_tool_takes_is_refused_with_one_but_for_bytes(ask, place, hub, number):
    await db.write(lambda: type(place.scout).objects.filter(pk=place.scout.pk).update(toolset=number))
    await db.write(lambda: type(place.sandbox).objects.update(conversation="talk"))
    for tool in toolsets.toolset(number).values():
        for name in texts(tool.schema):
            body = {"conversation": "talk", "arguments": {**tool.example, name: NUL}}
            answer = await ask.post(f"/tools/{tool.name}", body, key=place.scouts, headers={"Prefer": "wait=0"})
            if name == "content":
                assert answer.status_code == 503, "to be looked at, it needs an engine"
                continue
            assert (answer.status_code, tool.name, answer.json()["field"]) == (422, tool.name, f"arguments.{name}")
    assert not await db.read(Action.objects.filter(status="pending").exists)


@pytest.mark.database
async def test_what_an_agent_says_is_refused_with_one(ask, place, hub):
    for name in ("reason", "parent_action"):
        body = {"conversation": "talk", "arguments": {"command": "ls"}, name: NUL}
        answer = await ask.post("/tools/run", body, key=place.scouts)
        assert (answer.status_code, answer.json()["field"]) == (422, name)
