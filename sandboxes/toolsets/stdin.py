"""Send bytes to the standard input of a command in the background. The digest binds which command, and every byte."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from approvals import payloads
from console.workspaces import db
from console.workspaces.errors import Invalid
from console.workspaces.models import Agent
from sandboxes.models import Command

from . import arguments as check

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs

NAME, VERSION, KIND = "stdin", 1, "command"
DATA_BYTES = 1 << 20


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    """`data` is bytes. `eof`: nothing comes after it."""
    check.only(arguments, "id", "data", "eof")
    data, command_id = arguments.get("data"), arguments.get("id")
    if not isinstance(data, bytes):
        raise Invalid("`data` is missing.", field="data")
    if len(data) > DATA_BYTES:
        raise Invalid(f"`data` has {len(data)} bytes; the limit is {DATA_BYTES}. Send it in parts.", field="data")
    eof = check.flag(arguments.get("eof", False), field="eof")
    if not data and not eof:
        raise Invalid("`data` is empty and `eof` is not asked for, so there is nothing to send.", field="data")
    return {"id": check.text(command_id, field="id", limit_bytes=40), "data": payloads.pack_bytes(data), "eof": eof}


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    arguments = pass_.arguments
    command = await db.read(Command.objects.get, pk=arguments["id"], sandbox_id=pass_.sandbox_id)
    data = payloads.content(arguments["data"])
    await box.send(pass_, command.action_id, data, end=arguments["eof"])
    return {"id": command.pk, "sent_bytes": len(data), "eof": arguments["eof"]}
