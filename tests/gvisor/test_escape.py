"""Ways out of a sandbox or up in it, each tried from inside as a command could. What is here must fail."""

import json

import pytest

from sandboxes.engine import Refusal
from sandboxes.errors import FileError
from tests.gvisor.engines import Bench

CALLS = """
import ctypes, errno, json, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
text, memory = ctypes.c_char_p, ctypes.create_string_buffer(4096)

def call(name, *args):
    ctypes.set_errno(0)
    asked = getattr(libc, name) if isinstance(name, str) else lambda *rest: libc.syscall(name[0 if X86 else 1], *rest)
    made = asked(*[ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args])
    return "done" if made != -1 else errno.errorcode.get(ctypes.get_errno(), "?")

def tell(**seen):
    print(json.dumps(seen))
"""
REFUSED = {"EPERM", "EACCES", "ENOSYS", "ENODEV", "EINVAL", "ENOTSUP", "EAFNOSUPPORT", "ESOCKTNOSUPPORT", "ENXIO"}


def tried(bench, box, script):
    """What each way in `script` came to, by name."""
    ran = bench.run(box, "python3", "-c", CALLS + script)
    assert ran.code == 0, ran.err.decode()
    return json.loads(ran.text)


def test_the_machine_cannot_be_changed(bench, box):
    seen = tried(
        bench,
        box,
        """
tell(
    mount=call("mount", text(b"x"), text(b"/tmp"), text(b"tmpfs"), 0, None),
    bind=call("mount", text(b"/tmp"), text(b"/etc"), None, 4096, None),
    remount=call("mount", None, text(b"/"), None, 32, None),
    umount=call("umount2", text(b"/proc/1"), 2),
    proc_again=call("mount", text(b"p"), text(b"/tmp"), text(b"proc"), 0, None),
    pivot=call((155, 41), text(b"/tmp"), text(b"/tmp")),
    chroot=call("chroot", text(b"/tmp")),
    hostname=call("sethostname", text(b"evil"), 4),
    domainname=call("setdomainname", text(b"evil"), 4),
    reboot=call("reboot", 0x01234567),
    kexec=call((246, 104), 0, 0, None, 0),
    module=call((175, 105), memory, 0, memory),
    delete_module=call((176, 106), memory, 0),
    bpf=call((321, 280), 0, memory, 64),
    perf=call((298, 241), memory, 0, -1, -1, 0),
    io_uring=call((425, 425), 8, memory),
    userfaultfd=call((323, 282), 0),
    swapon=call("swapon", text(b"/tmp/x"), 0),
    account=call("acct", text(b"/tmp/x")),
    clock=call("clock_settime", 0, memory),
    quota=call((179, 60), 0, None, 0, None),
    by_handle=call((304, 265), -100, memory, 0),
    fanotify=call((300, 262), 0, 0),
)
""",
    )
    assert {name: came for name, came in seen.items() if came not in REFUSED} == {}
    assert bench.bash(box, "hostname; ls /proc/1; date +%Y").text.split()[0] == "sandbox"


def test_root_cannot_be_had(bench, box):
    seen = tried(
        bench,
        box,
        """
header, all_of_them = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", *[0xFFFFFFFF] * 6)
tell(
    setuid=call("setuid", 0), setgid=call("setgid", 0), setresuid=call("setresuid", 0, 0, 0),
    groups=call("setgroups", 1, (ctypes.c_uint * 1)(0)),
    capset=call((126, 91), header, all_of_them),
    ambient=call("prctl", 47, 2, 21, 0, 0),
    new_privileges_again=call("prctl", 38, 0, 0, 0, 0),
)
""",
    )
    assert {name: came for name, came in seen.items() if came not in REFUSED} == {}
    assert tried(bench, box, "tell(set=libc.prctl(39, 0, 0, 0, 0))") == {"set": 1}
    assert bench.bash(box, "sudo -n id || su -c id < /dev/null || newgrp root < /dev/null").code != 0


@pytest.mark.parametrize("where", ["/work", "/tmp", "/dev/shm"])
def test_a_program_with_the_setuid_bit_gains_nothing(bench, box, where):
    ran = bench.bash(
        box,
        f"cp /usr/bin/id {where}/own-id && chmod 6755 {where}/own-id && {where}/own-id -u;"
        f" chown root {where}/own-id 2>/dev/null && echo chowned;"
        f""" python3 -c "import os; os.setxattr('{where}/own-id', 'security.capability', bytes(20))" 2>/dev/null"""
        f" && echo capable; rm {where}/own-id",
    )
    assert ran.text in ("1000\n", ""), ran.err  # /dev/shm runs nothing at all


