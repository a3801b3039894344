"""Posting to webhooks: to a real HTTPS server on loopback, and never to what only looks public."""

import ipaddress
import json
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from console.workspaces import audit_heads, webhook_addresses, webhooks
from console.workspaces.chain import START, Head
from sandboxes.engine.rules import BLOCKED
from tests.https import serving

# What is not public by the registries, on top of what the sandboxes' own jail blocks.
NOT_PUBLIC = (
    *BLOCKED, "255.255.255.255/32", "192.31.196.0/32", "::1/128", "::/128", "fe80::/10", "fc00::/7", "fec0::/10",
    "ff00::/8", "2001:db8::/32", "3fff::/20", "100::/64", "::/96", "::ffff:0:0/104", "64:ff9b::/96", "64:ff9b:1::/48",
    "2002::/16", "2001::/32", "2001:10::/28", "5f00::/16", "4000::/3", "e000::/4",
)  # fmt: skip
PUBLIC = ("1.1.1.1", "93.184.216.34", "::ffff:1.1.1.1", "2606:4700::1111", "2a00:1450::1")


@pytest.fixture
def https(tmp_path):
    with serving(tmp_path) as endpoint:
        yield endpoint


@pytest.fixture
def loopback_listed(settings):
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8", "::1/128"]


def answers(monkeypatch, *each):
    """Names have these addresses, one answer after the other; which were asked for."""
    asked, left = [], list(each)

    def stub(host, port, **_):
        asked.append(host)
        found = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(webhook_addresses.socket, "getaddrinfo", stub)
    return asked


def test_a_webhook_gets_json_where_its_network_is_listed(https, loopback_listed):
    assert webhooks.post(https.url, {"heads": ["x"]}, context=https.trusting) == 204
    assert [(got.path, json.loads(got.body)) for got in https.got] == [("/hook?x=1", {"heads": ["x"]})]


def test_heads_of_the_audit_chains_go_the_same_way(https, loopback_listed, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(https.certificate))
    audit_heads.to_webhook(https.url, [Head("wsp_1", 7, START)])
    assert [list(json.loads(got.body)) for got in https.got] == [["heads"]]


def test_an_address_that_is_not_public_is_not_even_connected_to(https):
    with pytest.raises(webhooks.WebhookFailed, match="SANDGATE_WEBHOOK_NETWORKS"):
        webhooks.post(https.url, {}, context=https.trusting)
    assert https.got == []


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "[::1]", "[fe80::1]", "[::ffff:10.0.0.1]", "0.0.0.0", "100.64.0.1",
     "224.0.0.1", "[ff02::1]", "[fd00::1]", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:7f00:1]",
     "[::127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[fe80::1%25lo]", "localhost", "LOCALHOST", "localhost.", "127.0.0.1."],
)  # fmt: skip
def test_private_addresses_however_written_are_refused(address, monkeypatch):
    def connected(*_, **__):
        raise AssertionError("connected")

    monkeypatch.setattr(webhooks._Pinned, "connect", connected)
    with pytest.raises(webhooks.WebhookFailed):
        webhooks.post(f"https://{address}/", {})


