"""Heads that go out: what arrives where, once, and how a place that fails is told."""

import socket

import pytest
from django.core import mail

from console.management.commands.doctor import ours
from console.workspaces import audit, audit_heads
from console.workspaces.chain import heads_in
from console.workspaces.models import HeadPlace, Workspace
from sandboxes import hourly

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture
def chain(transactional_db):
    workspace = Workspace.objects.create(name="Harbour Works")
    audit.append(workspace_id=workspace.pk, actor=audit.SYSTEM, event="x")
    workspace.refresh_from_db()
    return workspace


async def sent(settings, **places):
    settings.AUDIT_HEADS = places
    await audit_heads.send()


async def more(workspace):
    def append():
        audit.append(workspace_id=workspace.pk, actor=audit.SYSTEM, event="x")

    await audit_heads.db.write(append)


async def rows():
    return {row.place: row for row in await audit_heads.db.read(lambda: list(HeadPlace.objects.all()))}


async def test_a_file_has_each_head_once_and_keeps_what_it_had(chain, settings, tmp_path):
    file = tmp_path / "heads"
    file.write_text("mine\n")
    await sent(settings, file=str(file))
    await sent(settings, file=str(file))
    await more(chain)
    await sent(settings, file=str(file))
    assert file.read_text().startswith("mine\n")
    found = list(heads_in(file.read_text().splitlines()))
    assert [(head.seq, head.workspace_id) for head in found] == [(1, chain.pk), (2, chain.pk)]
    assert found[0].hash == chain.audit_head


async def test_syslog_gets_a_line_by_socket_and_by_udp(chain, settings, tmp_path):
    for family, where in ((socket.AF_UNIX, str(tmp_path / "log")), (socket.AF_INET, "")):
        with socket.socket(family, socket.SOCK_DGRAM) as log:
            log.bind(where or ("127.0.0.1", 0))
            log.settimeout(5)
            await audit_heads.db.write(HeadPlace.objects.all().delete)
            await sent(settings, syslog=where or f"127.0.0.1:{log.getsockname()[1]}")
            line = log.recv(4096).decode()
        assert line.startswith("<110>sandgate: {")
        assert [head.seq for head in heads_in([line])] == [1]


async def test_mail_holds_lines_that_verify_can_read(chain, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    await sent(settings, mail="a@example.test, b@example.test")
    assert [message.to for message in mail.outbox] == [["a@example.test", "b@example.test"]]
    assert [head.hash for head in heads_in(mail.outbox[0].body.splitlines())] == [chain.audit_head]


async def test_a_place_that_fails_is_tried_again_and_told(chain, settings, tmp_path):
    file = tmp_path / "not-there" / "heads"
    good = tmp_path / "good"
    await sent(settings, file=str(file), mail="")
    row = (await rows())["file"]
    assert "No such file" in row.error
    assert row.sent_at is None
    assert "could not be sent to the file" in audit_heads.Standing("file", None, row.tried_at, row.error).said
    failed = [check for check in await audit_heads.db.read(lambda: list(ours())) if check.name == "audit heads, file"]
    assert [check.ok for check in failed] == [False]
    file.parent.mkdir()
    await sent(settings, file=str(file), syslog=str(good))
    assert (await rows())["file"].error == ""
    assert "FileNotFoundError" in (await rows())["syslog"].error
    assert len(file.read_text().splitlines()) == 1


async def test_one_act_of_the_hour_that_fails_keeps_no_other_from_it(monkeypatch, settings):
    import asyncio

    done = asyncio.Event()

    async def broken():
        raise RuntimeError("away")

    async def well():
        done.set()

    settings.TIMER_DIVISOR = 1e6
    monkeypatch.setattr(hourly, "ACTS", (("x", broken), ("y", well)))
    task = asyncio.get_running_loop().create_task(hourly.run())
    async with asyncio.timeout(5):
        await done.wait()
    task.cancel()
