"""The published client, unchanged, against a whole console: round trips, sync and async, and what it is told."""

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest
from noxus_sdk.client import Client
from noxus_sdk.errors import ForbiddenError, NotFoundError, NoxusApiError, UnauthorizedError, ValidationError

from .served import Served, until

EVERY_BYTE = bytes(range(256)) * 2000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("sdk")).up()
    yield console
    print("\n".join(console.printed))
    console.close()


def client(served: Served, key: str) -> Client:
    return Client(api_key=served.first_run[f"{key}_key"], base_url=served.url)


@pytest.fixture
def workspace(served: Served) -> Iterator[Client]:
    with client(served, "workspace") as found:
        yield found


class Approving:
    """A reviewer who approves whatever an agent proposes, as long as this is open."""

    def __init__(self, served: Served, verdict: str = "approve", reason: str = "") -> None:
        self.served, self.body = served, {"verdict": verdict, "reason": reason}
        self.over, self.seen = threading.Event(), []
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with self.served.api("review") as api:
            while not self.over.wait(0.05):
                for action in api.get("/actions", params={"status": "pending"}).json()["items"]:
                    body = {**self.body, "digest": action["digest"]}
                    if api.post(f"/actions/{action['id']}/decision", json=body).status_code == 200:
                        self.seen.append(action)

    def __enter__(self) -> "Approving":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def round_trip(client: Client) -> None:
    with client.sandboxes.create(label="report") as sandbox:
        assert (sandbox.label, sandbox.status) == ("report", "running")
        assert sandbox.id in [found.id for found in client.sandboxes.list()]
        assert sandbox.files.write("/work/run.py", "print('hi')") == "/work/run.py"
        assert sandbox.commands.run("python /work/run.py").stdout == "hi\n"
        assert sandbox.files.read("run.py") == "print('hi')"
        sandbox.files.write("deep/er/all.bin", EVERY_BYTE)
        assert sandbox.files.read_bytes("/work/deep/er/all.bin") == EVERY_BYTE
        failed = sandbox.commands.run("echo out; echo err >&2; exit 3")
        assert (failed.stdout, failed.stderr, failed.exit_code, failed.ok) == ("out\n", "err\n", 3, False)
        assert client.sandboxes.get(sandbox.id).status == sandbox.refresh().status == "running"
    with pytest.raises(NotFoundError):
        client.sandboxes.get(sandbox.id)
    with pytest.raises(NotFoundError):
        sandbox.kill()


def test_the_round_trip_of_a_workspace_key(workspace: Client) -> None:
    assert workspace.nodes == []
    assert workspace.admin.enabled is False
    me = workspace.admin.get_me()
    assert me.permissions == ["sandboxes:read", "sandboxes:run"]
    assert workspace.api_key not in me.value
    round_trip(workspace)


def test_the_round_trip_of_an_agent_with_a_reviewer_at_hand(served: Served) -> None:
    with client(served, "agent") as agent, Approving(served) as reviewer:
        round_trip(agent)
    assert [action["tool"] for action in reviewer.seen] == ["write", "run", "write", "run"]


def test_the_same_async(served: Served) -> None:
    async def trip() -> None:
        async with client(served, "workspace") as found:
            async with await found.sandboxes.acreate(label="async") as sandbox:
                await sandbox.files.awrite("a.txt", "ä\0b")
                assert await sandbox.files.aread("a.txt") == "ä\0b"
                await sandbox.files.awrite("a.bin", EVERY_BYTE)
                assert await sandbox.files.aread_bytes("a.bin") == EVERY_BYTE
                many = await asyncio.gather(*(sandbox.commands.arun(f"sleep 0.2; echo {n}") for n in range(6)))
                assert [one.stdout for one in many] == [f"{n}\n" for n in range(6)]
                assert (await sandbox.arefresh()).status == (await found.sandboxes.aget(sandbox.id)).status
                assert sandbox.id in [one.id for one in await found.sandboxes.alist()]
            with pytest.raises(NotFoundError):
                await found.sandboxes.adelete(sandbox.id)

    asyncio.run(trip())


