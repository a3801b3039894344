"""Edits where they are made: each case of the file tools, and writers that do not wait for anybody."""

import base64
import json
import textwrap
from typing import Any

import pytest

from sandboxes.engine import EditRequest, RunRequest, WriteRequest
from sandboxes.errors import FileError
from tests.file_cases import Came, ask, cases, check, content, laid

from .engines import Collected, OnePass
from .racing import WRITERS, race

pytestmark = pytest.mark.gvisor

LAY = """
    import base64, json, os, sys
    for root, setup in json.load(open("/work/setups")).items():
        os.makedirs(root)
        os.chdir(root)
        for path, data in setup["files"].items():
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            open(path, "wb").write(base64.b64decode(data))
        for path, mode in setup.get("modes", {}).items():
            os.chmod(path, int(mode, 8))
        for path, target in setup.get("symlinks", {}).items():
            os.symlink(target, path)
        for path, target in setup.get("hardlinks", {}).items():
            os.link(target, path)
        for path in setup.get("fifos", []):
            os.mkfifo(path)
"""
SEE = """
    import base64, json, os, stat, sys
    found = {}
    for folder, _, names in os.walk(sys.argv[1]):
        for name in names:
            path = os.path.join(folder, name)
            known = os.lstat(path)
            kind = "link" if stat.S_ISLNK(known.st_mode) else "file" if stat.S_ISREG(known.st_mode) else "other"
            data = os.readlink(path).encode() if kind == "link" else open(path, "rb").read() if kind == "file" else b""
            mode = known.st_mode & 0o7777 if kind == "file" else 0
            found[os.path.relpath(path, sys.argv[1])] = [base64.b64encode(data).decode(), mode, kind]
    print(json.dumps(found))
"""


def python(bench, box, code: str, *words: str, **more: Any) -> str:
    ran = bench.run(box, "python3", "-c", textwrap.dedent(code), *words, **more)
    assert ran.code == 0, ran.err
    return str(ran.text)


def view(bench, box, path: str, **part: Any) -> dict[str, Any]:
    return bench.do(box.view(OnePass(box.sandbox_id, "read"), path, **part))


def edit(bench, box, path: str, version: str, edits: list[Any], **seen: str) -> dict[str, Any]:
    request = EditRequest(path, version, edits, **seen)
    return dict(bench.do(box.edit(OnePass(box.sandbox_id, "edit"), request)).report)


def write(bench, box, path: str, data: bytes, version: str | None, mode: int | None = None) -> Any:
    async def blocks():
        yield data

    request = WriteRequest(path, len(data), mode=mode, version=version)
    return bench.do(box.write(OnePass(box.sandbox_id, "write"), request, blocks()))


def numbers(seen: dict[str, Any], do: str, number: int, **more: Any) -> list[Any]:
    tag = next(line[1] for line in seen["lines"] if line[0] == number)
    return [{"do": do, "from": f"{number}{tag}", **more}]


class There:
    """One case's files, in the sandbox. `before`: as they were when the last ask was made."""

    def __init__(self, bench, box, root: str, before: dict[str, Any]) -> None:
        self.bench, self.box, self.root = bench, box, root
        self.before, self._has_changed = before, False

    def view(self, path: str, **part: Any) -> Came:
        return self._came(lambda: view(self.bench, self.box, f"{self.root}/{path}", **part))

    def edit(self, path: str, version: str, edits: list[Any]) -> Came:
        if self._has_changed:
            self.before = snapshot(self.bench, self.box, self.root)
        self._has_changed = True
        return self._came(lambda: edit(self.bench, self.box, f"{self.root}/{path}", version, edits))

    def create(self, path: str, data: bytes) -> Came:
        return self._came(lambda: write(self.bench, self.box, f"{self.root}/{path}", data, "").report)

    def _came(self, call: Any) -> Came:
        try:
            return Came(dict(call()))
        except FileError as error:
            return Came({}, error.code, error.detail, error.more.get("lines", []), error.more.get("version", ""))

    def step(self, step: dict[str, Any]) -> None:
        self._has_changed = True
        ((what, files),) = step.items()
        if what == "delete":
            self.bench.run(self.box, "rm", f"{self.root}/{files}")
        elif what == "keep_mtime":
            self.bench.run(self.box, "touch", "-r", "/work/setups", f"{self.root}/{files}")
        else:
            for path, text in files.items():
                self.bench.write(self.box, f"{self.root}/{path}", content(text))


