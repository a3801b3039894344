"""`api`, mounted at /v1/."""

from . import (
    actions,
    agents,
    artifacts,
    audit,
    commands,
    errors,
    events,
    exceptions,
    files,
    grants,
    halts,
    incidents,
    keys,
    me,
    members,
    packs,
    plans,
    raw_files,
    rules,
    sandboxes,
    tools,
    webhooks,
    workspace,
)
from .body import Parsed
from .document import Api

api = Api(
    title="Sandgate",
    version="1",
    description=(
        "Sandboxes for AI agents, behind a gate: an agent's key proposes, a person or a rule decides, and exactly that "
        "runs, in gVisor.\n\n"
        "Send a key, as `X-API-Key: …` or `Authorization: Bearer …`. An **agent's key** sees and touches what is its "
        "agent's; its commands and writes are actions that may wait for a person. A **workspace key** does what it was "
        "given and its member still may; it is recorded and never asked.\n\n"
        "A call that waits longer than 100 s for its reviewer is answered 409 `pending_approval` with an `action_id`. "
        "Make the same call again, which joins the action, or follow it at `/v1/actions/{action_id}?wait=55`.\n\n"
        'Every refusal is `{"detail": "…", "code": "…"}` with fields of its own; `code` is stable. Times are UTC. '
        "Lists are pages: `next_cursor` of one is `cursor` of the next.\n\n"
        "For programs, each operation has `x-permission` (any one of these opens it), `x-keys` and `x-gate`."
    ),
    openapi_url=None,  # document.py serves both
    docs_url=None,
    parser=Parsed(),
)
for noun in (
    sandboxes, commands, events, files, raw_files, artifacts, tools, actions, plans, agents, halts, exceptions, packs,
    rules, grants, members, keys, audit, incidents, webhooks, workspace, me,
):  # fmt: skip
    api.add_router("", noun.router)
errors.install(api)
