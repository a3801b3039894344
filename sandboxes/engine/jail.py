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

from console.state import table_name
from sandboxes import counters

from . import hostnet, rules
from .hostnet import NetworkFault
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
        self._set_to: Jailed | None = None
        self._found: dict[str, Any] = {}
        self._turn = asyncio.Lock()

    async def set(
        self,
        *,
        lanes: Iterable[Lane] | None = None,
        openings: Mapping[str, Collection[Opening]] | None = None,
        guarded: Iterable[str] | None = None,
    ) -> None:
        """The whole jail as it is now, with these changes. Raises NetworkFault when it cannot be set."""
        async with self._turn:
            if lanes is not None:
                self.now = replace(self.now, lanes=tuple(lanes))
            if openings is not None:
                self.now = replace(self.now, openings=dict(openings))
            if guarded is not None:
                self.now = replace(self.now, guarded=tuple(guarded))
            await _to_its_end(asyncio.ensure_future(asyncio.to_thread(self._set)))

    def names(self, sandbox_id: str) -> bool:
        return sandbox_id in {lane.sandbox_id for lane in self.now.lanes}

    async def look(self) -> None:
        """Puts the table back if it is not what was set last."""
        await self.set()

    async def remove(self) -> None:
        async with self._turn:
            self._set_to = None
            with suppress(NetworkFault):
                await asyncio.to_thread(hostnet.tool, self._nft, "delete", "table", *self._table)

    def _set(self) -> None:
        first, held = self._set_to is None, self._holds()
        try:
            if not held or not self._changed():
                self._load()
        except NetworkFault as error:
            self.fault = str(error)
            self._bridges("down")
            raise
        if self.fault:
            self._bridges("up")
            self.fault = ""
        if not first and not held:
            self.repairs += 1
            counters.jail_repaired()
            log.warning("The network jail was not as it had been set. It has been put back.")

    def _holds(self) -> bool:
        """Whether the table still is what was set last; else the whole of it is loaded."""
        with suppress(NetworkFault):
            return self._set_to is not None and not self.fault and self._listed() == self._found
        return False

    def _changed(self) -> bool:
        """Done by elements alone."""
        assert self._set_to is not None
        if (told := rules.changes(self._set_to, self.now)) is None:
            return False
        try:
            if told:
                hostnet.tool(self._nft, "-f", "-", told=told)
                self._note(self._listed())
        except NetworkFault:  # somebody else was at it: the whole table says what is meant
            return False
        self._set_to = self.now
        return True

    def _load(self) -> None:
        """As little as possible first: a table that goes and comes has a moment in between."""
        for anew in (False, True):
            try:
                hostnet.tool(self._nft, "-f", "-", told=rules.text(self.now, anew=anew))
                self._note(self._listed())
                return
            except NetworkFault:
                if anew:
                    raise

    def _note(self, found: dict[str, Any]) -> None:
        """A look compares with what was meant, not with what somebody made of it in the meantime."""
        if _counted(found) != _wanted(self.now):
            raise NetworkFault(f"nft: table {self._table[1]} was changed while it was set")
        self._found, self._set_to = found, self.now

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


async def _to_its_end(work: "asyncio.Future[None]") -> None:
    """The next one must find what this thread has set, whoever waited for it."""
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


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
    """How much there is of each kind, by chain and set."""
    return {
        key: len(found[0].get("elem", ())) if key.startswith("set ") else len(found)
        for key, found in listed.items()
        if not key.startswith("table ")
    }


def _wanted(now: Jailed) -> dict[str, int]:
    made = rules.chains(now)
    sizes = {f"chain {name}": 1 for name in made} | {f"rule {name}": len(found) for name, found in made.items()}
    return sizes | {"set flows": 0} | {f"set {name}": len(found) for name, found in rules.elements(now).items()}