NAMESPACES = {"user": 0x10000000, "mount": 0x20000, "net": 0x40000000, "pid": 0x20000000, "uts": 0x4000000,
              "ipc": 0x8000000}  # fmt: skip


def test_no_namespace_can_be_made(bench, box):
    """In a user namespace a command would hold every capability, and with it raw sockets on the sandbox's network."""
    seen = tried(
        bench,
        box,
        f"""
flags = {NAMESPACES!r}
tell(**{{
    **{{f"unshare {{name}}": call("unshare", flag) for name, flag in flags.items()}},
    "unshare all": call("unshare", sum(flags.values())),
    "unshare user and files": call("unshare", 0x10000000 | 0x400),
    "clone user": call((56, 220), 0x10000000 | 17, 0, 0, 0, 0),
    "clone3 user": call((435, 435), struct.pack("11Q", 0x10000000, *[0] * 3, 17, *[0] * 6), 88),
    "setns": call("setns", os.open("/proc/self/ns/user", 0), 0) if os.path.exists("/proc/self/ns/user") else "ENOSYS",
}})
""",
    )
    assert {name: came for name, came in seen.items() if came not in REFUSED} == {}


def test_the_fence_holds_for_whatever_a_command_starts_and_hinders_no_honest_program(bench, box):
    ran = bench.bash(
        box,
        "setsid sh -c 'unshare -Ur id'; nohup python3 -c 'import os; os.fork() or os.system(\"unshare -U id\")';"
        " (unshare -Urn id) & wait; echo | xargs -I{} unshare -U id; env -i /usr/bin/unshare -Ur id",
    )
    assert b"uid=" not in ran.out
    honest = (
        "import concurrent.futures as f, multiprocessing as m, subprocess, threading\n"
        "with f.ThreadPoolExecutor(8) as pool: print(sum(pool.map(int, '123')))\n"
        "with m.get_context('fork').Pool(2) as pool: print(sum(pool.map(int, '123')))\n"
        "print(subprocess.check_output(['echo', 'made']).decode().strip())\n"
    )
    assert bench.run(box, "python3", "-c", honest).text == "6\n6\nmade\n"


def test_no_socket_but_the_ordinary_ones(bench, box):
    families = {"packet": 17, "vsock": 40, "alg": 38, "bluetooth": 31, "can": 29, "xdp": 44}
    seen = tried(
        bench,
        box,
        f"""
import socket, fcntl
def opened(family, kind, protocol=0):
    try:
        socket.socket(family, kind, protocol).close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
seen = {{f"{{name}} {{kind}}": opened(family, kind) for name, family in {families!r}.items() for kind in (1, 2, 3)}}
seen |= {{f"raw {{family}} {{number}}": opened(family, 3, number) for family in (2, 10) for number in (0, 1, 6, 255)}}
seen["netfilter"] = opened(16, 3, 12)
try:
    fcntl.ioctl(os.open("/dev/net/tun", 2), 0x400454CA, struct.pack("16sH22x", b"tun0", 1))
    seen["tun"] = "done"
except OSError as error:
    seen["tun"] = errno.errorcode[error.errno]
tell(**seen)
""",
    )
    known = REFUSED | {"EPROTONOSUPPORT", "ENOENT", "EBADFD"}
    assert {name: came for name, came in seen.items() if came not in known} == {}


def test_device_nodes_open_no_device(bench, box):
    seen = tried(
        bench,
        box,
        """
nodes = {"disk": (0o60666, 8, 0), "loop": (0o60666, 7, 0), "device mapper": (0o60666, 253, 0), "mem": (0o20666, 1, 1),
         "kmem": (0o20666, 1, 2), "port": (0o20666, 1, 4), "kmsg": (0o20666, 1, 11), "kvm": (0o20666, 10, 232),
         "msr": (0o20666, 202, 0), "loop control": (0o20666, 10, 237), "gpu": (0o20666, 226, 0), "tty": (0o20666, 4, 1)}
def opened(place, mode, major, minor):
    path = f"{place}/node"
    try:
        os.mknod(path, mode, os.makedev(major, minor))
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        if os.path.lexists(path):
            os.unlink(path)
    return "done"
tell(**{f"{place} {name}": opened(place, *node) for place in ("/tmp", "/work") for name, node in nodes.items()})
""",
    )
    assert {name: came for name, came in seen.items() if came not in REFUSED | {"ENOENT"}} == {}


