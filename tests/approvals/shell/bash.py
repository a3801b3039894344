"""Real bash in an empty environment, where each program is a stub that writes down how it was called."""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

WRAPPERS = "env timeout nice nohup setsid stdbuf xargs find sh flock ionice chrt taskset time".split()
NAMES = "ls cat wc head grep git pytest sort rm curl id x y env xargs find".split()
BUILTINS = frozenset(
    subprocess.run(["/bin/bash", "-c", "compgen -b"], capture_output=True, text=True, check=True).stdout.split()
)
# The words of each call, NUL after each, in the order in which the programs were started.
STUB = """#!/bin/sh
printf '%s\\0' "${{0##*/}}" "$@" '<end>' >>"{log}"
"""


def is_seen(name: str) -> bool:
    """Whether a stub can stand for it."""
    return name not in BUILTINS and "/" not in name and name not in (".", "..")


@dataclass
class Bash:
    folder: Path

    def __post_init__(self) -> None:
        self.log, self.path, self.work = self.folder / "log", self.folder / "bin", self.folder / "work"
        self.path.mkdir()
        self.work.mkdir()

    def stub(self, *names: str) -> None:
        for name in filter(is_seen, names):
            program = self.path / name
            if not program.exists():
                program.write_text(STUB.format(log=self.log))
                program.chmod(0o755)

    def real(self, *names: str) -> str:
        """A folder for the path with the machine's own of these, as far as it has them."""
        folder = self.folder / "real"
        folder.mkdir(exist_ok=True)
        for name in names:
            if (found := shutil.which(name)) and not (folder / name).exists():
                (folder / name).symlink_to("/bin/bash" if name == "sh" else found)
        return str(folder)

    def runs(self, line: str, *, path: str = "", stdin: str = "") -> list[tuple[str, ...]]:
        """What it started, as often as it started it. Builtins are not seen."""
        self.log.write_bytes(b"")
        environment = {"PATH": f"{self.path}{path and ':' + path}"}
        command = ["/bin/bash", "--noprofile", "--norc", "-c", line]
        with subprocess.Popen(
            command, env=environment, cwd=self.work, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:  # to the end of what it prints, which is when the last that it started has ended
                process.communicate(stdin.encode(), timeout=20)
            except subprocess.TimeoutExpired:  # a loop: what it started so far counts
                os.killpg(process.pid, signal.SIGKILL)
        calls: list[tuple[str, ...]] = []
        words: list[str] = []
        for word in self.log.read_bytes().decode().split("\0")[:-1]:
            if word == "<end>":
                calls.append(tuple(words))
                words = []
            else:
                words.append(word)
        return calls
