"""`api`, mounted at /v1/."""

from . import actions, agents, audit, commands, errors, files, keys, me, members, sandboxes
from .body import Parsed
from .document import Api

api = Api(
    title="Sandgate",
    version="1",
    description=(
        "An agent's key proposes; a person or a rule decides; exactly that runs in a gVisor sandbox. "
        "`x-permission`: any one of these opens the call. `x-keys`: which keys it takes. `x-gate`: `approval`, by an "
        "agent's key it is an action that may wait for a person; `recorded`, an action that never asks; `none`."
    ),
    openapi_url=None,  # document.py serves both
    docs_url=None,
    parser=Parsed(),
)
for noun in (sandboxes, commands, files, actions, agents, members, keys, audit, me):
    api.add_router("", noun.router)
errors.install(api)