def test_a_file_system_of_its_own_cannot_be_mounted(bench, box):
    seen = tried(
        bench,
        box,
        """
try:
    device = os.open("/dev/fuse", 2)
    options = b"fd=%d,rootmode=40000,user_id=1000,group_id=1000" % device
    tell(fuse=call("mount", text(b"x"), text(b"/tmp"), text(b"fuse"), 0, text(options)))
except OSError as error:
    tell(fuse=errno.errorcode[error.errno])
""",
    )
    assert seen["fuse"] in REFUSED | {"ENOENT"}


def test_the_kernels_inside_is_not_shown(bench, box):
    ran = bench.bash(
        box,
        "for f in /proc/kcore /proc/kallsyms /proc/kmsg /dev/kmsg /dev/mem /dev/kmem /dev/port /proc/sysrq-trigger"
        " /proc/keys /proc/sched_debug /proc/timer_list /sys/kernel/debug/x /sys/firmware/x /proc/config.gz; do"
        " head -c 1 $f >/dev/null 2>&1 && echo read $f; (echo b > $f) 2>/dev/null && echo wrote $f; done; true",
    )
    assert ran.out == b""
    log = bench.bash(box, "dmesg").text
    assert "gVisor" in log
    assert "Linux version 6" not in log


def test_every_process_of_root_is_out_of_reach(bench, box):
    """PID 1, the nursery and each command's keeper: nothing of their memory, files, folders or streams."""
    seen = tried(
        bench,
        box,
        """
owner = {pid: os.stat(f"/proc/{pid}").st_uid for pid in os.listdir("/proc") if pid.isdigit()}
roots = [int(pid) for pid, uid in owner.items() if uid == 0]
reached = []
for pid in roots:
    piece = (ctypes.c_ulong * 2)(ctypes.addressof(memory), 16)
    ways = {
        "attach": call("ptrace", 16, pid, 0, 0), "seize": call("ptrace", 0x4206, pid, 0, 0),
        "read": call("process_vm_readv", pid, piece, 1, piece, 1, 0),
        "write": call("process_vm_writev", pid, piece, 1, piece, 1, 0),
        "kill": call("kill", pid, 9), "tgkill": call((234, 131), pid, pid, 9), "tkill": call((200, 130), pid, 9),
        "queue": call((129, 138), pid, 10, memory), "limits": call("prlimit", pid, 7, struct.pack("2Q", 1, 1), None),
        "move_pages": call((279, 239), pid, 0, None, None, None, 0),
    }
    reached += [f"{pid} {way}" for way, came in ways.items() if came == "done"]
    for name in ("mem", "root/etc", "cwd/etc", "task/%d/mem" % pid):
        try:
            os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
            reached.append(f"{pid} {name}")
        except OSError:
            pass
    for number in range(16):
        for flags in (os.O_RDONLY, os.O_WRONLY):
            try:
                fd = os.open(f"/proc/{pid}/fd/{number}", flags | os.O_NONBLOCK)
            except OSError:
                continue
            if os.readlink(f"/proc/self/fd/{fd}") != "/dev/null":
                reached.append(f"{pid} fd {number}")
tell(roots=len(roots), first=min(roots), reached=reached, shown=os.listdir("/proc/1"))
""",
    )
    assert (seen["first"], seen["reached"], seen["shown"]) == (1, [], [])
    assert seen["roots"] >= 2
    assert bench.bash(box, "echo alive").text == "alive\n"


def test_a_command_holds_no_end_of_the_runners_channel(bench, box):
    """So it cannot speak frames: its own files are pipes and /dev/null, and none of them is the host's."""
    ran = bench.bash(box, "for f in /proc/self/fd/* /proc/$$/fd/*; do readlink $f; done | sed 's/[0-9]//g' | sort -u")
    kinds = set(ran.text.split())
    assert {kind for kind in kinds if kind.startswith(("pipe:", "/dev/null", "/proc/"))} == kinds


READS = ("/proc/self/environ", "/proc/self/mem", "/proc/self/fd/0", "/proc/thread-self/fd/1", "/proc/1/root/etc/shadow",
         "/dev/stdin", "/dev/fd/0", "/dev/stdout", "/etc/shadow", "/root/.profile", "/opt/sandgate/keeper",
         "/opt/sandgate/runner/runner.py", "/mnt/work", "/mnt/hidden/x", "/proc/2/mem", "/proc/2/fd/3")  # fmt: skip
