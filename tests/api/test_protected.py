"""Every door that changes what lies in a sandbox, and what keeps it from protected files. A new one fails here."""

from functools import partial

import pytest

from approvals.models import Action
from console.workspaces import agents, db
from sandboxes import acts, based, toolsets
from sandboxes.engine import Seen
from sandboxes.errors import FileError
from sandboxes.runner import asked

from .test_doors import operations

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("hub")]
PATHS = ("/work/.env", "/work/keys/../id_rsa", "/work/.SSH/config ", "x/server.key")
BY_COMMAND = {"run_command", "install_packages", "send_input"}
"""Judged by the seals: gvisor/test_sealing."""
NO_FILE = {"create_sandbox", "delete_sandbox", "stop_command", "publish_artifact", "cancel_action"}
UNSEALS = {"unseal_file"}


def writing() -> set[str]:
    """Operations of the document that propose something in a sandbox."""
    found = {operation["operationId"] for method, path, operation in map(_of, operations()) if _changes(method, path)}
    return found - BY_COMMAND - NO_FILE - UNSEALS


def _of(param):
    return param.values


def _changes(method: str, path: str) -> bool:
    return method not in ("GET", "HEAD") and path.startswith(("/sandboxes", "/tools/"))


async def test_the_doors_that_write_files_are_known() -> None:
    assert writing() == {"write_file", "write_raw_file", "call_tool"}, "a new door: call it below with a protected path"


async def test_the_acts_and_the_runners_requests_that_write_files_are_known() -> None:
    writes = {module.NAME for module in toolsets._acts().values() if module.KIND == "write"}
    assert writes == {"write", "edit", "unseal"}
    assert set(asked.CHANGES) == {"write", "edit"}, "does this one ask the guard? Try it in gvisor/test_sealing"


@pytest.mark.parametrize("path", PATHS)
async def test_each_refuses_a_protected_path_from_everybody_before_anybody_is_asked(ask, place, path) -> None:
    for key in (place.scouts, place.alices):
        body = {"path": path, "content": "x"}
        whole = await ask.post(f"/sandboxes/{place.sandbox.pk}/files", body, key=key)
        raw = await ask("PUT", f"/sandboxes/{place.sandbox.pk}/files/raw", key=key, params={"path": path}, content=b"x")
        for answer in (whole, raw):
            assert (answer.status_code, answer.json()["code"]) == (403, "protected_path"), answer.text
            assert answer.json()["path"].startswith("/work/")
    assert not await db.read(Action.objects.exists)


WRITING = [tool for number in (1, 2) for tool in toolsets.toolset(number).values() if tool.act.KIND == "write"]


@pytest.mark.parametrize("tool", WRITING, ids=lambda tool: f"{tool.toolset} {tool.name}")
async def test_each_tool_that_writes_refuses_a_protected_path(place, tool) -> None:
    arguments = tool.arguments({**tool.example, "path": "/work/.env"})
    with pytest.raises(FileError) as refused:
        acts._checked(tool.act, arguments, place.scout)
    assert refused.value.code == "protected_path"


async def test_only_a_workspace_key_may_say_protected(ask, place) -> None:
    body = {"path": "/work/.env", "content": "x", "protected": True}
    answer = await ask.post(f"/sandboxes/{place.sandbox.pk}/files", body, key=place.scouts)
    assert (answer.status_code, answer.json()["code"]) == (403, "protected_path")


async def there(sandbox_id: str, path: str) -> Seen:
    """gvisor/test_protected really looks."""
    return Seen(path=path, size=0, mode=0o600, sha256="", content=b"")


@pytest.mark.parametrize("mode", ["rules", "always", "never"])
async def test_unsealing_by_an_agent_waits_for_a_person_whatever_its_mode(
    ask, place, settings, monkeypatch, mode
) -> None:
    settings.GATED_CALL_S = 0.4
    monkeypatch.setattr(based, "_looked", there)
    await db.write(partial(agents.change_tools, place.scout, by=place.alice, write_mode=mode))
    answer = await ask.post(f"/sandboxes/{place.sandbox.pk}/unseal", {"path": ".env"}, key=place.scouts)
    assert (answer.status_code, answer.json()["code"]) == (409, "pending_approval")
    action = await db.read(Action.objects.get)
    assert (action.tool, action.arguments, action.bases) == ("unseal", {"path": "/work/.env"}, {})
    for key, status in ((place.others, 404), (place.mallorys, 404), (None, 401)):
        other = await ask.post(f"/sandboxes/{place.sandbox.pk}/unseal", {"path": ".env"}, key=key)
        assert other.status_code == status


async def test_settings_are_set_and_shown_over_rest(ask, place) -> None:
    path = f"/agents/{place.scout.pk}/tools/sandbox"
    wanted = {
        "protected_more": ["*.crypt"],
        "protected_exempt": [{"path": "/work/.env", "expires_at": soon(), "reason": "x"}],
    }
    answer = await ask("PUT", path, key=place.alices, json=wanted)
    assert answer.status_code == 200, answer.text
    assert answer.json()["protected_more"] == ["*.crypt"]
    (kept,) = answer.json()["protected_exempt"]
    assert (kept["path"], kept["by"]) == ("/work/.env", place.alice.pk)
    refused = await ask.post(
        f"/sandboxes/{place.sandbox.pk}/files", {"path": "a.crypt", "content": ""}, key=place.scouts
    )
    assert refused.json()["code"] == "protected_path"
    for bad, field in (
        ({"protected_more": ["**"]}, "protected_more"),
        ({"protected_exempt": [{"path": "x"}]}, "protected"),
        ({"protected_exempt": [{"path": "/work/.env", "expires_at": soon()}]}, "protected_exempt.reason"),
        ({"protected_exempt": [{"path": "/work/a.txt", "expires_at": soon(), "reason": "x"}]}, "protected_exempt"),
    ):
        wrong = await ask("PUT", path, key=place.alices, json=bad)
        assert (wrong.status_code, wrong.json()["code"]) == (422, "validation")
        assert wrong.json()["field"].startswith(field)


def soon() -> str:
    from datetime import timedelta

    from django.utils import timezone

    return (timezone.now() + timedelta(hours=1)).isoformat()
