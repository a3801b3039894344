"""The jail of every sandbox that has a network: one nftables table on the host, set, watched and put back.

Owns that table. Must fail closed: what it could not set is an error before anything starts, and while it cannot be put
back the bridges are down. What the table says is in `rules.py`.
"""

import asyncio
import json
import logging
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sandboxes import counters

from . import hostnet, rules
from .hostnet import NetworkFault
from .names import table_name
from .rules import Jailed, Lane, Opening

log = logging.getLogger("sandgate.jail")


class Jail:
    def __init__(self, now: Jailed, *, nft: str = "nft") -> None:
        self.now = now
        self.repairs = 0
        self.fault = ""
        """Why it does not hold at this time."""
        self._nft = nft
        self._table = ("inet", table_name(now.instance))
        self._loaded: object = None
        self._turn = asyncio.Lock()

    async def set(
        self,
        *,
        lanes: Iterable[Lane] | None = None,
        openings: Mapping[str, Collection[Opening]] | None = None,
        guarded: Iterable[str] | None = None,
    ) -> None:
        """The whole table, with these changes. Raises NetworkFault, and then counts as not set at all."""
        async with self._turn:
            if lanes is not None:
                self.now = replace(self.now, lanes=tuple(lanes))
            if openings is not None:
                self.now = replace(self.now, openings=dict(openings))
            if guarded is not None:
                self.now = replace(self.now, guarded=tuple(guarded))
            await self._load()

    async def look(self) -> None:
        """Puts the table back if it is not what was loaded last."""
        async with self._turn:
            with suppress(NetworkFault):
                if not self.fault and await asyncio.to_thread(self._listed) == self._loaded:
                    return
            self.repairs += 1
            counters.jail_repaired()
            log.warning("The network jail was changed from outside, or could not be set. Putting it back.")
            await self._load(anew=True)

    async def remove(self) -> None:
        async with self._turn:
            self._loaded = None
            with suppress(NetworkFault):
                await asyncio.to_thread(hostnet.tool, self._nft, "delete", "table", *self._table)

    async def _load(self, *, anew: bool = False) -> None:
        """A shield: what a thread loads is loaded whoever waits for it, and must be known as loaded."""
        await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(self._load_now, anew or bool(self.fault))))

    def _load_now(self, anew: bool) -> None:
        try:
            self._loaded = self._put(anew=anew)
        except NetworkFault as error:
            self.fault = str(error)
            self._bridges("down")
            raise
        if self.fault:
            self._bridges("up")
            self.fault = ""

    def _put(self, *, anew: bool) -> object:
        """Loads, and reads back: what a look compares with must be what was meant, not what somebody made of it."""
        for afresh in (anew, True):
            hostnet.tool(self._nft, "-f", "-", told=rules.text(self.now, anew=afresh))
            found = self._listed()
            if _counted(found) == _wanted(self.now):
                return found
        raise NetworkFault(f"nft: table {self._table[1]} was changed while it was loaded")

    def _listed(self) -> dict[str, Any]:
        try:
            found = json.loads(hostnet.tool(self._nft, "-j", "-s", "list", "table", *self._table))["nftables"]
        except (ValueError, KeyError) as error:
            raise NetworkFault(f"nft list: {error}") from error
        return _normal(found)

    def _bridges(self, state: str) -> None:
        """Another way to the same end: without the table, nobody may speak."""
        for lane in self.now.lanes:
            with suppress(NetworkFault):
                hostnet.tool("ip", "link", "set", lane.bridge, state)


def _normal(listed: list[dict[str, Any]]) -> dict[str, Any]:
    """Without what differs from one listing to the next: numbers the kernel gives, the order of elements, flows."""
    found: dict[str, Any] = {}
    for item in listed:
        for kind, thing in item.items():
            if kind == "metainfo":
                continue
            thing = {key: value for key, value in thing.items() if key not in ("handle", "index")}
            if kind == "set" and thing["name"] == "flows":
                thing.pop("elem", None)
            if "elem" in thing:
                thing["elem"] = sorted(json.dumps(each) for each in thing["elem"])
            found.setdefault(f"{kind} {thing.get('chain') or thing.get('name')}", []).append(thing)
    return found


def _counted(listed: dict[str, Any]) -> dict[str, int]:
    sizes = {key.removeprefix("rule "): len(found) for key, found in listed.items() if key.startswith("rule ")}
    sets = {key.removeprefix("set "): len(found[0].get("elem", ())) for key, found in listed.items() if "set " in key}
    return sizes | sets


def _wanted(now: Jailed) -> dict[str, int]:
    sizes = {name: len(found) for name, found in rules.chains(now).items()}
    return sizes | {"flows": 0} | {name: len(found) for name, found in rules.elements(now).items()}
