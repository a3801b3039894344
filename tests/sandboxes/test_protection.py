"""Protected paths before anybody is asked: what is refused, and what an agent's settings add and exempt."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from approvals import payloads
from console.pages import fates
from console.workspaces import agents
from console.workspaces.errors import Invalid, PermissionDenied
from console.workspaces.models import AuditEntry
from sandboxes import protection, toolsets
from sandboxes.errors import FileError
from sandboxes.toolsets import printed, write

KEY = "-----BEGIN " + "PRIVATE KEY-----\n"


def agent(more=(), exempt=()):
    return SimpleNamespace(protected_more=list(more), protected_exempt=list(exempt))


def exemption(path, **until):
    return {
        "path": path,
        "expires_at": (timezone.now() + timedelta(**until)).isoformat(),
        "reason": "to rotate it",
        "by": "",
    }


def refused(path, content="x", who=None):
    with pytest.raises(FileError) as refusal:
        protection.check_write({"path": path, "content": content}, who)
    assert refusal.value.code == "protected_path"
    return refusal.value.detail


@pytest.mark.parametrize(
    "path", ["/work/.env", "/work/a/../.ssh/config", "/tmp/server.key", "/work/.ENV ", "/etc/x.pem"]
)
def test_a_protected_name_is_refused_wherever_it_lies(path):
    assert "never written" in refused(path)
    assert "Ask a person" in refused(path, who=agent())


def test_a_private_key_is_refused_under_any_name():
    assert "private key" in refused("/work/notes.txt", KEY)
    assert "private key" in refused("/work/cert.pem", payloads.hold(f"cert\n{KEY}".encode()))
    assert protection.check_write({"path": "/work/a.py", "content": f'K = "{KEY}"'}, None) == ()


def test_a_person_may_and_an_agent_may_not_put_one_there():
    asked = {"path": ".env", "content": b"A=1", "protected": True}
    assert protection.check_write(write.validate(asked, None), None) == ()
    with pytest.raises(FileError):
        write.validate(asked, agent())
    assert "protected" not in write.validate({"path": "a", "content": b"", "protected": False}, None)


def test_settings_add_names_and_exempt_paths_until_a_time():
    who = agent(["*.crypt"], [exemption("/work/.env", hours=1), exemption("/work/.netrc", hours=-1)])
    refused("/work/a.crypt", who=who)
    refused("/work/.netrc", who=who)
    refused("/work/sub/.env", who=who)
    assert protection.check_write({"path": "/work/.env", "content": KEY}, who) == ("exempt_path",)
    assert protection.check_write({"path": "/work/plain", "content": "x"}, who) == ()
    assert protection.of(who).exempt == ("/work/.env",)
    assert protection.of(None) == protection.Policy()


def test_every_act_that_writes_a_file_is_checked():
    """A new one is asked about by its kind; what has no `path` to check must say here why that is right."""
    writing = {module.NAME for module in toolsets._acts().values() if module.KIND == "write"}
    assert writing == {"write", "edit", "unseal"}, "does acts._checked see the path that this writes to?"


@pytest.mark.django_db
def test_an_admin_sets_them_and_each_change_is_recorded(cast):
    until = (timezone.now() + timedelta(days=2)).isoformat()
    wanted = {
        "protected_more": ["*.crypt", " deploy/*.json "],
        "protected_exempt": [{"path": "/work/.env", "expires_at": until, "reason": "to rotate it"}],
    }
    changed = agents.change_tools(cast.scout, by=cast.alice, **wanted)
    assert changed.protected_more == ["*.crypt", "deploy/*.json"]
    assert changed.protected_exempt == [
        {"path": "/work/.env", "expires_at": until, "reason": "to rotate it", "by": cast.alice.pk}
    ]
    row = AuditEntry.objects.filter(event="agent.tools_changed").latest("seq")
    assert row.data["after"]["protected_exempt"][0]["path"] == "/work/.env"
    again = agents.change_tools(changed, by=None, protected_exempt=changed.protected_exempt)
    assert again.protected_exempt[0]["by"] == cast.alice.pk, "who gave it stays"
    assert agents.change_tools(again, by=cast.alice, protected_exempt=[]).protected_exempt == []


@pytest.mark.django_db
@pytest.mark.parametrize("given", [
    [{"path": "work/.env", "expires_at": "2126-01-01T00:00:00Z"}], [{"path": "/work/../x", "expires_at": "x"}], "x",
    [{"path": "/work/.env"}], [{"path": "/work/.env", "expires_at": "2126-01-01T00:00:00+00:00"}], [5],
    [{"path": "/work/.env", "expires_at": "2020-01-01T00:00:00+00:00"}], [{"path": "/", "expires_at": "x"}],
    [{"path": "/work/.env", "expires_at": "2026-12-01T00:00:00"}], [{"path": "/work/*.env", "expires_at": "x"}],
    [{"path": "//work/.env", "expires_at": "x"}],
])  # fmt: skip
def test_an_exemption_names_one_path_and_ends(cast, given):
    with pytest.raises(Invalid) as refusal:
        agents.change_tools(cast.scout, by=cast.alice, protected_exempt=given)
    assert refusal.value.fields["field"] == "protected_exempt"


def exempt(path: str = "/work/.env", hours: int = 1, **fields: object) -> dict:
    until = timezone.now() + timedelta(hours=hours)
    return {"path": path, "expires_at": until.isoformat(), "reason": "to rotate it"} | fields


@pytest.mark.django_db
@pytest.mark.parametrize("reason", [None, "", " \t", 5, "x" * 201])
def test_an_exemption_says_why(cast, reason):
    with pytest.raises(Invalid, match="Say why"):
        agents.change_tools(cast.scout, by=cast.alice, protected_exempt=[exempt(reason=reason)])


@pytest.mark.django_db
def test_a_path_is_exempt_once(cast):
    with pytest.raises(Invalid, match="twice"):
        agents.change_tools(cast.scout, by=cast.alice, protected_exempt=[exempt(), exempt(hours=2)])


@pytest.mark.django_db
@pytest.mark.parametrize(("more", "path", "is_some"), [
    ([], "/work/.env", True), ([], "/work/plain.txt", False),
    (["*.crypt"], "/work/a.crypt", True), ([], "/work/a.crypt", False),
])  # fmt: skip
def test_an_exemption_is_of_what_is_protected_with_the_names_it_is_set_with(cast, more, path, is_some):
    settings = {"protected_more": more, "protected_exempt": [exempt(path)]}
    if is_some:
        protection.check_settings(settings, cast.scout)
        return
    with pytest.raises(Invalid, match="not protected"):
        protection.check_settings(settings, cast.scout)


@pytest.mark.django_db
def test_who_may_not_manage_agents_sets_none(cast):
    with pytest.raises(PermissionDenied):
        agents.change_tools(cast.scout, by=cast.bob, protected_more=["*.x"])


@pytest.mark.parametrize("pattern", ["*", "", "a/../b"])
def test_a_pattern_that_protects_everything_or_nothing_is_named(pattern):
    with pytest.raises(Invalid) as refusal:
        protection.check_patterns({"protected_more": ["*.ok", pattern]})
    assert refusal.value.fields["field"] == "protected_more"


def test_a_model_is_told_of_what_its_command_made():
    result = {"status": "exited", "exit_code": 0, "duration_ms": 5, "stdout_bytes": 0, "stderr_bytes": 0}
    found = [{"path": f"/work/{n}.key", "sealed": n < 12} for n in range(13)]
    told = printed.text({**result, "protected": found, "protected_more": 3})
    assert "no longer changed, moved or removed: /work/0.key, " in told
    assert "not sealed: /work/12.key." in told
    assert "And 5 more of them." in told
    assert "protected" not in printed.text(result)


def test_a_card_says_that_a_command_made_some():
    result = {"exit_code": 0, "duration_ms": 5, "protected": [{"path": "/work/a.key", "sealed": True}]}
    action = SimpleNamespace(status="succeeded", result=result, tool="run")
    assert fates.said(action, None) == "Ran 5 ms. It made 1 protected file; 1 of them is sealed."
