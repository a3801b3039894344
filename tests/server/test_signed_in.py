"""Browser sockets: only from a page of this console, only for somebody who is signed in, for as long as they are."""

import asyncio
import logging
from importlib import import_module

import pytest
from django.conf import settings as django_settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

from console import signed_in
from console.workspaces import db
from tests.people import cast

from .test_back_pressure import handshake


def scope(*, origin="http://localhost:8000", host="localhost:8000", cookies="", **headers):
    given = {"host": host, "origin": origin, "cookie": cookies, **headers}
    lines = [(name.replace("_", "-").encode(), text.encode()) for name, text in given.items() if text is not None]
    return {
        "type": "websocket", "path": "/ws/queue", "query_string": b"", "root_path": "", "client": ["127.0.0.1", 1],
        "server": ["127.0.0.1", 8000],
        "headers": lines,
    }  # fmt: skip


def through(app_class, scope):
    """Whether a socket gets through, and the scope it then has."""
    passed, sent = [], []

    async def app(scope, receive, send):
        passed.append(scope)

    async def send(message):
        sent.append(message["type"])

    asyncio.run(app_class(app)(scope, None, send))
    assert bool(passed) != (sent == ["websocket.close"])
    return passed[0] if passed else None


@pytest.mark.parametrize("origin", [
    None, "null", "", "http://evil.test", "http://localhost:8001", "http://localhost", "https://localhost:8000",
    "http://localhost:8000.evil.test", "http://evil.test/http://localhost:8000", "//localhost:8000",
])  # fmt: skip
def test_a_foreign_page_gets_no_socket_and_the_log_says_why(origin, caplog):
    with caplog.at_level(logging.WARNING):
        assert through(signed_in.SameOrigin, scope(origin=origin)) is None
    assert "Origin" in caplog.text
    assert origin is None or (repr(origin) in caplog.text and "SANDGATE_ORIGINS" in caplog.text)


def test_an_unknown_host_gets_no_socket(caplog):
    assert through(signed_in.SameOrigin, scope(origin="http://evil.test", host="evil.test")) is None
    assert "evil.test" in caplog.text


def test_the_consoles_own_page_gets_one():
    assert through(signed_in.SameOrigin, scope())


def test_a_trusted_origin_gets_one_with_and_without_a_wildcard(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://gate.example.com", "https://*.example.org"]
    for origin in ("https://gate.example.com", "https://a.example.org"):
        assert through(signed_in.SameOrigin, scope(origin=origin))
    for origin in ("http://gate.example.com", "https://x.gate.example.com", "https://example.org.evil.test"):
        assert through(signed_in.SameOrigin, scope(origin=origin)) is None


def test_behind_a_proxy_the_scheme_is_the_proxys(settings):
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert through(signed_in.SameOrigin, scope(origin="https://localhost:8000", x_forwarded_proto="https"))
    assert through(signed_in.SameOrigin, scope(origin="http://localhost:8000", x_forwarded_proto="https")) is None


@pytest.mark.parametrize(("origin", "status"), [("own", 101), ("http://evil.test", 403), ("null", 403), (None, 403)])
def test_on_the_wire_the_handshake_is_answered(served, origin, status):
    with served.connect() as client:
        own = f"http://127.0.0.1:{served.port}"
        assert handshake(client, "/ws/echo", origin=own if origin == "own" else origin).status == status


@pytest.fixture
def alice(transactional_db):
    yield cast().alice.user
    db.close()


def session_of(user):
    store = import_module(django_settings.SESSION_ENGINE).SessionStore()
    store[SESSION_KEY], store[HASH_SESSION_KEY] = user.pk, user.get_session_auth_hash()
    store[BACKEND_SESSION_KEY] = django_settings.AUTHENTICATION_BACKENDS[0]
    store.create()
    return store


def cookie(store):
    return scope(cookies=f"{django_settings.SESSION_COOKIE_NAME}={store.session_key}")


def test_a_person_who_is_signed_in_gets_through_by_name(alice):
    assert through(signed_in.SignedIn, cookie(session_of(alice)))["user"] == alice


@pytest.mark.parametrize(
    "cookies",
    ["", "sessionid=x", f"{django_settings.SESSION_COOKIE_NAME}=forged"],
    ids=["none", "another", "forged"],
)
def test_nobody_else_does(alice, cookies):
    session_of(alice)
    assert through(signed_in.SignedIn, scope(cookies=cookies)) is None


@pytest.mark.parametrize("lost", ["signed out", "password changed", "deactivated", "password must change"])
def test_an_open_socket_learns_that_its_person_is_gone(alice, lost):
    store = session_of(alice)
    open_socket = cookie(store)
    assert asyncio.run(signed_in.user_of(open_socket)) == alice
    if lost == "signed out":
        store.flush()
    elif lost == "password changed":
        alice.set_password("something else 7")
    alice.is_active = lost != "deactivated"
    alice.password_must_change = lost == "password must change"
    alice.save()
    assert asyncio.run(signed_in.user_of(open_socket)) is None
