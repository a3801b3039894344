"""Which file a command is bound to, and what runs then. The sandbox is a stand-in: the real one is in tests/gvisor."""

import asyncio
from dataclasses import dataclass, field, replace
from hashlib import sha256
from types import SimpleNamespace

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from approvals import gate, payloads
from approvals.digest import reference
from approvals.models import Action
from approvals.policy import Verdict
from console.workspaces import db
from sandboxes import flagging, host, script_files, scripts
from sandboxes.engine import Seen
from sandboxes.errors import BoxGone, FileError, SandboxError
from sandboxes.runner.pinning import SCRIPT_BYTES
from sandboxes.toolsets import run as act
from tests.approvals.proposals import pending, run

pytestmark = pytest.mark.django_db
TEXT = b"#!/bin/sh\necho hi\n"
PROGRAMS = ("/usr/bin/python3", "/usr/bin/bash", "/usr/bin/perl", "/bin/sh")


@dataclass
class Box:
    """`files`: path → (real path, content); what is asked is noted."""

    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    error: SandboxError | None = None

    async def look(self, path: str, *, keep_bytes: int, most_bytes: int) -> Seen | None:
        self.asked.append(path)
        if self.error:
            raise self.error
        if path not in self.files:
            return None
        real, content = self.files[path]
        if len(content) > most_bytes:
            raise FileError("too_large", "too large", path=path)
        return Seen(real, len(content), 0o755, sha256(content).hexdigest(), content)

    async def has(self, path: str) -> bool:
        return path in PROGRAMS


@pytest.fixture
def box(monkeypatch) -> Box:
    box = Box({"/work/x": ("/work/x", TEXT)})

    async def ready_box(sandbox_id: str) -> Box:
        return box

    async def ask(work):
        return await work

    hub = SimpleNamespace(boxes=SimpleNamespace(ready_box=ready_box), ask=ask)
    monkeypatch.setattr(host, "hub", lambda: hub)
    for way in ("read", "write"):  # in the test's own transaction
        monkeypatch.setattr(db, way, lambda act, *args, **more: sync_to_async(act)(*args, **more))
    return box


def bound(proposal: gate.Proposal, **more) -> tuple[gate.Proposal, list[bytes]]:
    return async_to_sync(scripts.bound)(proposal, **more)


def proposed(cast, command: str, **more) -> gate.Proposal:
    return run(cast.caller(cast.scout), command, flags=("network", scripts.UNPINNED), **more)


def test_the_digest_binds_the_file_and_its_text_is_kept(cast, box) -> None:
    plain = proposed(cast, "./x a")
    found, seen = bound(plain)
    assert found.script == {"path": "/work/x", "sha256": sha256(TEXT).hexdigest(), "size": len(TEXT)}
    assert (seen, found.flags) == ([TEXT], ("network",))
    assert found.payloads() == {sha256(TEXT).hexdigest(): len(TEXT)}
    assert found.digest() != plain.digest()
    box.files["/work/x"] = ("/work/x", TEXT + b"\n")
    assert bound(plain)[0].digest() != found.digest()
    box.files["/work/y"] = ("/work/y", TEXT)
    assert bound(proposed(cast, "./y a"))[0].digest() != found.digest()


def test_a_relative_name_is_of_the_folder_that_it_runs_in(cast, box) -> None:
    box.files = {"/work/a/x": ("/work/a/x", TEXT)}
    arguments = {"argv": ["./x"], "cwd": "/work/a", "env": {}, "stdin": "", "timeout_s": 1}
    found, _ = bound(run(cast.caller(cast.scout), arguments=arguments))
    assert found.script is not None
    assert found.script["path"] == "/work/a/x"


@pytest.mark.parametrize("command", ["true", "ls -la", "git status", "./x && ./y", "python3 -c 'print(1)'", "cat ./x"])
def test_a_line_that_names_no_script_asks_the_sandbox_nothing(cast, box, command) -> None:
    plain = proposed(cast, command)
    assert bound(plain) == (plain, [])
    assert box.asked == []


