"""What shfmt says a plain line runs: a second parser of bash, by other people, in another language.

Run as a process of its own, with limits on its time and on what it prints. An allow-list like tree.py.
"""

import json
import logging
import os
import select
import subprocess
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .plain import Commands, NotPlain, value

SHFMT = Path(sysconfig.get_path("scripts"), "shfmt")
TIMEOUT_S = 2.0
OUTPUT_BYTES = 16 << 20
UNCHECKED = "It could not be checked by the second parser."
_WHERE = frozenset(("Pos", "End", "ValuePos", "ValueEnd", "OpPos", "Left", "Right", "Position", "Semicolon"))
_log = logging.getLogger(__name__)


def commands(line: str) -> Commands:
    """Raises NotPlain."""
    tree = json.loads(_printed(line))
    found = Commands()
    _sequence(tree, found)
    return found


def _printed(line: str) -> bytes:
    command = [str(SHFMT), "--language-dialect", "bash", "--to-json"]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}
        ) as process:
            try:
                printed = _talk(process, line.encode("ascii"))
            except BaseException:
                process.kill()
                raise
    except OSError as error:
        _log.error("shfmt did not run (%s): every command line asks. Install requirements.txt again.", error)
        raise NotPlain(UNCHECKED) from error
    if process.returncode:
        raise NotPlain("It could not be read as a command line.")
    return printed


def _talk(process: "subprocess.Popen[bytes]", text: bytes) -> bytes:
    assert process.stdin
    assert process.stdout
    process.stdin.write(text)  # shorter than a pipe holds
    process.stdin.close()
    until, printed, fd = time.monotonic() + TIMEOUT_S, bytearray(), process.stdout.fileno()
    while True:
        if not select.select([fd], [], [], max(0.0, until - time.monotonic()))[0]:
            raise NotPlain(UNCHECKED)
        piece = os.read(fd, 1 << 16)
        if not piece:
            return bytes(printed)
        printed += piece
        if len(printed) > OUTPUT_BYTES:
            raise NotPlain(UNCHECKED)


def _fields(node: Mapping[str, Any], *allowed: str) -> Mapping[str, Any]:
    """What it holds. Anything that is not known here is more than a plain command."""
    if odd := [name for name, held in node.items() if held and name not in _WHERE and name not in allowed]:
        raise NotPlain(f"It uses more of the shell than plain commands ({', '.join(sorted(odd))}).")
    return node


def _sequence(tree: Mapping[str, Any], found: Commands) -> None:
    for statement in _fields(tree, "Type", "Stmts").get("Stmts", []):
        if found.argvs:
            found.joins.append(";")
        _statement(statement, found)


def _statement(statement: Mapping[str, Any], found: Commands) -> None:
    held = _fields(statement, "Cmd", "Redirs")
    for redirection in held.get("Redirs", []):
        _check_duplicate(redirection)
    command = held.get("Cmd") or {}
    if command.get("Type") == "CallExpr":
        found.argvs.append(tuple(_word(word) for word in _fields(command, "Type", "Args").get("Args", [])))
    elif command.get("Type") == "BinaryCmd" and command.get("Op") in ("&&", "||", "|"):
        _fields(command, "Type", "Op", "X", "Y")
        _statement(command["X"], found)
        found.joins.append(command["Op"])
        _statement(command["Y"], found)
    else:
        raise NotPlain(f"It uses more of the shell than plain commands ({command.get('Type')}).")


def _check_duplicate(redirection: Mapping[str, Any]) -> None:
    held = _fields(redirection, "Op", "N", "Word")
    if (
        held["Op"] != ">&"
        or _word(held["Word"]) not in ("1", "2")
        or (held.get("N") or {}).get("Value", "1") not in "12"
    ):
        raise NotPlain("It redirects output in a way that is not plain.")


def _word(word: Mapping[str, Any]) -> str:
    return "".join(_part(part) for part in _fields(word, "Parts").get("Parts", []))


def _part(part: Mapping[str, Any]) -> str:
    held = _fields(part, "Type", "Value", "Parts")
    if held["Type"] == "SglQuoted":
        return str(held.get("Value", ""))
    if held["Type"] == "DblQuoted":
        return "".join(_quoted(inner) for inner in held.get("Parts", []))
    if held["Type"] == "Lit":
        return value(held["Value"])
    raise NotPlain(f"It uses more of the shell than plain commands ({held['Type']}).")


def _quoted(inner: Mapping[str, Any]) -> str:
    held = _fields(inner, "Type", "Value")
    if held["Type"] != "Lit":
        raise NotPlain(f"It uses more of the shell than plain commands ({held['Type']}).")
    return value(f'"{held["Value"]}"')
