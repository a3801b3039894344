"""An orderly stop: waits are answered, sockets are told, and nothing holds the process."""

import signal

from .conftest import Served
from .test_back_pressure import handshake


def stop(served, within_s):
    served.process.send_signal(signal.SIGTERM)
    return served.process.wait(timeout=within_s)


def test_idle_it_waits_for_nobody(tmp_path):
    served = Served(tmp_path, stop_s=300)
    try:
        served.get("/ping")
        assert stop(served, within_s=60) == 0
    finally:
        served.close()


def test_with_all_kinds_of_calls_open(served_alone):
    wait, stream, put, hold, web, idle = (served_alone.connect() for _ in range(6))
    wait.send("GET /wait/nothing HTTP/1.1")
    stream.send("GET /stream/300 HTTP/1.1")
    put.send("PUT /put HTTP/1.1", "Content-Length: 1000000", body=b"half")
    hold.send("GET /hold HTTP/1.1")
    assert handshake(web, "/ws/echo").status == 101
    served_alone.seen("held", at_least=1)
    assert stop(served_alone, within_s=60) == 0, served_alone.logged()
    assert wait.answer().status == 202
    assert web.read_until(b"\x88\x02\x03\xe9") == b"", "a close frame with 1001, going away"
    assert idle.is_closed()
    assert "Traceback" not in served_alone.logged()
