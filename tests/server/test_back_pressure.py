"""What one side does not take, the other does not pile up: memory and disk stay where they were."""

import socket
import time

import pytest

MB = 1 << 20


@pytest.mark.parametrize("path", ["/stream/300", "/plain/300"])
def test_a_client_that_reads_nothing_costs_no_memory_and_then_gets_all(served_alone, path):
    served_alone.get("/ping")
    before = served_alone.rss_mb()
    with served_alone.connect() as client:
        client.send(f"GET {path} HTTP/1.1", "Connection: close")
        time.sleep(1)
        assert served_alone.rss_mb() - before < 20
        assert client.head().status == 200
        assert client.drain() >= 300 * MB
    assert served_alone.rss_mb() - before < 20


def test_a_client_that_takes_nothing_for_too_long_is_cut(served):
    ended = served.get("/seen").get("streams_ended", 0)
    with served.connect() as client:
        client.send("GET /stream/300 HTTP/1.1")
        began = time.monotonic()
        served.seen("streams_ended", at_least=ended + 1)
    assert 1.5 < time.monotonic() - began < 4  # SEND_STALL_S is 2


def test_an_upload_passes_through_without_memory_or_disk(served_alone):
    served_alone.get("/ping")
    memory, disk = served_alone.rss_mb(), served_alone.written_mb()
    with served_alone.connect() as client:
        client.send("PUT /put HTTP/1.1", f"Content-Length: {300 * MB}")
        for _ in range(300):
            client.sock.sendall(bytes(MB))
        assert client.answer().json["detail"].startswith(f"{300 * MB} ")
    assert served_alone.rss_mb() - memory < 20
    assert served_alone.written_mb() - disk < 1


def test_a_slow_application_slows_its_client_and_hears_when_it_leaves(served_alone):
    with served_alone.connect() as client:
        client.send("PUT /put?slow HTTP/1.1", f"Content-Length: {100 * MB}")
        client.sock.settimeout(0.3)
        began, sent = time.monotonic(), 0
        while time.monotonic() - began < 1:
            try:
                sent += client.sock.send(bytes(MB))
            except TimeoutError:
                break
        assert sent < 60 * MB, "20 MB/s and what the kernel holds, not all"
    served_alone.seen("puts_dropped", at_least=1)


def handshake(client, path, origin="own"):
    own = f"127.0.0.1:{client.sock.getpeername()[1]}"
    given = {"own": [f"Origin: http://{own}"], None: []}.get(origin, [f"Origin: {origin}"])
    client.send(
        f"GET {path} HTTP/1.1", *given, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", host=own,
    )  # fmt: skip
    return client.head()


def test_a_socket_that_reads_nothing_costs_no_memory(served_alone):
    served_alone.get("/ping")
    before = served_alone.rss_mb()
    with served_alone.connect() as client:
        assert handshake(client, "/ws/flood").status == 101
        time.sleep(1)
        assert served_alone.rss_mb() - before < 20
        assert 1 <= served_alone.get("/seen").get("flooded", 0) < 20
        for _ in range(50):  # and goes on when it reads
            client.sock.recv(1 << 20, socket.MSG_WAITALL)


def test_a_socket_that_sends_faster_than_it_is_read_is_paused(served_alone):
    served_alone.get("/ping")
    before = served_alone.rss_mb()
    text = b"1".ljust(60_000)  # the consumer sleeps that long after each
    message = b"\x81\xfe" + len(text).to_bytes(2, "big") + bytes(4) + text  # masked with zeroes
    with served_alone.connect() as client:
        assert handshake(client, "/ws/echo").status == 101
        client.sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.sock.sendall(message * 2000)
        assert served_alone.get("/seen")["messages"] >= 1
        assert served_alone.rss_mb() - before < 20


def test_a_burst_of_connects_is_taken_at_once(served):
    began, clients = time.monotonic(), []
    for _ in range(300):
        clients.append(served.connect())
        clients[-1].send("GET /ping HTTP/1.1")
    for client in clients:
        assert client.answer().status == 200
        client.sock.shutdown(socket.SHUT_RDWR)
        client.sock.close()
    assert time.monotonic() - began < 3
