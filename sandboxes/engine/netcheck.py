"""What doctor says of the network: a sandbox that has one, made by the engine's own way, and its jail read back.

Must never run anything in it: it has no Pass. What the jail lets through is shown by tests; here, that it is in place.
"""

import secrets
from dataclasses import replace

from sandboxes.errors import SandboxError

from .engine import Engine
from .machine import Check
from .shapes import BoxSpec

FIX = "Install nftables, let the firewall pass Sandgate's bridges, or ask for `network: none` alone."


async def check(engine: Engine, spec: BoxSpec) -> Check:
    """`spec`: what to make besides its network."""
    if not engine.can_network:
        return Check("network", True, "none: without root on Docker's own machine sandboxes get `network: none` only")
    try:
        await engine.network_ready()
        box = await engine.create(replace(spec, sandbox_id=f"sbx_doctor{secrets.token_hex(4)}", network="public"))
        try:
            await engine.network.verify(box.sandbox_id)
        finally:
            await engine.remove(box.container_id)
    except SandboxError as error:
        return Check("network", False, error.detail, FIX)
    asked = ", ".join(engine.network.resolvers)
    return Check("network", True, f"a sandbox at {box.address} is jailed; it asks {asked} for names")
