"""Published files on pages: on their card and their sandbox's page, and as a download that is on record."""

from datetime import timedelta
from hashlib import sha256

import pytest
from django.utils import timezone

from console.workspaces.models import AuditEntry
from sandboxes.models import Artifact
from tests.api.conftest import make_sandbox
from tests.approvals.proposals import pending

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators"),
]
CONTENT = b"<script>alert(1)</script>\0"


@pytest.fixture
def folder(settings, tmp_path):
    options = {**settings.STORAGES["artifacts"]["OPTIONS"], "location": tmp_path}
    settings.STORAGES = {**settings.STORAGES, "artifacts": {**settings.STORAGES["artifacts"], "OPTIONS": options}}
    return tmp_path


@pytest.fixture
def kept(cast, folder):
    """Of Scout, with the action that published it."""
    row = Artifact.objects.create(
        workspace=cast.workspace, agent=cast.scout, sandbox=make_sandbox(cast.scout), path="/work/out/r\u202e\n.html",
        title="March report", size=len(CONTENT), sha256=sha256(CONTENT).hexdigest(),
        expires_at=timezone.now() + timedelta(days=30),
    )  # fmt: skip
    (folder / row.pk).write_bytes(CONTENT)
    return row


@pytest.fixture
def published(cast, kept):
    action = pending(cast.caller(cast.scout), tool="publish", kind="command", sandbox_id=kept.sandbox_id)
    type(action).objects.filter(pk=action.pk).update(
        status="succeeded", started_at=timezone.now(), ended_at=timezone.now(), result={"artifact_id": kept.pk},
        arguments={"path": kept.path, "title": kept.title},
    )  # fmt: skip
    return action


def at(cast, *parts: str) -> str:
    return "/".join([f"/w/{cast.workspace.pk}", *parts])


def test_card_and_sandbox_lead_to_what_was_published(cast, browser, kept, published):
    for address in (at(cast, "queue", published.pk), at(cast, "sandboxes", kept.sandbox_id)):
        page = browser(cast.bob).get(address).content.decode()
        assert f'href="{at(cast, "artifacts", kept.pk)}"' in page
        for told in ("March report", "/work/out/r", kept.sha256, "26 bytes"):
            assert told in page
        assert "\u202e" not in page


def test_a_download_is_never_a_page_and_is_on_record(cast, browser, kept):
    answer = browser(cast.bob).get(at(cast, "artifacts", kept.pk))
    assert b"".join(answer) == CONTENT
    assert (answer["Content-Type"], answer["Content-Length"]) == ("application/octet-stream", str(len(CONTENT)))
    assert answer["Content-Disposition"] == 'attachment; filename="r__.html"'
    assert (answer["X-Content-Type-Options"], "sandbox" in answer["Content-Security-Policy"]) == ("nosniff", True)
    row = AuditEntry.objects.get(event="artifact.downloaded")
    assert (row.actor_id, row.subject_id, row.data["path"]) == (cast.bob.pk, kept.pk, kept.path)


def test_nobody_else_gets_it_and_nothing_is_recorded(cast, browser, kept):
    url = at(cast, "artifacts", kept.pk)
    own = f"/w/{cast.mallory.workspace_id}/artifacts/{kept.pk}"
    assert browser(cast.mallory).get(url).status_code == browser(cast.mallory).get(own).status_code == 404
    assert browser().get(url).status_code == 302
    assert browser(cast.bob).post(url).status_code == 405
    cast.bob.permissions.exclude(name="approvals:review").delete()
    assert browser(cast.bob).get(url).status_code == 403
    assert not AuditEntry.objects.filter(event="artifact.downloaded").exists()


def test_what_has_expired_or_is_lost_is_not_there(cast, browser, kept, published, folder):
    (folder / kept.pk).unlink()
    assert browser(cast.bob).get(at(cast, "artifacts", kept.pk)).status_code == 404
    Artifact.objects.update(expires_at=timezone.now())
    assert browser(cast.bob).get(at(cast, "artifacts", kept.pk)).status_code == 404
    assert "The copy has expired." in browser(cast.bob).get(at(cast, "queue", published.pk)).content.decode()
