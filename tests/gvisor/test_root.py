"""What an install is run as: root without a capability. It may change the system of its sandbox, and nothing above."""

import pytest

from sandboxes.engine import RunRequest
from tests.gvisor.engines import Collected, OnePass

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
