"""The OpenAPI document and its explorer: public, whole, and served from here alone."""

import asyncio
import json
import re
from collections.abc import Iterator

import pytest
import schemathesis
from django.contrib.staticfiles import finders
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks

from console.api.urls import api
from console.urls import urlpatterns

pytestmark = pytest.mark.anyio
WHAT_ISSUE_TWO_NEEDS = {
    "POST /v1/sandboxes", "GET /v1/sandboxes", "GET /v1/sandboxes/{sandbox_id}", "DELETE /v1/sandboxes/{sandbox_id}",
    "POST /v1/sandboxes/{sandbox_id}/commands", "GET /v1/sandboxes/{sandbox_id}/commands",
    "GET /v1/sandboxes/{sandbox_id}/commands/{command_id}", "POST /v1/sandboxes/{sandbox_id}/files",
    "GET /v1/sandboxes/{sandbox_id}/files", "GET /v1/actions", "GET /v1/actions/{action_id}",
    "POST /v1/actions/{action_id}/cancel", "POST /v1/actions/{action_id}/decision", "GET /v1/nodes", "GET /v1/admin/me",
    "GET /v1/agents", "POST /v1/agents", "GET /v1/agents/{agent_id}/tools/sandbox",
    "PUT /v1/agents/{agent_id}/tools/sandbox", "GET /v1/keys", "POST /v1/keys", "GET /v1/members", "POST /v1/members",
    "GET /v1/audit",
}  # fmt: skip


async def test_the_document_is_public_and_holds_every_call(ask):
    answer = await ask.get("/openapi.json", key=None)
    assert answer.status_code == 200
    found = answer.json()
    assert found["openapi"].startswith("3.1")
    calls = {f"{method.upper()} {path}" for path, methods in found["paths"].items() for method in methods}
    assert calls >= WHAT_ISSUE_TWO_NEEDS
    names = [operation["operationId"] for methods in found["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))
    assert set(found["components"]["securitySchemes"]) == {"key", "bearer"}


async def test_each_address_that_exists_is_in_the_document():
    served = {
        "/v1/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern))
        for pattern in next(entry for entry in urlpatterns if str(entry.pattern) == "v1/").url_patterns
    } - {"/v1/", "/v1/docs", "/v1/openapi.json"}
    assert served == set(api.document["paths"])


async def test_the_explorer_loads_nothing_from_elsewhere(ask):
    answer = await ask.get("/docs", key=None)
    assert answer.status_code == 200
    parts = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
    assert len(parts) >= 4
    for part in parts:
        assert part == "openapi.json" or finders.find(part.removeprefix("/static/")), part
    assert "//" not in answer.text.replace("//www.w3.org", "")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "connect-src 'self';" in policy


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
async def test_they_are_read_only(ask, path):
    answer = await ask("POST", path, key=None)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


schema = schemathesis.openapi.from_dict(json.loads(json.dumps(api.document)))
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@schema.parametrize()
@settings(max_examples=15, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_whatever_is_sent_the_answer_is_one_that_the_document_names(case, place, hub, ask, loop):
    """By a key that may everything but decide. No id is hit by chance: this is about shapes and statuses."""
    sent = case.as_transport_kwargs(base_url="http://localhost")
    # As bytes: a header may hold any of Latin-1, and the client would only write ASCII.
    given = {name: value.encode("latin-1") for name, value in sent["headers"].items() if value}
    headers = {**given, "X-API-Key": place.alices.encode()}
    body = {"json": sent["json"]} if "json" in sent else {"content": sent.get("data")}
    call = ask.client.request(sent["method"], sent["url"], params=sent.get("params"), headers=headers, **body)
    answer = loop.run(call)
    assert answer.status_code != 500
    case.validate_response(answer, checks=CHECKS)


async def test_each_operation_reads_well():
    """A short summary, which is a sentence's words without an end; then text that names permission, keys and gate."""
    for path, methods in api.document["paths"].items():
        for method, operation in methods.items():
            summary, text = operation["summary"], operation["description"]
            assert 2 <= len(summary.split()) <= 11, summary
            assert summary[0].isupper(), summary
            assert not summary.endswith("."), summary
            assert summary not in text
            for permission in operation["x-permission"]:
                assert f"`{permission}`" in text, (method, path)
            assert f"**Keys:** {operation['x-keys']}" in text
            assert f"**Gate:** `{operation['x-gate']}`" in text
