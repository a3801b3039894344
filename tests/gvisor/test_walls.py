"""What a command may not do, tried from inside."""

import pytest


def test_it_is_gvisor(bench, box):
    assert "Starting gVisor" in bench.bash(box, "dmesg").text


def test_commands_hold_no_capability_and_no_way_to_one(bench, box):
    caps = bench.bash(box, "grep ^Cap /proc/self/status").text.split()
    assert set(caps[1::2]) == {"0000000000000000"}
    assert bench.bash(box, "find / -xdev -perm /6000 -type f 2>/dev/null").out == b""
    for way in (
        "su -c id",
        "unshare -r mount -t tmpfs x /mnt",
        "mount -t tmpfs x /mnt",
        "chroot / true",
        "umount /work",
    ):
        assert bench.bash(box, way).code != 0, way


@pytest.mark.parametrize("number", ["TERM", "KILL", "STOP", "INT", "USR1"])
def test_agent_cannot_signal_the_runner_or_a_keeper(bench, box, number):
    ran = bench.bash(box, f"kill -{number} 1; pgrep -x keeper | xargs -r kill -{number}; echo alive")
    assert b"not permitted" in ran.err
    assert bench.bash(box, "echo still").text == "still\n"


def test_agent_cannot_read_the_runner(bench, box):
    for path in ("environ", "fd", "maps", "mem", "cmdline", "root", "cwd", "task/1/environ"):
        ran = bench.bash(box, f"cat /proc/1/{path} || ls /proc/1/{path}")
        assert (ran.code != 0, ran.out) == (True, b""), path
    attach = "import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))"
    assert bench.run(box, "python3", "-c", attach).text == "-1\n"


def test_keepers_hold_nothing_to_read_or_write(bench, box):
    ran = bench.bash(
        box,
        "for p in $(pgrep -x keeper); do tr '\\0' '\\n' < /proc/$p/environ;"
        " for fd in 0 1 2 3 4; do [ $(readlink /proc/$p/fd/$fd) != /dev/null ] &&"
        " (echo x > /proc/$p/fd/$fd) 2>/dev/null && echo wrote $p $fd; done;"
        " head -c1 /proc/$p/mem; done 2>/dev/null; true",
    )
    assert ran.out == b""


def test_other_commands_pipes_belong_to_the_same_user_but_roots_do_not(bench, box):
    ran = bench.bash(
        box,
        "ls -l /proc/*/fd 2>/dev/null | grep -c host: ; for f in /proc/[0-9]*/fd/*; do "
        "case $(readlink $f) in host:*) (echo x > $f) 2>/dev/null && echo wrote $f;; esac; done",
    )
    assert b"wrote" not in ran.out


def test_limits_are_set(bench, box):
    ran = bench.bash(box, "ulimit -u; ulimit -n; ulimit -c; ulimit -Hu; ulimit -Hn; ulimit -Hc; umask")
    assert ran.text.split() == ["200", "4096", "0", "200", "4096", "0", "0022"]


def test_root_file_system_cannot_be_written(bench, box):
    ran = bench.bash(
        box,
        "for d in / /etc /usr/bin /opt /opt/sandgate /var /proc /sys /dev /home /mnt; do"
        " (echo x > $d/made) 2>/dev/null && echo wrote $d; done; true",
    )
    assert ran.out == b""


def test_places_that_can_be_written(bench, box):
    ran = bench.bash(box, "for d in /work ~ /tmp /var/tmp $TMPDIR /dev/shm; do echo x > $d/made && rm $d/made; done")
    assert (ran.code, ran.err) == (0, b"")


def test_there_is_no_network(bench, box):
    code = "import socket; s = socket.socket(); s.settimeout(3); print(s.connect_ex(('192.0.2.1', 80)))"
    assert bench.run(box, "python3", "-c", code).text != "0\n"
    assert bench.bash(box, "ls /sys/class/net; cat /proc/net/dev | tail -n +3 | cut -d: -f1").text.split() in (
        ["lo"],
        ["lo", "lo"],
    )
    raw = "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"
    assert b"not permitted" in bench.run(box, "python3", "-c", raw).err.lower()


def test_nothing_of_the_host_is_seen(bench, box):
    ran = bench.bash(
        box, "cat /proc/mounts /proc/self/mountinfo; ls -la / /run /var/run; find / -xdev -name '*docker*.sock'"
    )
    for word in ("docker.sock", "lowerdir", str(bench.config.var), bench.config.instance):
        assert word not in ran.text


def test_fork_bomb_harms_only_itself(bench, fresh_box):
    bench.bash(fresh_box, "bomb() { bomb | bomb & }; bomb; sleep 20", timeout_s=6)
    assert bench.bash(fresh_box, "echo alive").text == "alive\n"
    assert int(bench.bash(fresh_box, "ps -eo comm | grep -cx bash").text) < 3


def test_memory_hog_is_told_as_out_of_memory(bench, fresh_box):
    ran = bench.run(fresh_box, "python3", "-c", "b = []\nwhile True: b.append(bytearray(1 << 24))", timeout_s=40)
    assert ran.code != 0
    assert ran.result.reason == "oom"
    assert bench.bash(fresh_box, "echo alive").text == "alive\n"


def test_many_open_files_stop_at_the_limit(bench, box):
    code = "import os\ntry:\n  while True: os.open('/dev/null', 0)\nexcept OSError as e: print(e.errno)"
    assert bench.run(box, "python3", "-c", code).text == "24\n"
    assert bench.bash(box, "echo alive").text == "alive\n"
