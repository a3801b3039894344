"""Claims about every operation in the OpenAPI document: no call is declared that these do not try."""

import itertools
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals.models import Action, Grant, Plan, Rule
from approvals.notices import acts
from console.api.urls import api
from console.workspaces import db, members, permissions
from sandboxes.models import Artifact, NetworkException

from .conftest import limited_key

pytestmark = pytest.mark.anyio
METHODS = ("get", "post", "put", "delete", "patch")
# Valid bodies, so that a refusal is about who calls and nothing else.
BODIES = {
    "create_sandbox": {},
    "run_command": {"command": "true"},
    "install_packages": {"packages": ["gawk"]},
    "send_input": {"data": "x"},
    "write_file": {"path": "x", "content": "x"},
    "call_tool": {"conversation": "c", "arguments": {"command": "true"}},
    "unseal_file": {"path": "x"},
    "publish_artifact": {"path": "x"},
    "propose_plan": {"conversation": "c", "calls": [{"tool": "run", "arguments": {"command": "true"}}]},
    "decide_plan": {"verdict": "deny", "digest": "0" * 64, "reason": "no"},
    "cancel_action": {},
    "decide_action": {"verdict": "deny", "digest": "0" * 64, "reason": "no"},
    "make_agent": {"name": "new"},
    "make_network_exception": {"address": "10.1.2.3", "protocol": "tcp", "port": 5432},
    "change_agent_tools": {"toolset": 1},
    "change_workspace_settings": {"pool_size": 2},
    "give_agent_permission": {},
    "add_member": {"email": "eve@example.test", "name": "Eve"},
    "give_permission": {},
    "be_away": {"until": "2020-01-01T00:00:00Z"},
    "halt_agent": {},
    "halt_workspace": {},
    "make_key": {"name": "new"},
    "make_webhook": {"kind": "plain", "target": "https://example.com/hook"},
    "send_test": {},
    "make_rule": {"effect": "allow", "tool": "run", "pattern": "ls"},
    "change_rule": {"note": "x"},
    "adopt_rule": {},
    "dry_run_rules": {},
    "run_rule_tests": {"effect": "allow", "tool": "run", "pattern": "ls"},
    "give_grant": {"action_id": "act_none", "digest": "0" * 64},
}
REVIEW = [permissions.APPROVALS_REVIEW]  # which alice's key here does not have


def operations():
    return [
        pytest.param(method.upper(), path.removeprefix("/v1"), found, id=found["operationId"])
        for path, methods in api.document["paths"].items()
        for method, found in methods.items()
    ]


def call(operation):
    needed = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query" and each["required"]}
    return {**a_body(operation), "params": dict.fromkeys(needed, "x")}


def a_body(operation):
    if "requestBody" not in operation:
        return {}
    return {"json": BODIES[operation["operationId"]]} if takes_json(operation) else {"content": b"x"}


def takes_json(operation):
    return "application/json" in operation["requestBody"]["content"]


@pytest.fixture
def filled(place):
    """The address of things that are there, in scout's workspace."""
    where = {"workspace": place.workspace, "agent": place.scout, "sandbox_id": place.sandbox.pk}
    action = Action.objects.create(tool="run", digest="0" * 64, asked=True, **where)
    exception = NetworkException.objects.create(agent=place.scout, address="10.0.0.9", protocol="tcp", port=1)
    artifact = Artifact.objects.create(
        workspace=place.workspace, agent=place.scout, sandbox=place.sandbox, path="/work/x", size=1, sha256="0" * 64,
        expires_at=timezone.now() + timedelta(days=1),
    )  # fmt: skip
    rule = Rule.objects.create(workspace=place.workspace, effect="ask", tool="run", pattern="ls", owner=place.alice)
    grant = Grant.objects.create(
        workspace=place.workspace, agent=place.scout, action=action, tool="run", exactly=[["ls"]], given_by=place.bob,
        expires_at=timezone.now() + timedelta(minutes=5),
    )  # fmt: skip
    plan = Plan.objects.create(
        workspace=place.workspace, agent=place.scout, conversation="c", sandbox_id=place.sandbox.pk,
        proposed_digest="0" * 64, expires_at=timezone.now() + timedelta(hours=1),
    )  # fmt: skip
    Action.objects.create(tool="run", digest="0" * 64, asked=True, plan=plan, plan_place=1, **where)
    webhook = acts.make(kind="plain", target="https://example.com/hook", by=place.alice)
    ids = {
        "sandbox_id": place.sandbox.pk,
        "command_id": place.command.pk,
        "action_id": action.pk,
        "agent_id": place.scout.pk,
        "member_id": place.bob.pk,
        "artifact_id": artifact.pk,
        "permission": permissions.AUDIT_READ,
        "key_id": place.scout.keys.first().pk,
        "exception_id": exception.pk,
        "rule_id": rule.pk,
        "pack": "search",
        "grant_id": grant.pk,
        "webhook_id": webhook.pk,
        "tool": "run",
        "plan_id": plan.pk,
    }
    return lambda path: path.format(**ids)


