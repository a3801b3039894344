"""A script that a person approved: whatever runs beside it, those bytes run, and nobody changes them before it ends."""

import time
from hashlib import sha256
from textwrap import dedent

import pytest

from sandboxes.engine import RunRequest, Script, WriteRequest
from sandboxes.errors import BoxGone, FileError, SandboxError
from sandboxes.runner.jobs import RUNNING_COMMANDS

from .engines import Collected, OnePass, Ran
from .served import until

GOOD = b"#!/bin/bash\n# padding\necho approved\n"
EVIL = b"#!/bin/bash\n# padding\necho evil....\n"
WRITERS = {
    "in place": """
        file = open(path, "r+b")
        while True:
            for text in (evil, good):
                file.seek(0)
                file.write(text)
                file.flush()
    """,
    "opened anew": """
        while True:
            for text in (evil, good):
                with suppress(OSError): open(path, "wb").write(text)
    """,
    "by rename": """
        while True:
            for text in (evil, good):
                open(path + ".new", "wb").write(text)
                os.chmod(path + ".new", 0o755)
                with suppress(OSError): os.rename(path + ".new", path)
    """,
    "by folder": """
        folder = os.path.dirname(path)
        os.makedirs(folder + ".evil", exist_ok=True)
        open(folder + ".evil/x.sh", "wb").write(evil)
        os.chmod(folder + ".evil/x.sh", 0o755)
        while True:
            for old, new in (("", ".a"), (".evil", ""), ("", ".evil"), (".a", "")):
                with suppress(OSError): os.rename(folder + old, folder + new)
    """,
    "by link": """
        while True:
            with suppress(OSError):
                os.rename(path, path + ".a")
                os.symlink(path + ".evil", path)
            with suppress(OSError): os.unlink(path)
            with suppress(OSError): os.rename(path + ".a", path)
    """,
    "shared memory": """
        file = open(path, "r+b")
        seen = mmap.mmap(file.fileno(), 0)
        while True:
            seen[:] = evil
            seen[:] = good
    """,
}
TRIES = 60


def script(path, text=GOOD):
    return Script(path, sha256(text).hexdigest())


async def ran(box, pinned, *argv, action_id="", **changes):
    sink = Collected()
    request = RunRequest(argv=argv, timeout_s=60, script=pinned, **changes)
    result = await box.run(OnePass(box.sandbox_id, "run", action_id), request, sink)
    return Ran(result, bytes(sink.stdout), bytes(sink.stderr), sink.gaps)


async def tried(box, pinned, *argv, **changes):
    """None when it was refused as changed."""
    try:
        return await ran(box, pinned, *argv, **changes)
    except FileError as error:
        if error.code != "script_changed":
            raise
    return None


@pytest.mark.parametrize("way", WRITERS)
def test_no_other_bytes_than_those_approved_ever_run(bench, fresh_box, way):
    path = "/work/deep/job/x.sh"
    for name, text in ((path, GOOD), (f"{path}.evil", EVIL)):
        bench.write(fresh_box, name, text, mode=0o755)
    known = f"import mmap, os\nfrom contextlib import suppress\npath, good, evil = {path!r}, {GOOD!r}, {EVIL!r}\n"
    code = known + dedent(WRITERS[way])
    writer = bench.begin(bench.running(fresh_box, "python3", "-c", code, timeout_s=300))
    time.sleep(0.5)  # it has the file open before the first run holds it
    good = refused = 0
    for turn in range(TRIES):
        argv = (("bash", path), (path,), ("bash", "--noprofile", "--norc", "-c", "--", "./x.sh"))[turn % 3]
        cwd = "/work" if turn % 3 < 2 else "/work/deep/job"
        found = bench.do(tried(fresh_box, script(path), *argv, cwd=cwd))
        if found is None:
            refused += 1
        elif found.code == 0 or found.out:
            assert found.out == b"approved\n", found
            good += 1
    assert not writer.done(), writer.result().err
    print(f"{way}: {good} ran as approved, {refused} refused, of {TRIES}")
    assert good + refused > 0


def test_a_script_is_held_while_its_command_runs_and_let_go_of_after_it(bench, fresh_box):
    waiting = "import os, time\nwhile not os.path.exists('/work/go'): time.sleep(0.1)\n"
    path, text = "/work/a/b/x.py", f"{waiting}print(open(__file__).read()[:6])\n".encode()
    bench.write(fresh_box, path, text)
    running = bench.begin(ran(fresh_box, script(path, text), "python3", "b/x.py", cwd="/work/a"))
    until(lambda: bench.bash(fresh_box, f"chmod 644 {path}").code != 0)
    for attempt in (
        f"echo x >> {path}", f": > {path}", f"rm -f {path}", f"mv {path} {path}.x", "mv /work/a /work/c",
        "mv /work/a/b /work/a/c", f"chmod 600 {path}", f"umount {path}", f"cp /etc/passwd {path}",
        f"python3 -c 'import os; os.truncate(\"{path}\", 0)'", f"echo > /work/n; mv -f /work/n {path}",
    ):  # fmt: skip
        assert bench.bash(fresh_box, attempt).code != 0, attempt
        assert bench.read(fresh_box, path) == text, attempt
    with pytest.raises(FileError, match="runs it now"):
        bench.write(fresh_box, path, b"other")
    bench.bash(fresh_box, "touch /work/go")
    assert running.result(20).text == "import\n"
    after = bench.bash(
        fresh_box, f"echo more >> {path} && tail -c 5 {path} && stat -c '%a %U' {path} && mv /work/a /work/c"
    )
    assert (after.text, after.err) == ("more\n644 agent\n", b"")


