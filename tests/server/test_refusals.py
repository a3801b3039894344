"""Refused after the headers, readable by a client that sends on, and never mistaken for the next request."""

import re
import time

import pytest

BIG = 90 << 20


def ask(served, first_line, *headers, body=b"", key="good"):
    with served.connect() as client:
        client.send(first_line, *headers, body=body, key=key)
        return client.answer()


@pytest.mark.parametrize(
    ("key", "status", "code"), [("", 401, "no_key"), ("bad", 401, "bad_key"), ("good", 413, "too_large")]
)
@pytest.mark.parametrize("expect", [[], ["Expect: 100-continue"]])
def test_refused_before_the_body(served, key, status, code, expect):
    began = time.monotonic()
    answer = ask(served, "POST /body HTTP/1.1", f"Content-Length: {BIG}", *expect, key=key)
    assert time.monotonic() - began < 0.5
    assert (answer.status, answer.json["code"], answer.headers["connection"]) == (status, code, "close")
    assert answer.json["detail"].endswith(".")
    assert re.fullmatch("[A-Za-z0-9-]{1,64}", answer.headers["x-request-id"])


def test_a_client_that_sends_on_reads_its_refusal(served):
    disk = served.written_mb()
    with served.connect() as client:
        client.send("POST /body HTTP/1.1", f"Content-Length: {BIG}", key="bad")
        for _ in range(90):
            client.sock.sendall(bytes(1 << 20))
        assert client.answer().status == 401
        assert client.is_closed()
    assert served.written_mb() - disk < 1


def test_a_refused_client_that_sends_no_more_is_cut(served):
    with served.connect() as client:
        client.send("POST /body HTTP/1.1", f"Content-Length: {BIG}", key="bad")
        began = time.monotonic()
        assert client.answer().status == 401
        assert client.is_closed()
    assert 0.5 < time.monotonic() - began < 2.5  # LINGER_S is 1


def test_after_a_refusal_the_connection_takes_nothing_more(served):
    next_request = b"GET /ring/after HTTP/1.1\r\nHost: localhost\r\nX-API-Key: good\r\n\r\n"
    with served.connect() as client:
        client.send("POST /body HTTP/1.1", "Content-Length: 3000000", key="bad")
        assert client.answer().headers["connection"] == "close"
        client.sock.sendall(bytes(3_000_000) + next_request)
        assert client.drain() == 0
    assert "after" not in served.get("/seen")


@pytest.mark.parametrize("pause_s", [0, 0.2])
def test_a_body_that_holds_a_request_gets_one_answer(served, pause_s):
    inner = b"GET /ring/smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: good\r\n\r\n"
    with served.connect() as client:
        client.send("POST /body HTTP/1.1", "Content-Length: 9000000", key="bad")
        time.sleep(pause_s)
        client.sock.sendall(inner * 3)
        assert client.answer().status == 401
        assert client.drain() == 0
    assert "smuggled" not in served.get("/seen")


def test_continue_is_said_when_the_body_is_wanted(served):
    with served.connect() as client:
        client.send("POST /body HTTP/1.1", "Content-Length: 5", "Expect: 100-continue")
        assert client.head().status == 100
        client.sock.sendall(b"hello")
        assert client.answer().json == {"size": 5}


def test_a_body_without_a_length_is_counted(served):
    with served.connect() as client:
        client.send("POST /body HTTP/1.1", "Transfer-Encoding: chunked")
        chunk = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
        client.sock.sendall(chunk * 20)  # 1.25 of 1 MiB
        answer = client.answer()
    assert (answer.status, answer.json["code"], answer.json["limit_bytes"]) == (413, "too_large", 1 << 20)


def test_a_door_without_keys_has_a_limit_too(served):
    assert ask(served, "POST /open HTTP/1.1", f"Content-Length: {BIG}", key="").status == 413


def test_keys_come_as_bearer_too(served):
    answer = ask(served, "GET /ping HTTP/1.1", "Authorization: Bearer good", key="")
    assert answer.json == {"caller": "good"}
    assert ask(served, "GET /ping HTTP/1.1", "Authorization: Basic good", key="").status == 401
    assert ask(served, "GET /ping HTTP/1.1", "Cookie: key=good", key="").headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/crash", "/silent"])
def test_an_application_that_fails_is_answered_at_once(served, path):
    began = time.monotonic()
    answer = ask(served, f"GET {path} HTTP/1.1", "X-Request-Id: mine-1")
    assert (answer.status, answer.json["code"]) == (500, "internal")
    assert time.monotonic() - began < 0.5


def test_a_failing_look_up_of_the_key_is_no_refusal(served):
    answer = ask(served, "GET /ping HTTP/1.1", "X-Request-Id: mine-2", key="broken")
    assert (answer.status, answer.headers["x-request-id"]) == (500, "mine-2")
    assert "mine-2" in answer.json["detail"]
    assert "mine-2" in served.logged()


@pytest.mark.parametrize("given", ["a" * 65, "with space", "semi;colon", "é"])
def test_a_strange_request_id_is_replaced(served, given):
    assert ask(served, "GET /ping HTTP/1.1", f"X-Request-Id: {given}").headers["x-request-id"] != given


def test_a_bad_header_is_answered_like_any_error(served):
    answer = ask(served, "GET /ping HTTP/1.1", "Strange: a\x0bb")
    assert (answer.status, answer.json["code"]) == (400, "malformed")
    assert answer.headers["x-request-id"]


def test_a_client_cannot_move_the_root(served):
    assert ask(served, "GET /x/open HTTP/1.1", "Daphne-Root-Path: /x", key="").status == 401


@pytest.mark.parametrize("headers", [
    ["Content-Length: 5", "Transfer-Encoding: chunked"],
    ["Content-Length: 5", "Content-Length: 6"],
    ["Content-Length: +5"],
    ["Content-Length: 5", "Upgrade: websocket", "Connection: Upgrade"],
])  # fmt: skip
def test_an_ambiguous_length_is_refused(served, headers):
    with served.connect() as client:
        client.send("POST /ring/ambiguous HTTP/1.1", *headers, body=b"hello")
        assert client.head().status == 400
        assert client.is_closed()
    assert "ambiguous" not in served.get("/seen")
