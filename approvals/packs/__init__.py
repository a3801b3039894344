"""Packs: rules that many want, versioned, each with its tests. Off until somebody with `rules:manage` ticks one.

A pack is a module here: `TITLE`, `ABOUT`, `VERSION`, `RULES`. Ticking it makes its rules, owned by who ticked; another
version is another tick. Must never change what a workspace has ticked by itself.
"""

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from console.workspaces.errors import NotFound

__all__ = ["Pack", "PackRule", "named", "packs"]


@dataclass(frozen=True)
class PackRule:
    """An allowing rule of `run`."""

    pattern: str
    matches: tuple[str, ...]
    does_not_match: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pack:
    name: str
    title: str
    about: str
    version: int
    rules: tuple[PackRule, ...]

    @property
    def tests(self) -> int:
        return sum(len(rule.matches) + len(rule.does_not_match) for rule in self.rules)


@cache
def packs() -> Mapping[str, Pack]:
    return {found.name: _pack(found.name) for found in pkgutil.iter_modules(__path__)}


def named(name: str) -> Pack:
    try:
        return packs()[name]
    except KeyError:
        raise NotFound("pack", name[:60]) from None


def _pack(name: str) -> Pack:
    module = import_module(f"{__name__}.{name}")
    return Pack(name, module.TITLE, module.ABOUT, module.VERSION, tuple(PackRule(*rule) for rule in module.RULES))