WRITES = ("/dev/stdout", "/dev/stderr", "/dev/ptmx", "/dev/fd/1", "/proc/self/fd/1", "/proc/1/fd/1", "/proc/self/mem",
          "/proc/self/oom_score_adj", "/etc/passwd", "/opt/sandgate/keeper", "/opt/sandgate/runner/x.py", "/mnt/x",
          "/mnt/hidden/x", "/root/x", "/usr/bin/python3", "/proc/sys/kernel/hostname")  # fmt: skip


@pytest.mark.parametrize("way", ["itself", "by a link", "by a folder that is a link"])
def test_files_are_touched_with_the_users_rights_and_never_the_runners(bench: Bench, box, way):
    """The runner is root, and `/proc/self` is its own: by no path, link or name of a device may that be used."""

    def named(path, n):
        if way == "itself":
            return path
        folder, _, name = path.rpartition("/")
        target, link = (path, f"/work/link{n}") if way == "by a link" else (folder or "/", f"/work/folder{n}")
        assert bench.run(box, "ln", "-sfn", target, link).code == 0
        return link if way == "by a link" else f"{link}/{name}"

    for n, path in enumerate(READS):
        with pytest.raises((FileError, Refusal)):
            pytest.fail(f"{path}: {bench.read(box, named(path, f'r{n}'))[:40]!r}")
    for n, path in enumerate(WRITES):
        with pytest.raises((FileError, Refusal)):
            pytest.fail(f"{path}: {bench.write(box, named(path, f'w{n}'), b'evil')}")
    assert bench.bash(box, "rm -f /work/link* /work/folder*; head -1 /etc/passwd").text.startswith("root:")


def test_what_the_container_is_given_is_all_it_has(bench, box):
    """As Docker knows it: nothing of the host's, no right that the runner does not need, every limit set."""
    found = bench.docker().api.inspect_container(box.container_id)
    host, config = found["HostConfig"], found["Config"]
    assert {mount["Type"] for mount in found["Mounts"]} == {"volume"}
    assert {mount["Destination"]: mount["RW"] for mount in found["Mounts"]} == {"/opt/sandgate": False, "/mnt": True}
    assert sorted(host["CapAdd"]) == ["CHOWN", "KILL", "SETGID", "SETPCAP", "SETUID", "SYS_ADMIN"]
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["Privileged"], host["ReadonlyRootfs"], host["AutoRemove"]) == (False, True, False)
    for name in (
        "Binds",
        "Devices",
        "DeviceRequests",
        "VolumesFrom",
        "ExtraHosts",
        "GroupAdd",
        "PortBindings",
        "Links",
    ):
        assert not host[name], name
    assert (host["NetworkMode"], host["IpcMode"], host["PidMode"], host["UTSMode"]) == ("none", "private", "", "")
    assert host["Memory"] == host["MemorySwap"] == 512 << 20
    assert host["CpuQuota"] == host["CpuPeriod"] == 100_000
    assert 0 < host["PidsLimit"] <= 1024
    assert host["Runtime"] == bench.config.runtime
    assert [name for name in config["Env"] if not name.startswith(("PATH=", "LANG="))] == []
    assert {name.partition("=")[0] for name in config["Labels"]} <= {
        "sandgate.instance", "sandgate.sandbox", "sandgate.marker", "sandgate.disk",
    }  # fmt: skip


def test_two_sandboxes_share_nothing(bench, box, fresh_box):
    bench.bash(fresh_box, "echo secret > /tmp/x; echo secret > /dev/shm/x; echo secret > /work/x; echo s > /var/tmp/x")
    assert bench.bash(box, "cat /tmp/x /dev/shm/x /work/x /var/tmp/x").out == b""
    sleeper = bench.begin(bench.bashing(fresh_box, "exec -a findme sleep 60"))
    assert bench.bash(
        box, "sleep 1; pgrep -f findm[e]; cat /proc/net/unix | grep -c '@' ; ls /dev/shm"
    ).text.split() == ["0"]
    ids = bench.bash(box, "cat /proc/self/mountinfo /proc/mounts /etc/hosts /etc/hostname /etc/resolv.conf").text
    assert fresh_box.sandbox_id not in ids
    assert fresh_box.container_id not in ids
    sleeper.cancel()
