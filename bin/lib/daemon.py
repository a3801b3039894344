"""Which Docker daemon is used, and the life of our own: start, find again, stop. The user's is only asked."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import docker

from lib import debian, jail, leftovers, signals
from lib.place import Place
from lib.say import Stop, say

DEFAULT_SOCKET = Path("/var/run/docker.sock")
START_S, STOP_S = 60, 30
LOG_LIMIT_BYTES = 16 << 20


def theirs() -> str | None:
    """The address of a daemon that answered before us, or None."""
    if host := os.environ.get("DOCKER_HOST"):
        if not answers(host):
            raise Stop(f"DOCKER_HOST is {host}, and no Docker daemon answers there. Start it, or use --own-docker.")
        return host
    address = f"unix://{DEFAULT_SOCKET}"
    return address if DEFAULT_SOCKET.exists() and answers(address) else None


def answers(address: str) -> bool:
    try:
        client = docker.DockerClient(base_url=address, timeout=5)
    except docker.errors.DockerException:
        return False
    try:
        return bool(client.ping())
    except (docker.errors.DockerException, OSError):
        return False
    finally:
        client.close()


class OwnDaemon:
    """dockerd with data, sockets and configuration of its own. It outlives a `kill -9` of ours on purpose."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.address = f"unix://{place.socket}"
        self.config_file = place.var / "docker.json"
        self.pid_file = place.run / "docker.pid"
        self.log = place.var / "docker.log"
        self.started: subprocess.Popen[bytes] | None = None

    def chosen_before(self) -> bool:
        return (self.place.var / "docker").is_dir()

    def start(self, runtimes: Mapping[str, Any]) -> None:
        """Reuses the one left by a `kill -9`; sandboxes in it are still running and must be found again."""
        if os.geteuid() != 0:
            raise Stop(
                "a Docker daemon of our own needs root. Run as root, or name one that has gVisor in DOCKER_HOST."
            )
        self.place.run.mkdir(mode=0o700, exist_ok=True)
        jail.need()
        changed = self._configure(runtimes)
        if pid := self.pid():
            if changed:
                os.kill(pid, signal.SIGHUP)  # dockerd takes new runtimes without a restart
        else:
            if not debian.find("dockerd"):
                install_docker()
            mount_cgroups()
            self.start_again()
        self._wait_until_up()

    def _configure(self, runtimes: Mapping[str, Any]) -> bool:
        config = {
            "hosts": [self.address],
            "data-root": str(self.place.var / "docker"),
            "exec-root": str(self.place.run / "exec"),
            "pidfile": str(self.pid_file),
            "live-restore": True,
            "bridge": "none",
            "iptables": False,
            "ip-forward": False,  # that is the whole host's; the jail turns single interfaces where it must
            "log-level": "warn",
            "runtimes": runtimes,
        }
        text = json.dumps(config, indent=2) + "\n"
        changed = not self.config_file.exists() or self.config_file.read_text() != text
        self.config_file.write_text(text)
        return changed

    def start_again(self) -> None:
        """After its death, as it was set up; does not wait for it. Its sandboxes went on and it finds them."""
        with signals.held_back():
            self.started = self._launch()

    def _launch(self) -> subprocess.Popen[bytes]:
        self._forget_dead()
        say(f"starting a Docker daemon of our own ({self.place.socket})")
        # Where a system containerd runs, dockerd shares it: namespaces of our own keep containers apart there.
        # (As flags: releases differ in what the configuration file calls them.)
        name = f"sandgate-{self.place.instance}"
        spaces = [f"--containerd-namespace={name}", f"--containerd-plugins-namespace={name}-plugins"]
        with self.log.open("wb" if too_long(self.log) else "ab") as log:
            env = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"}
            return subprocess.Popen(
                ["dockerd", "--config-file", str(self.config_file), *spaces],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=signals.let_through,
            )

    def _forget_dead(self) -> None:
        """dockerd believes the pid files of dead ones when their numbers are in use again, or not yet collected."""
        self.pid_file.unlink(missing_ok=True)
        containerd = self.place.run / "exec/containerd"
        if not process_of(containerd / "containerd.pid", str(containerd / "containerd.toml")):
            (containerd / "containerd.pid").unlink(missing_ok=True)

    def _wait_until_up(self) -> None:
        end = time.monotonic() + START_S
        while not answers(self.address):
            died = self.started is not None and self.started.poll() is not None
            if died or time.monotonic() > end:
                raise Stop(f"our Docker daemon does not answer; the reason is at the end of {self.log}")
            time.sleep(0.1)

    def pid(self) -> int | None:
        if self.started and self.started.poll() is None:
            return self.started.pid  # its file comes later, and a stop may come before
        return process_of(self.pid_file, str(self.config_file))

    def running(self) -> list[str]:
        if self.pid() is None or not answers(self.address):
            return []
        client = docker.DockerClient(base_url=self.address, timeout=30)
        names = [container.name for container in client.containers.list()]
        client.close()
        return names

    def stop(self) -> None:
        """Ends what still runs in it first: with live-restore, sandboxes would outlive the daemon."""
        if pid := self.pid():
            self._end_containers()
            os.kill(pid, signal.SIGTERM)
            self._wait_until_gone(pid)
        leftovers.end(str(self.place.run / "exec"), quiet_s=0.1)
        if self.pid() is None:
            leftovers.unmount(self.place.run, self.place.var)
            leftovers.free_loops(self.place.var)
            jail.clear(self.place)
            shutil.rmtree(self.place.run, ignore_errors=True)

    def _wait_until_gone(self, pid: int) -> None:
        end = time.monotonic() + STOP_S
        while self.pid() is not None and time.monotonic() < end:
            time.sleep(0.1)
        if self.pid() is not None:
            say(f"our Docker daemon (process {pid}) did not stop within {STOP_S} s; see {self.log}")

    def _end_containers(self) -> None:
        if not answers(self.address):
            return  # on its way up, or stuck: `stop` looks for what it left
        with closing(docker.DockerClient(base_url=self.address, timeout=30)) as client:
            try:
                for container in client.containers.list():
                    say(f"ending {container.name}, still running")
                    container.kill()
            except (docker.errors.APIError, OSError) as problem:
                say(f"not all sandboxes could be ended: {problem}")


def process_of(pid_file: Path, word: str) -> int | None:
    """The live process that the file names, if `word` is on its command line; else the number is another's by now."""
    try:
        pid = int(pid_file.read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if word.encode() in words else None


def too_long(log: Path) -> bool:
    return log.exists() and log.stat().st_size > LOG_LIMIT_BYTES


def install_docker() -> None:
    """Without the package's own service: at the next boot it would come up and pass for a daemon of the user's."""
    packages = ["docker.io", "iptables", "iproute2"]
    units = ["docker.socket", "docker.service", *([] if debian.find("containerd") else ["containerd.service"])]
    debian.install(packages, why="Docker Engine, for a daemon of our own; the package's own service stays off")
    if Path("/run/systemd/system").exists():
        subprocess.run(["systemctl", "disable", *units], capture_output=True)


def mount_cgroups() -> None:
    if not any(Path("/sys/fs/cgroup").iterdir()):
        debian.need("cgroupfs-mount", "cgroupfs-mount", why="limits for sandboxes need control groups")
        subprocess.run(["cgroupfs-mount"], check=True)
