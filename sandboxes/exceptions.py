"""Private destinations that an admin opened to one agent's sandboxes. Rows only, plain ORM for `db.read`/`db.write`.

A row that was committed holds in the jail within two seconds, and so does its end. Must never be deleted: what was open
when is the record. Whoever's sandbox it is decides, so what waits in the pool has none until it is claimed.
"""

from __future__ import annotations

from collections import defaultdict
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import cast

from django.db import IntegrityError, transaction
from django.utils import timezone

from console.workspaces import audit, permissions
from console.workspaces.errors import Conflict, Invalid, NotFound
from console.workspaces.members import by_need
from console.workspaces.models import Agent, Member

from .engine import BLOCKED, CLOSED, Opening, Protocol
from .models import NetworkException, Sandbox

PROTOCOLS = ("tcp", "udp")
MOST = 100
METADATA = tuple(map(IPv4Network, ("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")))
"""Of all link-local addresses, and of Alibaba, Azure and Oracle. What answers there must never be opened."""
NOWHERE = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4")))


@transaction.atomic
def make(agent: Agent, *, address: str, protocol: str, port: int, by: Member, reason: str = "") -> NetworkException:
    """Opens it, from now until `end`."""
    by_need(by, permissions.AGENTS_MANAGE)
    if protocol not in PROTOCOLS:
        raise Invalid(f"`protocol` is tcp or udp, not {protocol}.", field="protocol")
    if not 1 <= port <= 65535:
        raise Invalid(f"`port` is 1 to 65535, not {port}.", field="port")
    address = checked(address, port)
    if NetworkException.objects.filter(agent=agent, ended_at=None).count() >= MOST:
        raise Conflict(f"{agent.name} has {MOST} network exceptions, the most there may be. End one first.")
    try:
        with transaction.atomic():
            made = NetworkException.objects.create(
                agent=agent, address=address, protocol=protocol, port=port, reason=reason, made_by=by
            )
    except IntegrityError as error:
        raise Conflict(f"{address}:{port}/{protocol} is open to {agent.name} already.") from error
    _audit(made, by, "agent.network_exception_made")
    return made


def checked(address: str, port: int) -> str:
    """One IPv4 address of another machine, in its one spelling, that needs to be opened and may be."""
    try:
        found = IPv4Address(address)
    except AddressValueError as error:
        raise Invalid(f"`address` is one IPv4 address, such as 10.1.2.3, not {address!r}.", field="address") from error
    if why := _never(found) or _needless(found, port):
        raise Invalid(f"{found} cannot be opened: {why}", field="address")
    return str(found)


def _never(address: IPv4Address) -> str:
    if any(address in network for network in METADATA):
        return "metadata services of clouds answer there, with credentials of the machine."
    if any(address in network for network in NOWHERE):
        return "it is no address of another machine, so no sandbox could reach it."
    if (block := _sandbox_block()) and address in IPv4Network(block):
        return f"{block} is the sandboxes' own, and no sandbox reaches another."
    return ""


def _needless(address: IPv4Address, port: int) -> str:
    """Of public addresses only the ports that are closed everywhere: of mail and of name servers."""
    if port in {closed for _, closed in CLOSED} or any(address in IPv4Network(blocked) for blocked in BLOCKED):
        return ""
    return "it is public, and sandboxes with a public network reach it anyway."


def _sandbox_block() -> str:
    from . import host  # which is made of what imports this

    return host.current.boxes.network_block if host.current else ""


@transaction.atomic
def end(exception: NetworkException, *, by: Member) -> None:
    """Closes it, also for connections that it let through. NotFound when somebody else has."""
    by_need(by, permissions.AGENTS_MANAGE)
    if not NetworkException.objects.filter(pk=exception.pk, ended_at=None).update(ended_at=timezone.now()):
        raise NotFound("network exception", exception.pk)
    _audit(exception, by, "agent.network_exception_ended")


def find(agent: Agent, exception_id: str) -> NetworkException:
    found = NetworkException.objects.filter(agent=agent, pk=exception_id, ended_at=None).select_related("agent").first()
    if found is None:
        raise NotFound("network exception", exception_id)
    return found


def for_sandboxes() -> dict[str, list[Opening]]:
    """What is open now, by sandbox: what the jail is made of."""
    by_agent: dict[str, list[Opening]] = defaultdict(list)
    for row in NetworkException.objects.filter(ended_at=None):
        if not _never(IPv4Address(row.address)):  # as it may have been opened before that was refused
            by_agent[row.agent_id].append(Opening(row.address, cast(Protocol, row.protocol), row.port))
    if not by_agent:
        return {}
    live = Sandbox.objects.live().filter(network="public", agent_id__in=by_agent)
    return {sandbox_id: by_agent[agent_id] for sandbox_id, agent_id in live.values_list("pk", "agent_id")}


def _audit(exception: NetworkException, by: Member, event: str) -> None:
    audit.append(
        workspace_id=exception.agent.workspace_id, actor=audit.Actor("member", by.pk), event=event,
        subject_id=exception.agent_id, exception=exception.pk, address=exception.address,
        protocol=exception.protocol, port=exception.port, reason=exception.reason,
    )  # fmt: skip