@pytest.mark.parametrize("network", NOT_PUBLIC)
def test_no_address_of_a_range_that_is_not_public_is_allowed(network):
    whole = ipaddress.ip_network(network)
    if network == "192.31.196.0/32":  # public, and allowed: that the list is looked at is what this shows
        assert webhook_addresses.is_allowed("192.31.196.0")
        return
    for found in (whole[0], whole[-1], whole[whole.num_addresses // 2]):
        assert not webhook_addresses.is_allowed(str(found)), found
        if found.version == 4:
            assert not webhook_addresses.is_allowed(f"::ffff:{found}"), found
            assert not webhook_addresses.is_allowed(f"64:ff9b::{found}"), found


@given(some.sampled_from([each for each in NOT_PUBLIC if not each.startswith("192.31")]), some.integers(min_value=0))
def test_nor_any_other_of_them(network, at):
    whole = ipaddress.ip_network(network)
    assert not webhook_addresses.is_allowed(str(whole[at % whole.num_addresses]))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_ones_are_allowed(address):
    assert webhook_addresses.is_allowed(address)


def test_a_listed_network_opens_itself_and_nothing_beside_it(settings):
    settings.WEBHOOK_NETWORKS = ["10.1.0.0/16"]
    assert webhook_addresses.is_allowed("10.1.2.3")
    assert webhook_addresses.is_allowed("::ffff:10.1.2.3")
    assert not webhook_addresses.is_allowed("10.2.0.1")


def test_a_name_is_resolved_once_and_that_address_is_connected_to(https, loopback_listed, settings, monkeypatch):
    """Whoever answers anew each time gets the first answer looked at, and that one connected to."""
    settings.WEBHOOK_NETWORKS = ["127.0.0.1/32"]
    asked = answers(monkeypatch, ["127.0.0.1"], ["10.0.0.1"])
    port = https.url.split(":")[2].split("/")[0]
    assert webhooks.post(f"https://hooks.test:{port}/x", {}, context=https.trusting) == 204
    assert asked == ["hooks.test"]
    assert https.got[0].headers["Host"] == f"hooks.test:{port}"
    with pytest.raises(webhooks.WebhookFailed, match=r"10\.0\.0\.1, which is not public"):
        webhooks.post(f"https://hooks.test:{port}/x", {}, context=https.trusting)
    assert len(https.got) == 1


@pytest.mark.parametrize("found", [["1.1.1.1", "127.0.0.1"], ["127.0.0.1", "1.1.1.1"]])
def test_one_address_of_a_name_that_is_not_public_refuses_all(found, monkeypatch):
    answers(monkeypatch, found)
    with pytest.raises(webhooks.WebhookFailed, match="not public"):
        webhooks.post("https://hooks.test/", {})


def test_the_certificate_has_to_be_of_the_name(https, loopback_listed, monkeypatch):
    answers(monkeypatch, ["127.0.0.1"])
    port = https.url.split(":")[2].split("/")[0]
    with pytest.raises(webhooks.WebhookFailed, match="could not be reached"):
        webhooks.post(f"https://other.test:{port}/", {}, context=https.trusting)
    assert https.got == []


@pytest.mark.parametrize(
    "url",
    ["http://localhost/", "ftp://localhost/", "https:///x", "file:///etc/passwd", "x", "https://a:b@localhost/",
     "https://localhost\\@x/", "https://localhost:99999/", "https://localhost/ x", "https://localhost/\r\nX: y",
     "https://[::1", "https://ⓛocalhost/", "https://localhost/" + "x" * 500],
)  # fmt: skip
def test_only_https_written_plainly_is_spoken(url):
    with pytest.raises(webhooks.WebhookFailed, match="https|ASCII"):
        webhooks.post(url, {})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(https, loopback_listed, status):
    https.status = status
    with pytest.raises(webhooks.WebhookFailed, match=f"answered {status}") as failed:
        webhooks.post(https.url, {}, context=https.trusting)
    assert failed.value.status == status
    assert len(https.got) == 1


@pytest.mark.parametrize(
    "says", [b"220 mail.internal ESMTP\0 at your service\r\n", b"HTTP/1.1 internal\r\n\r\n", b"\xff"]
)
def test_what_is_no_http_is_not_quoted(https, loopback_listed, says):
    https.says = says
    with pytest.raises(webhooks.WebhookFailed, match="no HTTP") as failed:
        webhooks.post(https.url, {}, context=https.trusting)
    assert "internal" not in str(failed.value)
    assert str(failed.value).isprintable()


def test_a_certificate_that_nobody_vouches_for_gets_nothing(https, loopback_listed):
    with pytest.raises(webhooks.WebhookFailed, match="could not be reached"):
        webhooks.post(https.url, {})
    assert https.got == []


def test_who_answers_byte_by_byte_is_cut_off_in_time(https, loopback_listed, monkeypatch):
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 1.0)
    https.drip_s = 0.1
    began = time.monotonic()
    with pytest.raises(webhooks.WebhookFailed, match="no answer within 1 s"):
        webhooks.post(https.url, {}, context=https.trusting)
    assert time.monotonic() - began < 2


def test_who_takes_a_connection_and_says_nothing_is_left_in_time(loopback_listed, monkeypatch):
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(webhooks.WebhookFailed, match="could not be reached"):
            webhooks.post(f"https://localhost:{silent.getsockname()[1]}/", {})
    assert time.monotonic() - began < 2


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(webhook_addresses.socket, "getaddrinfo", lambda *_, **__: time.sleep(3))
    began = time.monotonic()
    with pytest.raises(webhooks.WebhookFailed, match="not looked up"):
        webhooks.post("https://hooks.test/", {})
    assert time.monotonic() - began < 2
