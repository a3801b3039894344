"""What an install is run as: root without a capability. It may change the system of its sandbox, and nothing above."""

import json

import pytest

from sandboxes.engine import RunRequest, roots
from sandboxes.errors import BoxGone, NoRuntime
from tests.gvisor.engines import Collected, OnePass
from tests.gvisor.test_escape import CALLS

TRIES = {
    "mount": "mount -t tmpfs none /mnt",
    "chown": "touch /etc/x && chown agent /etc/x",
    "another user": "setpriv --reuid 1000 --clear-groups true",
    "a user namespace": "unshare -U true",
    "a device": "mknod /dev/x b 8 0 && head -c 1 /dev/x",
    "the runner's memory": "head -c 1 /proc/1/mem",
    "the user's files": "touch /work/x",
    "a raw socket": "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
    "tracing the runner": "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) != 0)'",
    "the runner's code": "touch /opt/sandgate/x",
}


@pytest.fixture(scope="module")
def open_box(bench):
    return bench.create(writable_root=True, env={"FROM_SANDBOX": "yes"})


def as_root(bench, box, *argv, **more):
    request = RunRequest(argv=argv, timeout_s=30, cwd="/", as_root=True, **more)
    sink = Collected()
    ended = bench.do(box.run(OnePass(box.sandbox_id, "install"), request, sink))
    return ended.exit_code, sink.stdout.decode() + sink.stderr.decode()


def test_it_is_root_with_no_capability_and_none_of_the_sandboxs_variables(bench, open_box):
    code, text = as_root(
        bench, open_box, "sh", "-c", "id -u; grep ^Cap /proc/self/status; echo $FROM_SANDBOX; touch /usr/x"
    )
    lines = text.split("\n")
    assert (code, lines[0], lines[-2]) == (0, "0", "")
    assert {line.split()[1].strip("0") for line in lines if line.startswith("Cap")} == {""}
    assert bench.bash(open_box, "stat -c %U /usr/x; rm -f /usr/x || echo kept").text == "root\nkept\n"


@pytest.mark.parametrize("what", TRIES)
def test_it_cannot_have(bench, open_box, what):
    code, text = as_root(bench, open_box, "sh", "-c", TRIES[what])
    assert code != 0, text


SIGNALS = (
    CALLS
    + """
import time
mine = {os.getpid(), os.getppid()}
threads = lambda pid: [int(name) for name in os.listdir(f"/proc/{pid}/task")] if pid != 1 else [1]
user = lambda pid: [line for line in open(f"/proc/{pid}/status") if line.startswith("Uid")][0].split()[1]
others = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in mine]
keepers = [pid for pid in others if pid == 1 or user(pid) == "65533"]
reached = []
for pid in [*keepers, *range(2, 12)]:
    piece = (ctypes.c_ulong * 2)(ctypes.addressof(memory), 16)
    if pid in mine or (pid not in keepers and os.path.exists(f"/proc/{pid}")):
        continue
    for tid in [pid] if pid not in keepers else threads(pid):
        ways = {
            "attach": call("ptrace", 16, tid, 0, 0), "seize": call("ptrace", 0x4206, tid, 0, 0),
            "read": call("process_vm_readv", tid, piece, 1, piece, 1, 0),
            "write": call("process_vm_writev", tid, piece, 1, piece, 1, 0),
            "kill": call("kill", tid, 9), "stop": call("kill", tid, 19),
            "group": "left for the next test" if tid == 1 else call("kill", -tid, 9),
            "tgkill of 1": call((234, 131), 1, tid, 9), "tgkill": call((234, 131), pid, tid, 9),
            "tkill": call((200, 130), tid, 9), "queue": call((129, 138), tid, 10, memory),
            "tgqueue": call((297, 240), 1, tid, 10, memory), "pidfd": call((434, 434), tid, 0),
            "limits": call("prlimit", tid, 7, struct.pack("2Q", 1, 1), None),
        }
        reached += [f"{pid}/{tid} {way}" for way, came in ways.items() if came == "done"]
    # 0 to 2 are the input and output of a command, also of the next one, whose keeper may wait already: root's pipes.
    for number in range(3, 64):
        for flags in (os.O_RDONLY, os.O_WRONLY):
            try:
                fd = os.open(f"/proc/{pid}/fd/{number}", flags | os.O_NONBLOCK)
            except OSError:
                continue
            if os.readlink(f"/proc/self/fd/{fd}") != "/dev/null":
                reached.append(f"{pid} fd {number}")
call("setpriority", 0, 1, 19)
call("kill", 0, 0)
if sys.argv[1:]:
    call("kill", -1, 9)
tell(keepers=len(keepers), first=min(keepers), reached=reached)
"""
)