@pytest.mark.parametrize(("method", "path", "operation"), operations())
async def test_no_key_and_a_wrong_key_are_refused(ask, filled, method, path, operation):
    for key, code in ((None, "no_key"), ("sg_agent_made_up", "bad_key")):
        answer = await ask(method, filled(path), key=key, **call(operation))
        assert (answer.status_code, answer.json()["code"]) == (401, code)
        assert answer.headers["x-request-id"]
        assert str(answer.status_code) in {str(status) for status in operation["responses"]}


@pytest.mark.parametrize(("method", "path", "operation"), operations())
async def test_a_wrong_method_names_the_right_ones(ask, place, filled, method, path, operation):
    there = {name.upper() for name in METHODS if name in api.document["paths"][f"/v1{path}"]}
    answer = await ask("PATCH", filled(path), key=place.alices)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) - {"HEAD"} == there


@pytest.mark.parametrize(("method", "path", "operation"), operations())
async def test_each_operation_that_changes_something_declares_a_permission(method, path, operation):
    assert method == "GET" or operation["x-permission"]
    assert set(operation["x-permission"]) <= set(permissions.ALL)


@pytest.mark.parametrize(("method", "path", "operation"), operations())
async def test_without_its_permission_nothing_opens(ask, place, filled, method, path, operation):
    if not operation["x-permission"]:
        return
    other = next(name for name in permissions.ALL if name not in operation["x-permission"])
    powerless = await db.write(limited_key, place.bob, other, place)
    answer = await ask(method, filled(path), key=powerless, **call(operation))
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied"), answer.text


@pytest.mark.parametrize(("method", "path", "operation"), operations())
async def test_what_is_for_workspace_keys_opens_to_no_agent(ask, place, filled, method, path, operation):
    """Even to an agent that somebody gave the permission."""
    if operation["x-keys"] != "workspace":
        return
    for permission in operation["x-permission"]:
        await db.write(members.give, place.scout, permission, by=None)
    answer = await ask(method, filled(path), key=place.scouts, **call(operation))
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


@pytest.mark.parametrize(("method", "path", "operation"), operations())
async def test_what_is_not_yours_is_not_there(ask, place, filled, hub, method, path, operation):
    """For mallory, who may everything in another workspace, and for the other agent of this one."""
    if "{" not in path or "{pack}" in path or operation["operationId"] == "call_tool":  # everybody's: see test_tools
        return
    keys = [place.others] if operation["x-keys"] == "agent" else [place.mallorys]
    keys += [place.others] if operation["x-keys"] == "any" else []
    if operation["x-permission"] == REVIEW:
        keys = [await db.write(place.workspace_key, place.mallory, permissions.APPROVALS_REVIEW)]
    for key in keys:
        answer = await ask(method, filled(path), key=key, **call(operation))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), answer.text
        made_up = filled(path).replace(place.sandbox.pk, "sbx_none").replace(place.scout.pk, "agt_none")
        unknown = await ask(method, made_up, key=key, **call(operation))
        assert unknown.status_code == 404


@pytest.mark.parametrize(("method", "path", "operation"), operations())
async def test_a_body_that_is_no_json_or_has_a_stranger_in_it_is_refused(ask, place, filled, method, path, operation):
    if "requestBody" not in operation or not takes_json(operation):
        return
    key = place.scouts if operation["x-keys"] == "agent" else place.alices
    if operation["x-permission"] == REVIEW:
        key = await db.write(place.workspace_key, place.bob, permissions.APPROVALS_REVIEW)
    broken = await ask(method, filled(path), key=key, content=b"{")
    assert (broken.status_code, broken.json()["code"]) == (400, "malformed")
    body = {**BODIES[operation["operationId"]], "stranger": 1}
    answer = await ask(method, filled(path), key=key, json=body)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "validation", "stranger")


def test_every_door_into_a_sandbox_is_gated():
    """What can change a sandbox's inside: all writes below it. Its creation and end are not among them, nor is the end
    of a command: that takes back what a Pass began, and must be possible at once. A copy of a file changes nothing."""
    inside = {
        found["operationId"]: found["x-gate"]
        for path, methods in api.document["paths"].items()
        for method, found in methods.items()
        if path.startswith("/v1/sandboxes/{sandbox_id}/") and method != "get"
    }
    assert inside.pop("stop_command") == "none"
    assert inside.pop("publish_artifact") == "recorded"
    assert inside
    assert set(inside.values()) == {"approval"}


def test_each_operation_says_how_it_can_fail():
    for (_, methods), name in itertools.product(api.document["paths"].items(), METHODS):
        if found := methods.get(name):
            statuses = {int(status) for status in found["responses"]}
            assert {400, 401, 422, 500} <= statuses, found["operationId"]
            assert not found["x-permission"] or 403 in statuses
            assert name == "get" or found["x-permission"]
