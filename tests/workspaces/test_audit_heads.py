"""Heads that go out: what arrives where, once, and how a place that fails is told."""

import http.server
import json
import socket
import ssl
import subprocess
import threading

import pytest
from django.core import mail

from console.management.commands.doctor import ours
from console.workspaces import audit, audit_heads, webhooks
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


@pytest.fixture
def https(tmp_path):
    """A server on loopback with a certificate of its own, that answers as its `status` says."""
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip

    class Door(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(server.status)
            self.send_header("Location", "https://localhost/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    got = []
    server = http.server.HTTPServer(("127.0.0.1", 0), Door)
    server.status, server.got = 204, got
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.url = f"https://localhost:{server.server_port}/hook?x=1"
    server.trusting = ssl.create_default_context(cafile=str(certificate))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def loopback_listed(settings):
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8", "::1/128"]


def test_a_webhook_gets_json_where_its_network_is_listed(https, loopback_listed):
    webhooks.post(https.url, {"heads": ["x"]}, context=https.trusting)
    assert https.got == [("/hook?x=1", {"heads": ["x"]})]


def test_an_address_that_is_not_public_is_not_even_connected_to(https):
    with pytest.raises(webhooks.WebhookFailed, match="SANDGATE_WEBHOOK_NETWORKS"):
        webhooks.post(https.url, {}, context=https.trusting)
    assert https.got == []


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "[::1]", "[fe80::1]", "[::ffff:10.0.0.1]", "0.0.0.0", "100.64.0.1",
     "224.0.0.1", "[ff02::1]", "[fd00::1]", "2130706433", "0x7f.1"],
)  # fmt: skip
def test_private_addresses_however_written_are_refused(address):
    with pytest.raises(webhooks.WebhookFailed):
        webhooks.post(f"https://{address}/", {})


@pytest.mark.parametrize("url", ["http://localhost/", "ftp://localhost/", "https:///x", "file:///etc/passwd", "x"])
def test_only_https_is_spoken(url):
    with pytest.raises(webhooks.WebhookFailed, match="https"):
        webhooks.post(url, {})


def test_a_redirect_is_a_failure_and_is_not_followed(https, loopback_listed):
    https.status = 302
    with pytest.raises(webhooks.WebhookFailed, match="answered 302"):
        webhooks.post(https.url, {}, context=https.trusting)
    assert len(https.got) == 1


def test_a_certificate_that_nobody_vouches_for_gets_nothing(https, loopback_listed):
    with pytest.raises(webhooks.WebhookFailed, match="could not be reached"):
        webhooks.post(https.url, {})
    assert https.got == []
