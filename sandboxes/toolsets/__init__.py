"""The acts, one module each: what may be done in a sandbox. And the agent's tools, one module each in `one` and `two`:
how a model asks for an act and reads what became of it. Each is found by being there; adding one is adding one file.

An act: `NAME`, `VERSION`, `KIND` · `validate(arguments, agent)` → the arguments as approved ·
`execute(pass_, box, outputs)` → the result; of an act that answers at once, `(pass_, box, turn)` → the answer and it;
`BY_HOST`: it needs no sandbox that runs, and is `execute(pass_, dispatcher)`. It never asks, and never decides.

A tool, whose module has its name: `DESCRIPTION`, `PROPERTIES`, `REQUIRED`, `EXAMPLE` · `ACT`, unless the module is an
act itself · `arguments(given)` → those of the act, unless they are the same · `text(result, arguments)` → what a model
reads. Its schema is a promise to every agent pinned to that toolset: a test compares it with what was promised. What is
to be different comes with the next toolset.
"""

import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from console.workspaces.errors import Invalid, NotFound

from . import schemas
from .schemas import BadArguments

__all__ = ["BadArguments", "NoSuchTool", "Tool", "example", "named", "shown_by", "tool", "toolset"]
COMMANDS = frozenset({"run", "install"})
"""Those that run a command: it has a row, output and an exit code."""
NEWEST = 2
_PACKAGES = {1: "one", 2: "two"}


@dataclass(frozen=True)
class Tool:
    """A tool of one toolset, as an agent knows it."""

    name: str
    toolset: int
    module: ModuleType

    @property
    def description(self) -> str:
        return " ".join(str(self.module.DESCRIPTION).split())

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of its arguments."""
        return schemas.closed(self.module.PROPERTIES, self.module.REQUIRED)

    @property
    def example(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.module.EXAMPLE
        return found

    @property
    def act(self) -> ModuleType:
        found: ModuleType = getattr(self.module, "ACT", self.module)
        return found

    def arguments(self, given: Any) -> dict[str, Any]:
        """For its act, of what a model sent. Raises BadArguments, which names the field and shows a right call."""
        checked = schemas.checked(given, self.schema, example=self.example)
        make = getattr(self.module, "arguments", None)
        try:
            found: dict[str, Any] = make(checked) if make else checked
        except Invalid as error:
            raise self.bad(error) from error
        return found

    def bad(self, error: Invalid) -> BadArguments:
        """What its act says of an argument, as this tool's caller knows it."""
        field = str(error.fields["field"])
        field = field if field.startswith("arguments") else f"arguments.{field}"
        return BadArguments(error.detail, field=field, example=self.example)

    def text(self, result: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
        found: str = self.module.text(result, arguments)
        return found


def named(name: str, version: int = 1) -> ModuleType:
    """The act."""
    acts = _acts()
    try:
        return acts[name, version]
    except KeyError:
        there = ", ".join(sorted({name for name, _ in acts}))
        raise Invalid(f"There is no tool {name!r}; there are {there}.", field="tool") from None


def is_by_host(name: str, version: int) -> bool:
    return bool(getattr(named(name, version), "BY_HOST", False))


@cache
def toolset(number: int) -> Mapping[str, Tool]:
    """Its tools by name."""
    package = import_module(f"{__name__}.{_PACKAGES[number]}")
    return {name: Tool(name, number, module) for name, module in _modules(package)}


def tool(number: int, name: str) -> Tool:
    try:
        return toolset(number)[name]
    except KeyError:
        raise NoSuchTool(name, number) from None


def example(name: str) -> Mapping[str, Any]:
    """Right arguments for a tool of that name, whatever toolset it is of; none when there is no such."""
    found = [toolset(number)[name].example for number in sorted(_PACKAGES, reverse=True) if name in toolset(number)]
    return found[0] if found else {}


def shown_by(number: int, name: str, version: int) -> Tool | None:
    """The tool of that toolset that shows what became of such an act."""
    known = toolset(number).values()
    return next((each for each in known if (name, version) == (each.act.NAME, each.act.VERSION)), None)


class NoSuchTool(NotFound):
    def __init__(self, name: str, number: int) -> None:
        super().__init__("tool", name)
        there = ", ".join(sorted(toolset(number)))
        self.detail = f"There is no tool {name[:100]!r} in toolset {number}; there are {there}."


@cache
def _acts() -> Mapping[tuple[str, int], ModuleType]:
    own = [module for _, module in _modules(import_module(__name__))]
    tools = [each.module for number in _PACKAGES for each in toolset(number).values()]
    return {(module.NAME, module.VERSION): module for module in own + tools if hasattr(module, "execute")}


def _modules(package: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    """Imported at first use: some need what needs this package."""
    for found in pkgutil.iter_modules(package.__path__):
        if not found.ispkg and not found.name.startswith("_"):
            yield found.name, import_module(f"{package.__name__}.{found.name}")
