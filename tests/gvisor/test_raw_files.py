"""Files as bytes over REST, both ways: whole or cut off, never held, never a page."""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from .filing import MB, Files
from .served import Served, until

BIG = 100 * MB  # the most that may be sent
BLOCK = os.urandom(MB)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    served = Served(tmp_path_factory.mktemp("raw")).up()
    yield Files(served)
    served.close()


@pytest.mark.parametrize("size", [0, 1, 18433, 120_000, 131073, 33 * MB])
def test_bytes_come_back_as_they_went(files: Files, size: int) -> None:
    content = os.urandom(size)
    written = files.put(f"sizes/{size}", content).raise_for_status().json()
    assert (written["path"], written["size"]) == (f"/work/sizes/{size}", size)
    assert written["sha256"] == hashlib.sha256(content).hexdigest()
    answer = files.get(f"sizes/{size}")
    assert (answer.content, answer.headers["content-length"]) == (content, str(size))


def test_large_files_stream_both_ways_in_little_memory_and_no_disk(files: Files) -> None:
    """Chunked, so that neither side knows the length before the end."""
    before, most, over = files.resident_mb(), 0.0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(0.02):
            most = max(most, files.resident_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.monotonic()
    written = files.put("big", (BLOCK for _ in range(BIG // MB))).raise_for_status().json()
    there = time.monotonic()
    got, size = hashlib.sha256(), 0
    with files.member.stream("GET", files.raw, params={"path": "big"}) as answer:
        for piece in answer.iter_bytes():
            got.update(piece)
            size += len(piece)
    back = time.monotonic()
    over.set()
    watcher.join()
    print(
        f"{BIG // MB} MiB: in {BIG / MB / (there - began):.0f} MB/s, out {BIG / MB / (back - there):.0f} MB/s, "
        f"memory +{most - before:.0f} MB"
    )
    assert (written["size"], size) == (BIG, BIG)
    assert written["sha256"] == got.hexdigest()
    assert most - before < 20
    assert files.kept_bytes() == 0


def test_both_are_recorded_with_size_and_hash(files: Files) -> None:
    written = files.put("recorded", b"abc").json()
    action = files.ended_action()
    assert (action["id"], action["tool"], action["status"]) == (written["action_id"], "write", "succeeded")
    assert action["outcome"]["result"]["sha256"] == hashlib.sha256(b"abc").hexdigest()
    files.get("recorded", headers={"Range": "bytes=1-"})
    action = files.ended_action()
    assert (action["tool"], action["arguments"]["offset"]) == ("read", 1)
    assert action["outcome"]["result"]["sha256"] == hashlib.sha256(b"bc").hexdigest()


@pytest.mark.parametrize(
    ("wanted", "status", "content", "says"),
    [
        ("bytes=0-0", 206, b"0", "bytes 0-0/10"),
        ("bytes=3-5", 206, b"345", "bytes 3-5/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=7-99999", 206, b"789", "bytes 7-9/10"),
        ("bytes=-4", 206, b"6789", "bytes 6-9/10"),
        ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=99999999999999999999999-", 416, None, "bytes */10"),
        ("bytes=-99999999999999999999999", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=-0", 416, None, "bytes */10"),
        ("bytes=5-3", 200, b"0123456789", None),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("lines=0-1", 200, b"0123456789", None),
        ("bytes=x-", 200, b"0123456789", None),
    ],
)
def test_a_range(files: Files, wanted: str, status: int, content: bytes | None, says: str | None) -> None:
    files.put("digits", b"0123456789")
    answer = files.get("digits", headers={"Range": wanted})
    assert (answer.status_code, answer.headers.get("content-range")) == (status, says)
    if content is not None:
        assert (answer.content, answer.headers["content-length"]) == (content, str(len(content)))
        assert answer.headers["accept-ranges"] == "bytes"
    else:
        assert answer.json()["code"] == "range_not_satisfiable"
    assert files.get("digits", headers={"Range": wanted, "If-Range": '"x"'}).status_code == 200


def test_head_says_what_get_would_and_sends_nothing(files: Files) -> None:
    files.put("headed", b"0123456789")
    for wanted, status, size in (({}, 200, 10), ({"Range": "bytes=2-4"}, 206, 3)):
        answer = files.member.head(files.raw, params={"path": "headed"}, headers=wanted)
        assert (answer.status_code, answer.headers["content-length"], answer.content) == (status, str(size), b"")
    assert files.member.head(files.raw, params={"path": "none"}).status_code == 404


def test_a_file_of_proc_has_no_size_and_comes_whole(files: Files) -> None:
    answer = files.get("/proc/meminfo")
    assert b"MemTotal:" in answer.content
    assert answer.headers.get("content-length") is None


@pytest.mark.parametrize(
    "name",
    [
        "..foo",
        "a%2Fb",
        "a b#c?&=+.txt",
        "ünï.txt",
        "отчёт.pdf",
        "two\nlines",
        "\"'`$HOME;",
        "-rf",
        "x" * 255,
        "%",
        "con",
    ],
)
def test_odd_names_are_only_names(files: Files, name: str) -> None:
    assert files.put(f"odd/{name}", name.encode()).json()["path"] == f"/work/odd/{name}"
    answer = files.get(f"odd/{name}")
    assert answer.content == name.encode()
    told = answer.headers["content-disposition"]
    assert told.startswith("attachment; ")
    assert told.endswith(f"; filename*=UTF-8''{quote(name, safe='')}")
    assert "\n" not in told
    assert told.count('"') == 2
    listed = files.member.get(f"/sandboxes/{files.sandbox}/files/list", params={"path": "odd"}).json()["items"]
    assert f"/work/odd/{name}" in [item["path"] for item in listed]
    content = {"path": f"odd/{name}", "encoding": "utf-8"}
    assert files.member.get(f"/sandboxes/{files.sandbox}/files", params=content).json()["content"] == name


def test_a_name_that_is_no_utf8_is_listed_with_its_bytes(files: Files) -> None:
    files.run("mkdir -p bytes; touch bytes/$'\\xff'; ln -sfn $'\\xff' bytes/link; printf x > bytes/$'\\xff'")
    items = files.member.get(f"/sandboxes/{files.sandbox}/files/list", params={"path": "bytes"}).json()["items"]
    assert [(item["path"], item["path_base64"]) for item in items] == [
        ("/work/bytes/link", None), ("/work/bytes/\ufffd", "L3dvcmsvYnl0ZXMv/w=="),
    ]  # fmt: skip
    assert files.get("bytes/link").content == b"x"  # through a link that leads there, too
    assert files.ended_action()["outcome"]["result"]["path"] == "/work/bytes/\ufffd"


def test_a_listing_over_rest(files: Files) -> None:
    files.run("mkdir -p tree/sub; cd tree; printf 123 > f; chmod 750 f; touch -d @86400 f; ln -s f l; ln -s . o")
    url = f"/sandboxes/{files.sandbox}/files/list"
    found = files.agent.get(url, params={"path": "tree"}).raise_for_status().json()
    assert found["truncated"] is False
    assert found["items"][0] == {
        "path": "/work/tree/f", "path_base64": None, "type": "file", "size": 3, "mode": 0o750,
        "mtime": "1970-01-02T00:00:00.000Z",
    }  # fmt: skip
    assert [item["type"] for item in found["items"]] == ["file", "link", "link", "dir"]
    assert files.ended_action()["outcome"]["result"] == {"path": "/work/tree", "entries": 4, "truncated": False}
    for path, status, code in (("none", 404, "file_not_found"), ("tree/f", 422, "not_a_directory")):
        answer = files.member.get(url, params={"path": path})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert files.member.get(url, params={"path": ".", "depth": 21}).status_code == 422


@pytest.mark.parametrize(
    ("make", "path", "status", "code"),
    [
        ("true", "none", 404, "file_not_found"),
        ("mkdir -p dir", "dir", 422, "is_a_directory"),
        ("true", "/etc/shadow", 403, "permission_denied_in_sandbox"),
        ("mkfifo -m 600 fifo", "fifo", 422, "not_a_file"),
        ("ln -sf self self", "self", 422, "bad_path"),
        ("true", "x" * 300, 422, "bad_path"),
    ],
)
def test_what_cannot_be_read_is_told_apart(files: Files, make: str, path: str, status: int, code: str) -> None:
    files.run(f"test -e {path} || {make}")
    answer = files.get(path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert files.ended_action()["status"] == "failed"


@pytest.mark.parametrize(
    ("make", "path", "status", "code"),
    [
        ("mkdir -p dir", "dir", 422, "is_a_directory"),
        ("true", "/etc/passwd", 403, "permission_denied_in_sandbox"),
        ("touch file", "file/x", 422, "bad_path"),
        ("mkfifo -m 600 fifo2", "fifo2", 422, "not_a_file"),
    ],
)
def test_what_cannot_be_written_is_told_at_once(files: Files, make: str, path: str, status: int, code: str) -> None:
    """Also when far more was still to come."""
    files.run(f"test -e {path} || {make}")
    for content in (b"x", bytes(30 * MB)):
        answer = files.put(path, content)
        assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_full_disk_is_told_and_leaves_the_old_file(files: Files) -> None:
    small = files.member.post("/sandboxes", json={"disk_mb": 64}).raise_for_status().json()["id"]
    url = f"/sandboxes/{small}/files/raw"
    files.member.put(url, params={"path": "kept"}, content=b"old").raise_for_status()
    answer = files.member.put(url, params={"path": "kept"}, content=bytes(80 * MB))
    assert (answer.status_code, answer.json()["code"]) == (409, "no_space")
    assert files.member.get(url, params={"path": "kept"}).content == b"old"
    files.member.delete(f"/sandboxes/{small}").raise_for_status()


def test_a_mode_is_set_and_parents_are_made(files: Files) -> None:
    files.put("new/er/script", b"#!/bin/sh\necho ran\n", mode=0o750).raise_for_status()
    assert files.run("new/er/script; stat -c %a new/er/script") == "ran\n750\n"
    assert files.put("new/er/script", b"", mode=755).status_code == 422


def test_too_large_is_refused_before_and_while_it_comes(files: Files) -> None:
    with files.connect("PUT", "huge", f"Content-Length: {(100 << 20) + 1}") as sock:
        head = sock.recv(65536).decode()
        assert " 413 " in head.splitlines()[0]
        assert '"limit_bytes": 104857600' in head
    answer = files.put("huge", (BLOCK for _ in range(101)))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert files.ended_action()["status"] == "failed"
    assert files.run("ls -A | grep -c -e huge -e sandgate || true") == "0\n"


def test_who_asks_first_whether_to_send_is_told_to_go_on_or_why_not(files: Files) -> None:
    expects = ("Expect: 100-continue", "Content-Length: 5")
    with files.connect("PUT", "expected", *expects) as sock:
        assert sock.recv(4096).startswith(b"HTTP/1.1 100 Continue\r\n")
        sock.sendall(b"12345")
        assert sock.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")
    assert files.get("expected").content == b"12345"
    with files.connect("PUT", "expected", "Expect: 100-continue", f"Content-Length: {200 * MB}") as sock:
        assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("headers", [("Content-Length: 3000000",), ("Transfer-Encoding: chunked",)])
def test_a_body_that_breaks_off_writes_nothing(files: Files, headers: tuple[str]) -> None:
    with files.connect("PUT", "half", *headers) as sock:
        sock.sendall(b"100000\r\n" + bytes(1 << 20) + b"\r\n" if "chunked" in headers[0] else bytes(1 << 20))
        until(lambda: files.last_action()["status"] == "running")
    action = files.ended_action()
    assert (action["status"], action["outcome"]["error"]["code"]) == ("failed", "interrupted")
    assert files.run("ls -A | grep -c -e half -e sandgate || true") == "0\n"


def test_a_client_that_does_not_read_costs_nothing_and_one_that_leaves_ends_the_read(files: Files) -> None:
    files.run("truncate -s 200M sparse")
    before = files.resident_mb()
    with files.connect("GET", "sparse") as sock:
        assert b" 200 " in sock.recv(100)
        time.sleep(1.5)
        assert files.get("sparse", headers={"Range": "bytes=0-9"}).content == bytes(10)
        assert files.resident_mb() - before < 10
        (reading,) = files.member.get("/actions", params={"status": "running"}).json()["items"]
    action = files.ended(reading["id"])
    assert action["outcome"]["error"]["code"] == "interrupted"


def read_until_cut(files: Files, sandbox: str, path: str, meanwhile: Callable[[httpx.Client], Any]) -> tuple[int, bool]:
    """How many bytes came, and whether the connection was cut. `meanwhile` happens once the first are here."""
    got = 0
    try:
        with files.member.stream("GET", f"/sandboxes/{sandbox}/files/raw", params={"path": path}) as answer:
            for piece in answer.iter_bytes():
                if not got:
                    with files.served.api("workspace") as other:
                        meanwhile(other)
                got += len(piece)
    except (httpx.RemoteProtocolError, httpx.ReadError):
        return got, True
    return got, False


def test_a_sandbox_that_dies_half_way_cuts_the_connection(files: Files) -> None:
    doomed = files.member.post("/sandboxes", json={}).raise_for_status().json()["id"]
    files.member.post(f"/sandboxes/{doomed}/commands", json={"command": "truncate -s 200M f"}).raise_for_status()
    got, cut = read_until_cut(files, doomed, "f", lambda other: other.delete(f"/sandboxes/{doomed}").raise_for_status())
    assert cut
    assert 0 < got < 200 * MB


def test_a_file_that_becomes_shorter_is_cut_off_and_one_that_grows_is_read_as_it_was(files: Files) -> None:
    def resized(size: str) -> Callable[[httpx.Client], Any]:
        command = {"command": f"truncate -s {size} changes"}
        return lambda other: other.post(f"/sandboxes/{files.sandbox}/commands", json=command).raise_for_status()

    resized("50M")(files.member)
    got, cut = read_until_cut(files, files.sandbox, "changes", resized("40M"))
    assert cut
    assert got <= 40 * MB
    assert read_until_cut(files, files.sandbox, "changes", resized("45M")) == (40 * MB, False)


def test_no_door_serves_sandbox_bytes_as_a_page(files: Files) -> None:
    files.put("page.html", b"<script>alert(1)</script>")
    browser = {"Accept": "text/html,application/xhtml+xml", "Sec-Fetch-Dest": "document"}
    made = files.member.post(f"/sandboxes/{files.sandbox}/artifacts", json={"path": "page.html"}).raise_for_status()
    for url, query in (
        (files.raw, {"path": "page.html"}),
        (f"/artifacts/{made.json()['id']}/content", {}),
        (f"/sandboxes/{files.sandbox}/files", {"path": "page.html"}),
    ):
        answer = files.member.get(url, params=query, headers=browser)
        kind = answer.headers["content-type"]
        assert kind in ("application/octet-stream", "application/json", "application/json; charset=utf-8"), kind
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        if kind == "application/octet-stream":
            assert answer.headers["content-disposition"].startswith('attachment; filename="page.html"')
            assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"


def test_a_server_that_dies_in_the_middle_of_both_leaves_no_half_file_and_two_actions_that_end(tmp_path: Path) -> None:
    served = Served(tmp_path / "var").up()
    try:
        files = Files(served)
        files.run("truncate -s 200M long")
        with (
            files.connect("GET", "long") as reading,
            files.connect("PUT", "half", "Content-Length: 9000000") as writing,
        ):
            assert b" 200 " in reading.recv(100)
            writing.sendall(bytes(5 * MB))
            open_ = until(lambda: len(found := running(files.member)) == 2 and found)
            served.kill()
        served.up()
        files.member, files.agent = served.api("workspace"), served.api("agent")
        ended = [files.ended(action["id"]) for action in open_]
        assert [(action["status"], action["outcome"]["error"]["code"]) for action in ended] == [
            ("failed", "interrupted")
        ] * 2
        assert files.run("ls -A") == "long\n"
        assert files.put("half", b"whole").status_code == 200
    finally:
        served.close()


def running(api: httpx.Client) -> list[dict[str, Any]]:
    return list(api.get("/actions", params={"status": "running"}).raise_for_status().json()["items"])