def snapshot(bench, box, root: str) -> dict[str, Any]:
    found = json.loads(python(bench, box, SEE, root))
    return {path: (base64.b64decode(data), mode, kind) for path, (data, mode, kind) in found.items()}


def of(case: dict[str, Any], files: dict[str, Any]) -> dict[str, Any]:
    """Those of one case, by their paths in it."""
    start = f"{case['id']}/"
    return {path.removeprefix(start): found for path, found in files.items() if path.startswith(start)}


def test_each_case_as_on_any_machine(bench, box) -> None:
    """Those that race the tool between two of its steps are shown with the steps themselves; here, by writers at full
    speed."""
    here = [case for case in cases("edit", "read") if "race" not in case["call"]]
    setups = {}
    for case in here:
        files = {path: base64.b64encode(data).decode() for path, data in laid(case["setup"]).items()}
        setups[f"/work/cases/{case['id']}"] = case["setup"] | {"files": files}
    bench.write(box, "/work/setups", json.dumps(setups).encode())
    python(bench, box, LAY)
    before, came = snapshot(bench, box, "/work/cases"), []
    for case in here:
        there = There(bench, box, f"/work/cases/{case['id']}", of(case, before))
        came.append((case, ask(case, there), there.before))
    after = snapshot(bench, box, "/work/cases")
    for case, told, was in came:
        check(case, told, was, of(case, after))
    assert len(here) == 87
    bench.bash(box, "rm -r /work/cases /work/setups")


@pytest.mark.parametrize("way", WRITERS)
def test_nothing_is_lost_that_a_writer_at_full_speed_wrote(bench, box, way: str) -> None:
    """`tests/bench/edits.py` does it a thousand times."""
    found = race(bench, box, way, f"/work/{way.split()[0]}.txt", 25)
    print(
        f"{way}: {len(found.held_ms)} edits, {found.refused} refused, {found.lost} of {len(found.written)} notes lost"
    )
    assert found.there == found.written
    assert len(found.written) > 20


def test_a_command_changed_the_file_meanwhile(bench, box) -> None:
    """Elsewhere: carried over, and said. At the line itself: refused, with what is needed to go on."""
    bench.write(box, "/work/a.py", b"import os\n\ndef f():\n    return 1\n")
    seen = view(bench, box, "/work/a.py")
    bench.bash(box, "sed -i '1i import sys' a.py")
    told = edit(bench, box, "/work/a.py", seen["version"], numbers(seen, "replace", 4, lines=["    return 2"]))
    assert (told["carried"], told["lines"][-1][0]) == (True, 5)
    bench.bash(box, "sed -i 's/return 2/return 3/' a.py")
    with pytest.raises(FileError) as refused:
        edit(bench, box, "/work/a.py", told["version"], numbers(told, "replace", 5, lines=["    return 4"]))
    error = refused.value
    assert error.code == "stale_edit"
    assert error.detail.startswith("Nothing was written. /work/a.py: ")
    assert error.more["lines"][-1][2] == "    return 3"
    fresh = {"lines": error.more["lines"]}
    edit(bench, box, "/work/a.py", error.more["version"], numbers(fresh, "replace", 5, lines=["    return 4"]))
    assert bench.read(box, "/work/a.py") == b"import sys\nimport os\n\ndef f():\n    return 4\n"


def test_asked_twice_it_is_done_once(bench, box) -> None:
    bench.write(box, "/work/twice", b"one\n")
    seen = view(bench, box, "/work/twice")
    request = EditRequest("/work/twice", seen["version"], numbers(seen, "insert_after", 1, lines=["two"]))
    action = OnePass(box.sandbox_id, "edit").action_id
    first, again = (bench.do(box.edit(OnePass(box.sandbox_id, "edit", action), request)) for _ in range(2))
    assert first == again
    found = bench.do(box.resume(OnePass(box.sandbox_id, "edit", action), sink=None))
    assert found == first
    assert bench.read(box, "/work/twice") == b"one\ntwo\n"


