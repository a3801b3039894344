"""What is done about once an hour, beside the clock: heads of the audit chains go out, and what was kept long enough
goes. Slow places must hold up nothing: this loop has a task of its own, and one act that fails keeps no other from it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from django.conf import settings

from console.workspaces import audit_heads

from . import retention

log = logging.getLogger("sandgate.hourly")
FIRST_S, EVERY_S = 20, 3600
ACTS: tuple[tuple[str, Callable[[], Awaitable[None]]], ...] = (
    ("Sending heads of the audit log", audit_heads.send),
    ("Removing outputs that were kept long enough", retention.sweep),
)


async def run() -> None:
    await asyncio.sleep(FIRST_S / settings.TIMER_DIVISOR)
    while True:
        for what, act in ACTS:
            try:
                await act()
            except Exception:  # a boundary: the next hour tries again, and the others are not to blame
                log.exception("%s failed; it is tried again in an hour.", what)
        await asyncio.sleep(EVERY_S / settings.TIMER_DIVISOR)