@pytest.mark.parametrize("effect", ["allow", "deny"])
def test_what_no_person_will_see_asks_the_sandbox_nothing(cast, box, monkeypatch, effect) -> None:
    monkeypatch.setattr(gate, "judge", lambda proposal: Verdict(effect, "rule", "why"))
    plain = proposed(cast, "./x")
    assert bound(plain) == (plain, [])
    assert box.asked == []
    assert bound(plain, is_asked=True)[0].script is not None


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/work/x", b"\x7fELF\0"), ("/work/x", b"\xff\xfe"), ("/work/x", b"a\0b"),
        ("/work/x", b"x" * (SCRIPT_BYTES + 1)), ("/tmp/x", TEXT), ("/usr/bin/x", TEXT), ("/workshop/x", TEXT),
        ("/work", TEXT), (f"/work{'/d' * 50}/x", TEXT),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_or_held_stays_flagged(cast, box, path, content) -> None:
    box.files["/work/x"] = (path, content)
    plain = proposed(cast, "./x")
    assert bound(plain) == (plain, [])


@pytest.mark.parametrize("error", [BoxGone("gone"), FileError("is_a_directory", "is", path="/work/x"), None])
def test_what_is_not_there_or_out_of_reach_stays_flagged(cast, box, error) -> None:
    box.files, box.error = {}, error
    plain = proposed(cast, "./x")
    assert bound(plain) == (plain, [])
    assert box.asked == ["/work/x"]


@pytest.mark.parametrize(
    ("command", "text", "flagged"),
    [
        ("./x", b"#!/work/.venv/bin/python\n", True),
        ("./x", b"#!/usr/bin/env ruby\n", True),  # not in this image: the home may have one
        ("./x", b"#!/usr/bin/env python3\n", False),
        ("./x", b"echo hi\n", False),
        ("ruby x", b"puts 1\n", True),
        ("python3 x", b"print(1)\n", False),
        ("perl x", b"#!/work/evil\n", True),  # perl obeys a first line that is not perl's
        ("perl x", b"#!/usr/bin/python3\n", False),
        ("perl x", b"#!/usr/bin/ruby\n", True),  # not in this image
        ("perl x", b" :#!/work/evil\n", True),
        ("perl x", b"#!/usr/bin/python3" + b" " * 120 + b"\n", True),
        ("ruby x", b"#!/usr/bin/python3\n", True),
        ("python3 x", b"#!/usr/bin/python3\n", False),
        ("perl x", b"print 1\n", False),
    ],
)
def test_what_is_read_by_code_of_the_workspace_is_bound_and_flagged(cast, box, command, text, flagged) -> None:
    box.files = {"/work/x": ("/work/x", text)}
    found, _ = bound(proposed(cast, command))
    assert found.script is not None
    assert (scripts.UNPINNED in found.flags) is flagged


def test_what_hides_in_its_text_is_flagged(cast, box) -> None:
    box.files["/work/x"] = ("/work/x", "echo a\u200b\n".encode())
    assert bound(proposed(cast, "./x"))[0].flags == ("network", "hidden_characters")


def test_no_loop_is_held_while_its_text_is_read(cast, box, monkeypatch) -> None:
    """The hub's is every sandbox's."""
    read = []

    def of(*asked):
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        read.append(asked)
        return ()

    monkeypatch.setattr(flagging, "of", of)
    monkeypatch.setattr(scripts, "reference", lambda content: of(content) or reference(content))
    assert bound(proposed(cast, "./x"))[1] == [TEXT]
    assert len(read) == 2


def test_of_a_plan_it_is_what_an_item_before_it_writes(cast, box) -> None:
    found, seen = bound(proposed(cast, "python3 ./x"), is_asked=True, made={"/work/x": b"print(2)\n"})
    assert found.script is not None
    assert (found.script["sha256"], seen) == (sha256(b"print(2)\n").hexdigest(), [b"print(2)\n"])
    assert box.asked == []


def test_of_a_plan_what_is_written_and_too_long_is_not_what_is_there_now(cast, box) -> None:
    plain = proposed(cast, "python3 ./x")
    assert bound(plain, is_asked=True, made={"/work/x": None}) == (plain, [])
    assert box.asked == []