def test_a_draft_is_what_its_edit_does(bench, box) -> None:
    bench.write(box, "/work/drafted", b"one\ntwo\n", 0o640)
    seen = view(bench, box, "/work/drafted")
    edits = numbers(seen, "delete", 1)
    draft = bench.do(box.draft(EditRequest("/work/drafted", seen["version"], edits)))
    assert (draft.old, draft.new, draft.mode, draft.changed) == (b"one\ntwo\n", b"two\n", 0o640, True)
    assert bench.read(box, "/work/drafted") == draft.old
    edit(bench, box, "/work/drafted", seen["version"], edits, base=draft.sha256, becomes=draft.becomes)
    assert bench.read(box, "/work/drafted") == draft.new


def test_a_write_by_version(bench, box) -> None:
    told = write(bench, box, "/work/v/new", b"one\n", "", 0o755).report
    with pytest.raises(FileError, match="read it, and send its version"):
        write(bench, box, "/work/v/new", b"two\n", "")
    bench.bash(box, "echo three > v/new")
    with pytest.raises(FileError) as refused:
        write(bench, box, "/work/v/new", b"two\n", told["version"])
    assert (refused.value.code, refused.value.more["lines"][0][2]) == ("stale_edit", "three")
    told = write(bench, box, "/work/v/new", b"two\n", refused.value.more["version"]).report
    assert told["diff"].split("\n")[1:] == ["-three", "+two"]
    assert bench.bash(box, "cat v/new; stat -c %a v/new; ls -A v").text == "two\n755\nnew\n"


RESTLESS = {
    "threads": "from threading import Thread as T\nfor _ in 'abcd': T(target=lambda: sum(iter(int, 1))).start()",
    "programs started one after the other": "import subprocess\nwhile True: subprocess.run(['true'])",
    "forks": "import os\nwhile True:\n if os.fork() == 0: os._exit(0)\n os.wait()",
    "who wakes others": "import os\npid = os.fork() or os.getppid()\nwhile True: os.kill(pid, 18)",
}


@pytest.mark.parametrize("what", RESTLESS)
def test_all_stands_still_for_an_edit_and_goes_on(bench, box, what: str) -> None:
    bench.write(box, "/work/still", b"0\n")
    command = bench.begin(bench.running(box, "python3", "-c", RESTLESS[what], action_id="act_restless"))
    held = []
    for number in range(1, 11):
        seen = view(bench, box, "/work/still")
        request = EditRequest("/work/still", seen["version"], numbers(seen, "replace", 1, lines=[str(number)]))
        held.append(bench.do(box.edit(OnePass(box.sandbox_id, "edit"), request)).held_us / 1000)
    print(f"{what}: held still for {sorted(held)[5]:.1f} ms, at most {max(held):.1f}")
    assert bench.bash(box, "cat still; grep -l '^State:.T' /proc/[0-9]*/status").text == "10\n"
    bench.do(box.stop("act_restless"))
    assert command.result(30).result.stopped


def test_what_was_stopped_before_an_edit_stays_so_and_what_an_install_runs_stands_still_too(bench, box) -> None:
    bench.write(box, "/work/stopped", b"0\n")
    stops = "sleep 300 & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; wait"
    sleeps = bench.begin(bench.bashing(box, stops, action_id="act_sleeps"))
    root = RunRequest(["sleep", "300"], timeout_s=60, as_root=True)
    install = bench.begin(box.run(OnePass(box.sandbox_id, "install", "act_install"), root, Collected()))
    states = "ps -o state=,user= -C sleep | sort"
    while bench.bash(box, states).text.split() != (both := ["S", "root", "T", "agent"]):
        assert not any(command.done() for command in (sleeps, install))
    seen = view(bench, box, "/work/stopped")
    edit(bench, box, "/work/stopped", seen["version"], numbers(seen, "replace", 1, lines=["1"]))
    assert bench.bash(box, states).text.split() == both
    for each, command in (("act_sleeps", sleeps), ("act_install", install)):
        bench.do(box.stop(each))
        command.result(30)


