"""Every program that a call may run, also inside what it runs: `timeout 5 X`, `bash -c 'X'`, `$(X)`, `find -exec X`.

For rules that deny and for flags: finds as much as it can within its limits, and may find too much. Must never be what
allows a call.
"""

from collections import deque
from dataclasses import replace

from . import scan
from .scan import Command
from .wrappers import SHELLS_AND_READERS, Inner, inner, name_of

LINE_CHARS = 64 << 10  # of a longer line the rest is not looked at; it asks in any case
ALL_CHARS = 256 << 10  # with all texts inside texts
COMMANDS = 1000
DEPTH = 12


def of_line(line: str) -> tuple[Command, ...]:
    return _Search().of(_plain_texts([line[:LINE_CHARS]]))


def of_argv(argv: tuple[str, ...]) -> tuple[Command, ...]:
    return _Search().of([Command(argv)])


def _plain_texts(lines: list[str]) -> list[Command]:
    return [each for line in lines for each in scan.commands(line, limit_chars=ALL_CHARS, most=COMMANDS)]


class _Search:
    def __init__(self) -> None:
        self.chars = ALL_CHARS
        self.found: list[Command] = []

    def of(self, commands: list[Command]) -> tuple[Command, ...]:
        waiting = deque((command, 0) for command in commands)
        while waiting and len(self.found) < COMMANDS:
            command, depth = waiting.popleft()
            self.found.append(command)
            if depth < DEPTH and command.argv:
                waiting.extend((each, depth + 1) for each in self._inside(command))
        return tuple(self.found)

    def _inside(self, command: Command) -> list[Command]:
        inside: Inner = inner(command.argv)
        found = [replace(command, argv=argv) for argv in inside.argvs]
        for text in [*inside.texts, *_read_by(command)]:
            if self.chars > 0:
                found += scan.commands(text, limit_chars=self.chars, most=COMMANDS)
                self.chars -= len(text) + 1
        return found


def _read_by(command: Command) -> list[str]:
    """What a shell is given to read."""
    if name_of(command.argv) not in SHELLS_AND_READERS:
        return []
    said = [" ".join(command.fed_by[1:])] if command.fed_by[:1] in (("echo",), ("printf",)) else []
    return [*command.inputs, *said]
