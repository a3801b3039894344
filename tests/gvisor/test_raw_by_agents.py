"""Files as bytes by an agent's key: a person sees them first, and the same write in JSON is the same call."""

import hashlib
import http.client
import os
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from .filing import MB, Files
from .served import Served, until


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    served = Served(tmp_path_factory.mktemp("raw")).up()
    yield Files(served)
    served.close()


def test_what_an_agent_sends_waits_for_a_person_and_is_then_written(files: Files) -> None:
    content = os.urandom(5 * MB)
    call = files.put_as_agent("from-agent", content)
    (action,) = until(files.pending)
    assert action["arguments"]["content"] == {"sha256": hashlib.sha256(content).hexdigest(), "size": 5 * MB}
    assert files.get("from-agent").status_code == 404
    files.decide(action)
    assert call.result().status_code == 200
    assert call.result().json()["sha256"] == hashlib.sha256(content).hexdigest()
    assert files.get("from-agent").content == content


def test_it_joins_what_the_call_in_json_waits_for(files: Files) -> None:
    """Both say the same write, so there is one card for both."""
    body = {"path": "both", "content": "small", "encoding": "utf-8"}
    first = files.pool.submit(files.agent.post, f"/sandboxes/{files.sandbox}/files", json=body)
    (action,) = until(files.pending)
    second = files.put_as_agent("both", b"small")
    until(lambda: second.running() and not time.sleep(0.5))
    assert len(files.pending()) == 1
    files.decide(action)
    assert (first.result().status_code, second.result().status_code) == (200, 200)
    assert second.result().json()["action_id"] == action["id"]
    assert second.result().json()["joined"] is True


def test_denied_leaves_nothing_and_says_why(files: Files) -> None:
    call = files.put_as_agent("denied", os.urandom(MB))
    (action,) = until(files.pending)
    files.decide(action, "deny")
    assert (call.result().status_code, call.result().json()["code"]) == (403, "denied")
    assert files.get("denied").status_code == 404


def test_an_idempotency_key_writes_once_also_by_a_workspace_key(files: Files) -> None:
    headers = {"Idempotency-Key": "raw-1"}
    content = os.urandom(100_000)
    first = files.member.put(files.raw, params={"path": "once"}, content=content, headers=headers).raise_for_status()
    files.run("printf other > once")
    again = files.member.put(files.raw, params={"path": "once"}, content=content, headers=headers).raise_for_status()
    assert again.json()["action_id"] == first.json()["action_id"]
    assert files.run("cat once") == "other"
    other = files.member.put(files.raw, params={"path": "once"}, content=b"different", headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")


def test_over_its_pending_limit_an_agent_is_refused_and_nothing_of_it_stays(files: Files) -> None:
    before = files.kept_bytes()
    waiting = [files.put_as_agent(f"w{n}", os.urandom(90 * MB)) for n in range(2)]
    until(lambda: len(files.pending()) == 2, within_s=60)
    refused = files.put_as_agent("w3", os.urandom(21 * MB)).result()
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
    assert until(lambda: files.kept_bytes() == before + 180 * MB)
    for action in files.pending():
        files.agent.post(f"/actions/{action['id']}/cancel").raise_for_status()
    assert {call.result().json()["code"] for call in waiting} == {"cancelled"}


def test_whoever_may_not_is_refused_before_anything_is_read(files: Files) -> None:
    address = urlsplit(files.served.url)
    for key, path, status in (("review", files.raw, 403), ("agent", "/sandboxes/sbx_none/files/raw", 404)):
        client = http.client.HTTPConnection(address.hostname or "", address.port or 0, timeout=20)
        client.putrequest("PUT", f"/v1{path}?path=x")
        client.putheader("X-API-Key", files.served.first_run[f"{key}_key"])
        client.putheader("Content-Length", str(50 * MB))
        client.endheaders()
        assert client.getresponse().status == status  # not a byte of the body was sent
        client.close()
