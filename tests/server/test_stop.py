"""An orderly stop: waits are answered, sockets are told, and nothing holds the process."""

import signal
import time

from .test_back_pressure import handshake


def stop(served, within_s):
    began = time.monotonic()
    served.process.send_signal(signal.SIGTERM)
    code = served.process.wait(timeout=within_s)
    return code, time.monotonic() - began


def test_idle_it_stops_at_once(served_alone):
    served_alone.get("/ping")
    assert stop(served_alone, within_s=1)[0] == 0


def test_with_all_kinds_of_calls_open(served_alone):
    wait, stream, put, hold, web, idle = (served_alone.connect() for _ in range(6))
    wait.send("GET /wait/nothing HTTP/1.1")
    stream.send("GET /stream/300 HTTP/1.1")
    put.send("PUT /put HTTP/1.1", "Content-Length: 1000000", body=b"half")
    hold.send("GET /hold HTTP/1.1")
    assert handshake(web, "/ws/echo").status == 101
    served_alone.seen("held", at_least=1)
    began = time.monotonic()
    code, took_s = stop(served_alone, within_s=5)
    assert code == 0, served_alone.logged()
    assert took_s < 3.5
    assert wait.answer().status == 202
    assert web.read_until(b"\x88\x02\x03\xe9") == b"", "a close frame with 1001, going away"
    assert idle.is_closed()
    assert time.monotonic() - began < 4
    assert "Traceback" not in served_alone.logged()