def test_whoever_hears_of_its_end_can_change_it(bench, box):
    path = "/work/n/next.sh"
    for turn in range(15):
        text = f"echo {turn}\n".encode()
        bench.write(box, path, text)
        assert bench.do(ran(box, script(path, text), "bash", path)).text == f"{turn}\n"
        assert bench.bash(box, f"echo x >> {path}").code == 0


def test_it_is_held_for_what_its_command_has_left_running(bench, fresh_box):
    path, text = "/work/serve.sh", b"sleep 3 >/dev/null 2>&1 &\n"
    bench.write(fresh_box, path, text)
    assert bench.do(ran(fresh_box, script(path, text), "bash", path)).result.left_running
    assert bench.bash(fresh_box, f"echo x >> {path}").code != 0
    until(lambda: bench.bash(fresh_box, f"echo x >> {path}").code == 0)
    assert bench.read(fresh_box, path).endswith(b"x\n")


def test_what_changed_is_refused_and_nothing_ran(bench, box):
    path = "/work/other.sh"
    mark = "/work/ran"
    text = f"touch {mark}\n".encode()
    for turn in (
        f"echo '# x' >> {path}", f"rm {path}", f"rm {path}; mkdir {path}", f"rm {path}; ln -s {path}.s {path}",
        f"rm {path}; mkfifo {path}", f"chmod 0 {path}", f"head -c 300000 /dev/zero > {path}",
    ):  # fmt: skip
        bench.bash(box, f"rm -rf {path}")
        bench.write(box, path, text)
        bench.write(box, f"{path}.s", text)
        bench.bash(box, turn)
        with pytest.raises(FileError) as refused:
            bench.do(ran(box, script(path, text), "bash", path))
        assert refused.value.code == "script_changed", turn
        assert bench.bash(box, f"test -e {mark}").code == 1
    bench.bash(box, f"rm -rf {path}")


def test_asked_twice_it_runs_once_whatever_became_of_its_script(bench, box):
    path, text = "/work/once.sh", b"echo x >> /work/count; rm /work/once.sh 2>/dev/null || cat /work/count\n"
    bench.write(box, path, text)
    for _ in range(2):
        assert bench.do(ran(box, script(path, text), "bash", path, action_id="act_once")).text == "x\n"
        bench.bash(box, f"echo other > {path}")


def test_stopped_while_it_is_held_it_is_there_as_it_was_and_can_be_held_again(bench):
    box = bench.create()
    path, text = "/work/d/x.sh", b"sleep ${1:-0}; echo done\n"
    bench.write(box, path, text, mode=0o750)
    running = bench.begin(ran(box, script(path, text), "bash", path, "60"))
    until(lambda: bench.bash(box, f"chmod 750 {path}").code != 0)
    bench.do(bench.engine.set_down(box.sandbox_id, reason="idle"))
    assert isinstance(running.exception(20), BoxGone)
    box = bench.do(bench.engine.create(bench.spec(sandbox_id=box.sandbox_id), kept=True))
    assert bench.bash(box, f"stat -c '%a %U' {path}; mv /work/d /work/e; mv /work/e /work/d").text == "750 agent\n"
    assert bench.do(ran(box, script(path, text), path)).text == "done\n"
    assert bench.bash(box, f"echo x >> {path}").code == 0
    bench.do(bench.engine.remove(box.container_id))


def test_two_runs_of_one_script_share_it(bench, fresh_box):
    path, text = "/work/two.sh", b"sleep $1; echo done\n"
    bench.write(fresh_box, path, text)
    both = [bench.begin(ran(fresh_box, script(path, text), "bash", path, each)) for each in ("1", "3")]
    assert both[0].result(20).text == "done\n"
    assert bench.bash(fresh_box, f"echo x >> {path}").code != 0
    assert both[1].result(20).text == "done\n"
    assert bench.bash(fresh_box, f"echo x >> {path}").code == 0


def test_one_that_finds_no_room_for_its_command_is_let_go_of_at_once(bench, fresh_box):
    path, text = "/work/late.sh", b"echo late\n"
    bench.write(fresh_box, path, text)
    sleeping = [bench.begin(bench.running(fresh_box, "sleep", "300")) for _ in range(RUNNING_COMMANDS)]
    until(lambda: _has_no_room(bench, fresh_box))
    with pytest.raises(SandboxError, match="commands run in this sandbox"):
        bench.do(ran(fresh_box, script(path, text), "bash", path))
    bench.write(fresh_box, path, b"other")
    assert not any(each.done() for each in sleeping)


def _has_no_room(bench, box):
    try:
        bench.bash(box, "true")
    except SandboxError as error:
        return error.code == "too_many_commands"
    return False


def test_one_outside_what_can_be_held_is_refused(bench, box):
    bench.bash(box, "echo echo x > /tmp/x.sh")
    with pytest.raises(FileError, match="bound"):
        bench.do(ran(box, script("/tmp/x.sh", b"echo x\n"), "bash", "/tmp/x.sh"))


def test_a_protected_script_stays_sealed_after_its_run(bench, fresh_box):
    path, text = "/work/.env", b"echo secret\n"

    async def blocks():
        yield text

    asked = WriteRequest(path=path, size=len(text), seal=True)
    assert bench.do(fresh_box.write(OnePass(fresh_box.sandbox_id, "write"), asked, blocks())).sealed
    assert bench.do(ran(fresh_box, script(path, text), "bash", path)).text == "secret\n"
    assert bench.bash(fresh_box, f"echo x >> {path}").code != 0
    assert bench.do(fresh_box.unseal(OnePass(fresh_box.sandbox_id, "unseal"), path)) == (path, True)
    assert bench.bash(fresh_box, f"echo x >> {path}").code == 0
