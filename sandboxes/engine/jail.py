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
Frame = dict[str, list[dict[str, Any]]]
Elements = dict[str, set[str]]


class Jail:
    def __init__(self, now: Jailed, *, nft: str = "nft") -> None:
        self.now = now
        self.repairs = 0
        self.fault = ""
        """Why it does not hold at this time."""
        self._nft = nft
        self._table = ("inet", table_name(now.instance))
        self._set_to: Jailed | None = None
        self._frame: Frame = {}
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
        before, same = self._set_to, False
        try:
            same = before is not None and rules.chains(before) == rules.chains(self.now)
            held = same and not self.fault and self._changed()
            if not held:
                self._load()
        except NetworkFault as error:
            self.fault = str(error)
            self._bridges("down")
            raise
        if self.fault:
            self._bridges("up")
            self.fault = ""
        if same and not held:
            self.repairs += 1
            counters.jail_repaired()
            log.warning("The network jail was not as it had been set. It has been put back.")

    def _changed(self) -> bool:
        """By elements alone. False when the table was not as it was set, or somebody else is at it."""
        assert self._set_to is not None
        try:
            if told := rules.changes(self._set_to, self.now):
                hostnet.tool(self._nft, "-f", "-", told=told)
            frame, elements = self._listed()
        except NetworkFault:
            return False
        self._set_to = self.now
        return frame == self._frame and elements == rules.elements(self.now)

    def _load(self) -> None:
        """As little as possible first: a table that goes and comes has a moment in between."""
        for anew in (False, True):
            try:
                hostnet.tool(self._nft, "-f", "-", told=rules.text(self.now, anew=anew))
                self._note(*self._listed())
                return
            except NetworkFault:
                if anew:
                    raise

    def _note(self, frame: Frame, elements: Elements) -> None:
        """What is compared later must be what was meant, not what somebody made of it in the meantime."""
        chains = rules.chains(self.now)
        wanted = {f"chain {name}": 1 for name in chains} | {
            f"rule {name}": len(found) for name, found in chains.items()
        }
        counted = {name: len(found) for name, found in frame.items() if name.split()[0] in ("chain", "rule")}
        if counted != wanted or elements != rules.elements(self.now):
            raise NetworkFault(f"nft: table {self._table[1]} was changed while it was set")
        self._frame, self._set_to = frame, self.now

    def _listed(self) -> tuple[Frame, Elements]:
        try:
            found = json.loads(hostnet.tool(self._nft, "-j", "-s", "list", "table", *self._table))["nftables"]
            return _parts(found)
        except (ValueError, KeyError, TypeError) as error:
            raise NetworkFault(f"nft list: {error!r}") from error

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


def _parts(listed: list[dict[str, Any]]) -> tuple[Frame, Elements]:
    """Chains, rules and sets as they are, without the numbers that the kernel gives; and what is in our sets."""
    frame: Frame = {}
    elements: Elements = {}
    for kind, thing in (pair for item in listed for pair in item.items() if pair[0] != "metainfo"):
        inside = thing.pop("elem", [])
        if kind == "set" and thing["name"] != "flows":  # those change by themselves
            elements[thing["name"]] = {_text(each) for each in inside}
        thing.pop("handle", None)
        frame.setdefault(f"{kind} {thing.get('chain') or thing['name']}", []).append(thing)
    return frame, elements


def _text(element: str | dict[str, list[str | int]]) -> str:
    return element if isinstance(element, str) else " . ".join(str(part) for part in element["concat"])