@pytest.mark.parametrize(
    ("command", "cwd", "real", "line"),
    [
        ("python3 x.py 'a b'", "/work", "/work/x.py", "python3 x.py 'a b'"),
        ("./x", "/work/a", "/work/a/x", "./x"),
        ("python3 link.py 'a b'", "/work", "/work/x.py", "python3 /work/x.py 'a b'"),
        ("python3 ../x.py", "/work/a", "/work/x.py", "python3 /work/x.py"),
        ("python3 a/../x.py", "/work", "/work/x.py", "python3 /work/x.py"),
        ("./x", "/work/link", "/work/a/it's", "'/work/a/it'\"'\"'s'"),
        ("./x 2>&1", "/work/link", "/work/a/x", "/work/a/x 2>&1"),
        ("bash ./x 1>&2", "/work/link", "/work/a/x", "bash /work/a/x 1>&2"),
        ("bash >&2  -e  ./x \t2>&1 ./x\n", "/work/link", "/work/a/x", "bash >&2  -e  /work/a/x \t2>&1 ./x\n"),
        ("bash 2>&1 2 2", "/work/link", "/work/a/2", "bash 2>&1 /work/a/2 2"),
        ("\n\n./'a b'\"c\"\\ d ./x;", "/work/link", "/work/a/x", "\n\n/work/a/x ./x;"),
    ],
)
def test_a_name_that_somebody_could_turn_is_put_as_the_real_path(command, cwd, real, line) -> None:
    arguments = {"command": command, "cwd": cwd}
    assert act.command_line(arguments, {"path": real}) == [*act.SHELL, line]
    assert act.command_line(arguments) == [*act.SHELL, command]
    words = {"argv": ["bash", "link.sh", "$X"], "cwd": "/work"}
    assert act.command_line(words, {"path": "/work/x.sh"}) == ["bash", "/work/x.sh", "$X"]


def test_a_line_that_is_read_in_another_way_since_does_not_run(cast, box) -> None:
    """As after an update between the approval and the start."""
    with pytest.raises(FileError) as refused:
        act.command_line({"command": "x.py", "cwd": "/work"}, {"path": "/work/x.py"})
    assert refused.value.code == "script_changed"
    bound_to = {"path": "/work/x.py", "sha256": "0" * 64, "size": 1}
    _, after = stale(pending(cast.caller(cast.scout), "x.py", script=bound_to), box)
    assert (after.status, after.error and after.error["code"]) == ("superseded", "script_changed")


@pytest.fixture
def waiting(cast, box) -> Action:
    box.files = {"/work/x": ("/work/x", TEXT)}
    found, seen = bound(proposed(cast, "./x"))
    payloads.keep(payloads.hold(seen[0]))
    return pending(cast.caller(cast.scout), "./x", script=found.script)


def stale(action: Action, box: Box) -> tuple[bool, Action]:
    answer = async_to_sync(script_files.went_stale)(action, box)
    return answer, Action.objects.get(pk=action.pk)


def test_an_unchanged_script_starts(waiting, box) -> None:
    answer, after = stale(waiting, box)
    assert (answer, after.status) == (False, "pending")


@pytest.mark.parametrize("now", [("/work/x", TEXT + b"#"), ("/work/y", TEXT), None])
def test_a_script_that_changed_ends_it_superseded(waiting, box, now) -> None:
    box.files = {"/work/x": now} if now else {}
    answer, after = stale(waiting, box)
    assert (answer, after.status, after.executed) == (True, "superseded", False)
    outcome = after.outcome()
    assert outcome is not None
    assert (outcome["error"]["code"], outcome["error"]["path"]) == ("script_changed", "/work/x")
    assert outcome["may_retry"]


def test_out_of_reach_it_is_tried_again(waiting, box) -> None:
    box.error = BoxGone("gone")
    answer, after = stale(waiting, box)
    assert (answer, after.status) == (True, "pending")


def test_a_call_without_a_script_is_not_looked_at(cast, box) -> None:
    answer, _ = stale(pending(cast.caller(cast.scout), "true"), box)
    assert (answer, box.asked) == (False, [])


def test_made_again_it_joins_while_its_script_is_the_same(cast, waiting) -> None:
    caller = cast.caller(cast.scout)
    assert waiting.script is not None
    same = gate.submit(run(caller, "./x", script=waiting.script))
    assert isinstance(same, gate.Wait)
    assert (same.action_id, same.joined) == (waiting.pk, True)
    other = gate.submit(run(caller, "./x", script={**waiting.script, "sha256": "0" * 64}))
    assert isinstance(other, gate.Wait)
    assert (other.action_id != waiting.pk, other.joined) == (True, False)
    assert replace(run(caller, "./x"), script=waiting.script).digest() == waiting.digest