def test_a_page_of_a_large_file_takes_no_memory_for_the_rest(bench) -> None:
    """200 MB in a sandbox of 96 MB: one that held them would be ended."""
    box = bench.create(memory_mb=96, disk_mb=512)
    bench.bash(box, "yes 'a line of forty bytes, give or take a few' | head -c 200000000 > large; echo end >> large")
    count = int(bench.bash(box, "wc -l < large").text)
    seen = view(bench, box, "/work/large", offset=count - 1)
    assert (seen["size"], seen["line_count"], seen["to"]) == (200_000_004, count, count)
    assert seen["version"] == bench.bash(box, "sha256sum large").text[:12]
    with pytest.raises(FileError) as refused:
        edit(bench, box, "/work/large", seen["version"], numbers(seen, "delete", count))
    assert (refused.value.code, "use a command" in refused.value.detail) == ("too_large", True)
    assert bench.bash(box, "echo lives").text == "lives\n"


@pytest.mark.parametrize("folder", ["/work", "/home/agent", "/tmp", "/var/tmp", "/dev/shm"])
def test_files_are_made_and_edited_wherever_the_user_may_write(bench, box, folder: str) -> None:
    path = f"{folder}/made here"
    told = write(bench, box, path, b"one\ntwo\n", "").report
    told = edit(bench, box, path, told["version"], numbers(told, "replace", 1, lines=["ONE"]))
    write(bench, box, path, b"three\n", told["version"])
    assert bench.bash(box, f"cat '{path}'; stat -c %U:%a '{path}'; rm '{path}'").text == "three\nagent:644\n"


@pytest.mark.parametrize("path", ["/etc/passwd", "/usr/bin/rg"])
def test_what_the_user_may_not_write_is_not_edited(bench, box, path: str) -> None:
    with pytest.raises(FileError) as refused:
        edit(bench, box, path, "0123456789ab", [{"do": "append", "lines": ["x"]}])
    assert refused.value.code == "permission_denied_in_sandbox"


HELD_ODDLY = {
    "by a thread": """
        import ctypes, os, threading
        def hold():
            ctypes.CDLL(None).unshare(0x400)  # CLONE_FILES
            go(os.open("/work/odd", os.O_WRONLY))
        thread = threading.Thread(target=hold)
        thread.start()
        thread.join()
    """,
    "in a mapping": """
        import ctypes, mmap, os
        fd, libc = os.open("/work/odd", os.O_RDWR), ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        at = libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        os.close(fd)
        go(lambda: ctypes.memmove(at, b"theirs", 6))
    """,
    "by its name": """
        import os
        go(f"/proc/self/fd/{os.open('/work/odd', os.O_PATH)}")
    """,
}
HOLDS = """
import os, time
def go(held):
    open("/work/holds", "w").close()
    while os.path.exists("/work/holds"): time.sleep(0.01)
    if callable(held): held()
    elif isinstance(held, int): os.pwrite(held, b"theirs", 0)
    else: os.write(os.open(held, os.O_WRONLY), b"theirs")
"""


@pytest.mark.parametrize("how", HELD_ODDLY)
def test_what_is_written_later_by_somebody_who_held_the_file_all_along_is_not_lost(bench, box, how: str) -> None:
    bench.write(box, "/work/odd", b"before\nkept\n")
    code = HOLDS + textwrap.dedent(HELD_ODDLY[how])
    command = bench.begin(bench.running(box, "python3", "-c", code))
    while bench.bash(box, "test -e holds").code:
        assert not command.done(), command.result()
    seen = view(bench, box, "/work/odd")
    edit(bench, box, "/work/odd", seen["version"], numbers(seen, "replace", 2, lines=["mine"]))
    bench.bash(box, "rm holds")
    ran = command.result(30)
    assert ran.code == 0, ran.err
    assert bench.read(box, "/work/odd") == b"theirs\nmine\n"
