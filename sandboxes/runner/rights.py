"""Who may do what inside the sandbox: what PID 1 keeps, and how a file thread becomes the user `agent`.

Owns capabilities, credentials and mounts at start. Must fail closed: a thread that could not give up root's rights
must not touch a file.

PID 1 and its keepers have the rights of root (their effective user) and are nobody's (their real and saved user is
KEEPER_UID): neither a process of `agent` nor one of root, as an install is, can signal, trace or limit them.

A thread changes only its effective user (raw system calls: libc's wrappers would change every thread). Its real and
saved user stay, so processes of `agent` can neither signal nor trace it; its effective capabilities are gone, so
the kernel judges every path by what `agent` may do.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

AGENT_UID = 1000
AGENT_GID = 1000
KEEPER_UID = 65533
"""In keeper.c, too. Debian gives it to nobody, and nobody in a sandbox can become it."""

_CALLS = {
    "x86_64": {"setresuid": 117, "setresgid": 119, "geteuid": 107, "getegid": 108, "capset": 126},
    "aarch64": {"setresuid": 147, "setresgid": 149, "geteuid": 175, "getegid": 177, "capset": 91},
}
_KEEP = -1
_MS_RDONLY, _MS_REMOUNT, _MS_BIND = 1, 32, 4096
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8
_CLONE_FS = 0x200
_PR_SET_KEEPCAPS = 8
_PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 24, 36, 4, 38
_CAP_KILL, _CAP_SETGID, _CAP_SETUID, _CAP_SETPCAP, _CAP_SYS_ADMIN = 5, 6, 7, 8, 21
_CAP_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class NotAllowed(Exception):
    """The kernel did not do as asked; going on would leave more rights than meant."""


def _call(name: str, *args: int) -> int:
    number = _CALLS[os.uname().machine][name]
    return int(_libc.syscall(number, *(ctypes.c_long(a) for a in args)))


def thread_as_agent() -> None:
    """Called first thing in a file thread. For this thread only, and checked."""
    _call("setresgid", _KEEP, AGENT_GID, _KEEP)
    _call("setresuid", _KEEP, AGENT_UID, _KEEP)
    if (_call("geteuid"), _call("getegid")) != (AGENT_UID, AGENT_GID):
        raise NotAllowed("a file thread could not become the user agent")


def bind(source: str, target: str) -> None:
    if _libc.mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND, None):
        error = ctypes.get_errno()
        raise OSError(error, f"mount {source} on {target}: {os.strerror(error)}")


def make_read_only(target: str) -> None:
    """Of what is bound there."""
    if _libc.mount(b"none", os.fsencode(target), None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY, None):
        error = ctypes.get_errno()
        raise OSError(error, f"remount {target}: {os.strerror(error)}")


def unmount(target: str, *, in_use: bool = True) -> None:
    """Never what a link at `target` leads to. `in_use`: also when somebody has it open, or stands in it and would find
    no way up any more; else OSError."""
    if _libc.umount2(os.fsencode(target), _UMOUNT_NOFOLLOW | (_MNT_DETACH if in_use else 0)):
        error = ctypes.get_errno()
        raise OSError(error, f"umount {target}: {os.strerror(error)}")


def thread_as_mounting_agent() -> None:
    """Called first thing in the guard's thread, before PID 1 gives up its own right to mount: the kernel judges its
    paths by what `agent` may do, it may mount, and has a working directory of its own."""
    _libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)  # else the last of its users that is root takes them with it
    thread_as_agent()
    _capset(effective=1 << _CAP_SYS_ADMIN, permitted=1 << _CAP_SYS_ADMIN)
    if _libc.unshare(_CLONE_FS):
        raise NotAllowed(f"unshare: {os.strerror(ctypes.get_errno())}")


def be_nobodys() -> None:
    """Of the calling thread, the first one, and of each that it starts from then on."""
    _call("setresuid", KEEPER_UID, 0, KEEPER_UID)
    if os.getresuid() != (KEEPER_UID, 0, KEEPER_UID):
        raise NotAllowed("PID 1 could not change its real user")


@contextmanager
def plain_root() -> Iterator[None]:
    """For starting a program: a kernel may take the effective user from one whose real user is another."""
    _call("setresuid", 0, 0, 0)
    try:
        yield
    finally:
        be_nobodys()


def be_subreaper() -> None:
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def keep_only_what_keepers_need() -> None:
    """Drops every other capability, for good: also from what an executed keeper could get back. Of the calling thread
    and of whatever it starts from then on."""
    kept = (_CAP_KILL, _CAP_SETGID, _CAP_SETUID, _CAP_SETPCAP)
    for cap in range(64):
        if cap not in kept:
            _libc.prctl(_PR_CAPBSET_DROP, cap, 0, 0, 0)
    mask = sum(1 << cap for cap in kept)
    _capset(effective=mask, permitted=mask)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _capset(*, effective: int, permitted: int) -> None:
    """Of the calling thread alone, whose inheritable set it empties."""
    head = ctypes.create_string_buffer(struct.pack("Ii", _CAP_VERSION_3, 0))
    data = ctypes.create_string_buffer(struct.pack("6I", effective, permitted, 0, 0, 0, 0))
    number = _CALLS[os.uname().machine]["capset"]
    if _libc.syscall(number, head, data):
        raise NotAllowed(f"capset: {os.strerror(ctypes.get_errno())}")