def test_it_reaches_neither_the_runner_nor_any_keeper(bench, open_box):
    """All of them are root by their effective user, and all threads of them count: of files, of the guard."""
    bench.write(open_box, "/work/file", b"so that there is a thread for files")
    beside = bench.begin(bench.bashing(open_box, "sleep 3; echo beside"))
    code, text = as_root(bench, open_box, "python3", "-c", SIGNALS)
    seen = json.loads(text.splitlines()[-1])
    assert (code, seen["first"], seen["reached"]) == (0, 1, [])
    assert seen["keepers"] >= 3, "PID 1, the nursery, at least one keeper"
    assert beside.result(timeout=60).text == "beside\n"
    assert bench.bash(open_box, "echo alive").text == "alive\n"


def test_what_kills_all_that_it_may_kills_itself_alone(bench, open_box):
    boot, beside = open_box.boot, bench.begin(bench.bashing(open_box, "sleep 3; echo beside"))
    for line in ("kill -9 -1", "kill -TERM -- -1; sleep 0.2; kill -STOP -1; kill -9 0", "kill -9 1 2 3 4 5 6 7 8 9"):
        as_root(bench, open_box, "sh", "-c", line)
    assert beside.result(timeout=60).text == "beside\n"
    assert (bench.bash(open_box, "echo alive").text, open_box.boot) == ("alive\n", boot)
    assert as_root(bench, open_box, "id", "-u") == (0, "0\n")


def test_a_pass_for_a_command_is_none_for_root(bench, open_box):
    from approvals.errors import PassSpent

    request = RunRequest(argv=["id"], timeout_s=5, as_root=True)
    with pytest.raises(PassSpent):
        bench.do(open_box.run(OnePass(open_box.sandbox_id, "run"), request, Collected()))


def test_what_it_leaves_running_is_stopped_with_it(bench, open_box):
    request = RunRequest(argv=["sh", "-c", "setsid sleep 600 & echo left"], timeout_s=30, cwd="/", as_root=True)
    ended = bench.do(open_box.run(OnePass(open_box.sandbox_id, "install", "act_left"), request, Collected()))
    assert ended.left_running
    bench.do(open_box.stop("act_left"))
    assert bench.bash(open_box, "pgrep -x sleep || echo none").text == "none\n"


def test_the_user_finds_nothing_there_that_is_not_capped(bench, open_box):
    """What is on the root itself has no limit but the host's disk."""
    found = bench.bash(open_box, "find / -xdev -writable ! -type l 2>/dev/null; df --output=source,size / | tail -1")
    on_root = {"/tmp", "/var/tmp", "/dev/shm"}  # mounts of their own, whatever -xdev makes of them
    assert set(found.text.split("\n")[:-2]) <= on_root | {"/work", "/home/agent"}, found.text


def test_the_users_commands_are_no_nearer_to_root_there(bench, open_box):
    as_root(bench, open_box, "sh", "-c", "cp /usr/bin/id /usr/bin/id2 && chmod u+s /usr/bin/id2")
    assert bench.bash(open_box, "id2 -u; cat /etc/shadow 2>&1 | head -1").text.startswith(
        "1000\ncat: /etc/shadow: Perm"
    )


def test_who_writes_more_to_the_root_than_its_disk_may_hold_is_ended_and_told_why(bench):
    """The user's own disk is another one; the neighbour, with as much on it, goes on."""
    full, neighbour = bench.create(writable_root=True, disk_mb=64), bench.create(writable_root=True, disk_mb=64)
    lost = []
    full.on_lost = lost.append
    assert as_root(bench, neighbour, "sh", "-c", "head -c 40M /dev/urandom > /usr/some")[0] == 0
    assert bench.bash(neighbour, "head -c 40M /dev/urandom > /work/some").code == 0
    with pytest.raises(BoxGone, match="system grew") as told:
        as_root(bench, full, "sh", "-c", "head -c 100M /dev/urandom > /usr/much; sleep 20; echo not ended")
    assert (told.value.reason, lost) == ("disk_limit", ["disk_limit"])
    assert bench.bash(neighbour, "sleep 2; echo alive").text == "alive\n"
    for box in (full, neighbour):
        bench.do(bench.engine.remove(box.container_id))


def test_one_found_again_by_a_new_process_is_looked_at_too(bench):
    box = bench.create(writable_root=True, disk_mb=64)
    again = bench.do(bench.engine.attach(box.sandbox_id, box.container_id, env={}))
    with pytest.raises(BoxGone) as told:
        as_root(bench, again, "sh", "-c", "head -c 100M /dev/urandom > /usr/much; sleep 20")
    assert told.value.reason == "disk_limit"
    bench.do(bench.engine.remove(box.container_id))


def test_where_it_cannot_be_looked_at_none_with_a_writable_root_starts(bench, monkeypatch):
    before = bench.do(bench.engine.found())
    monkeypatch.setattr(roots.os.path, "isdir", lambda _: False)
    with pytest.raises(NoRuntime, match="writable_root"):
        bench.create(writable_root=True)
    monkeypatch.undo()
    assert bench.do(bench.engine.found()) == before
