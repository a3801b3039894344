"""The tools: one module each, with the same five names. A tool says what a call must look like, what the digest binds
beyond its arguments, and how it runs with a Pass. It never asks, and never decides.

`NAME`, `VERSION`, `KIND` · `validate(arguments, agent)` → the arguments as approved ·
`execute(pass_, box, outputs)` → the result; of a tool that answers at once, `(pass_, box, turn)` → the answer and it
"""

from types import ModuleType

from console.workspaces.errors import Invalid

from . import install, listing, publish, read, run, stdin, write

TOOLS: dict[str, ModuleType] = {module.NAME: module for module in (run, install, stdin, write, read, listing, publish)}
COMMANDS = frozenset({run.NAME, install.NAME})
"""Those that run a command: it has a row, output and an exit code."""


def named(name: str) -> ModuleType:
    try:
        return TOOLS[name]
    except KeyError:
        raise Invalid(f"There is no tool {name!r}; there are {', '.join(sorted(TOOLS))}.", field="tool") from None