def test_how_commands_end(workspace: Client) -> None:
    with workspace.sandboxes.create() as sandbox:
        run = sandbox.commands.run
        late = run("echo before; sleep 30; echo after", timeout=1)
        assert (late.stdout, late.exit_code, late.timed_out) == ("before\n", 124, True)
        assert run("kill -TERM $$").exit_code == 143
        assert run("no-such-program").exit_code == 127
        assert run("touch plain; ./plain").exit_code == 126
        assert run("id -un; pwd; cat").stdout == "agent\n/work\n"
        assert run("printf 'a\\0b\\377'").stdout == "a\0b\ufffd"
        assert run("sleep 60 & echo at once").stdout == "at once\n"


def test_output_beyond_the_limit_is_its_two_ends(served: Served, workspace: Client) -> None:
    with workspace.sandboxes.create() as sandbox, served.api("workspace") as api:
        body = {"command": "echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo last"}
        found = api.post(f"/sandboxes/{sandbox.id}/commands", json=body).raise_for_status().json()
        assert (found["truncated"], found["stdout_bytes"]) == (True, 30_000_011)
        assert len(found["stdout"]) == 10 << 20
        assert found["stdout"].startswith("first\nxx")
        assert found["stdout"].endswith("xxlast\n")
        path = f"/sandboxes/{sandbox.id}/commands/{found['id']}"
        end = api.get(path, params={"stdout_from": 30_000_000}).json()
        assert (end["stdout"], end["next"]["stdout"], end["status"]) == ("xxxxxxlast\n", 30_000_011, "exited")


def test_a_file_of_fifty_mebibytes(workspace: Client) -> None:
    content = os.urandom(50 << 20)
    with workspace.sandboxes.create() as sandbox:
        sandbox.files.write("large.bin", content)
        assert sandbox.files.read_bytes("large.bin") == content


def test_errors_are_the_clients_own(served: Served, workspace: Client) -> None:
    with workspace.sandboxes.create() as sandbox:
        with pytest.raises(NotFoundError, match="no such file"):
            sandbox.files.read("none")
        sandbox.files.write("latin", b"\xe9")
        with pytest.raises(ValidationError, match="encoding=base64"):
            sandbox.files.read("latin")
        with pytest.raises(ValidationError, match="directory") as caught:
            sandbox.files.read("/work")
        assert caught.value.body["code"] == "is_a_directory"
        with pytest.raises(ForbiddenError) as caught:
            sandbox.files.write("/etc/passwd", "x")
        assert caught.value.body["code"] == "permission_denied_in_sandbox"
        with pytest.raises(ValidationError, match="command"):
            sandbox.commands.run("")
    with pytest.raises(UnauthorizedError):
        Client(api_key="sg_key_wrong", base_url=served.url)


def test_a_full_disk_says_so(served: Served, workspace: Client) -> None:
    with served.api("workspace") as api:
        made = api.post("/sandboxes", json={"disk_mb": 64}).raise_for_status().json()
    sandbox = workspace.sandboxes.get(made["id"])
    with sandbox, pytest.raises(NoxusApiError) as caught:
        sandbox.files.write("large.bin", bytes(80 << 20))
    assert (caught.value.status_code, caught.value.body["code"]) == (409, "no_space")


def test_a_denial_reaches_the_agent_with_its_reason(served: Served) -> None:
    with client(served, "agent") as agent, agent.sandboxes.create() as sandbox:
        with Approving(served, "deny", "Use the staging data."), pytest.raises(ForbiddenError) as caught:
            sandbox.commands.run("rm -rf /work")
        assert (caught.value.body["code"], caught.value.body["reason"]) == ("denied", "Use the staging data.")
        with Approving(served) as reviewer:
            with pytest.raises(ForbiddenError) as again:
                sandbox.commands.run("rm -rf /work")  # within its cool-down: nobody is asked once more
            assert again.value.body["code"] == "denied"
            assert sandbox.commands.run("rm -rf /work/*").exit_code == 0
        assert [each["arguments"]["command"] for each in reviewer.seen] == ["rm -rf /work/*"]


def test_a_deleted_sandbox_takes_what_waits_with_it(served: Served) -> None:
    with client(served, "agent") as agent, served.api("agent") as api:
        sandbox = agent.sandboxes.create()
        answers: list[NoxusApiError] = []

        def call() -> None:
            try:
                sandbox.commands.run("echo late")
            except NoxusApiError as error:
                answers.append(error)

        waiting = threading.Thread(target=call)
        waiting.start()
        until(lambda: api.get("/actions", params={"status": "pending"}).json()["items"])
        sandbox.kill()
        waiting.join(timeout=10)
        assert (answers[0].status_code, answers[0].body["code"]) == (409, "sandbox_gone")
