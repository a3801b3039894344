"""Keep-alive, pipelining, disconnects, and requests that take long."""

import socket
import time

import pytest


def test_pipelined_requests_are_answered_in_order(served):
    with served.connect() as client:
        client.send("GET /wait/nobody-yet HTTP/1.1")
        client.send("GET /ping HTTP/1.1")
        time.sleep(0.1)
        served.get("/ring/nobody-yet")
        assert client.answer().json == {"found": 1}
        assert client.answer().json == {"caller": "good"}


@pytest.mark.parametrize("chunked", [False, True])
def test_a_connection_lives_on_after_a_body(served, chunked):
    headers = ["Transfer-Encoding: chunked"] if chunked else ["Content-Length: 300000"]
    body = b"493e0\r\n" + bytes(300_000) + b"\r\n0\r\n\r\n" if chunked else bytes(300_000)
    with served.connect() as client:
        for _ in range(3):
            client.send("POST /body HTTP/1.1", *headers, body=body)
            assert client.answer().json == {"size": 300_000}


@pytest.mark.parametrize("how", ["close", "half-close"])
def test_a_client_that_leaves_ends_the_view(served, how):
    held, cancelled = (served.get("/seen").get(name, 0) for name in ("held", "cancelled"))
    with served.connect() as client:
        client.send("GET /hold HTTP/1.1")
        served.seen("held", at_least=held + 1)
        if how == "half-close":
            client.sock.shutdown(socket.SHUT_WR)
            served.seen("cancelled", at_least=cancelled + 1, within_s=1)
    served.seen("cancelled", at_least=cancelled + 1, within_s=1)


def test_a_client_that_leaves_ends_the_stream_it_does_not_read(served):
    ended = served.get("/seen").get("streams_ended", 0)
    with served.connect() as client:
        client.send("GET /stream/300 HTTP/1.1")
        time.sleep(0.2)
    served.seen("streams_ended", at_least=ended + 1, within_s=1)


def test_a_stream_that_breaks_is_cut_and_not_ended(served):
    with served.connect() as client:
        client.send("GET /broken HTTP/1.1")
        assert client.head().status == 200
        with pytest.raises((EOFError, ConnectionResetError)):
            client.read_until(b"0\r\n\r\n")


@pytest.mark.parametrize("size", [290_000, 600_000])  # ends with the chunk that pauses the socket; ends later
def test_a_slow_answer_is_no_silent_client(served, size):
    with served.connect() as client:
        client.send("POST /late HTTP/1.1", f"Content-Length: {size}", body=bytes(size))
        assert client.answer().status == 200
        assert client.is_closed(), "an idle connection ends, also after a body that had to wait"


def test_http_1_0_gets_its_answer_and_the_end(served):
    with served.connect() as client:
        client.send("GET /ping HTTP/1.0")
        assert client.answer().json == {"caller": "good"}
        assert client.is_closed()


def test_three_hundred_waits_hold_a_handful_of_threads_and_answer_together(served_alone):
    served_alone.get("/ping")
    threads, clients = served_alone.threads(), [served_alone.connect() for _ in range(300)]
    for client in clients:
        client.send("GET /wait/all HTTP/1.1")
    time.sleep(0.5)
    assert served_alone.threads() - threads <= 4
    began = time.monotonic()
    served_alone.get("/ring/all")
    assert [client.answer().json for client in clients] == [{"found": 1}] * 300
    assert time.monotonic() - began < 2
    for client in clients:
        client.sock.close()
