"""Which actions an action came out of: that of a sub-agent's parent, or the approval that it carries over.

Owns the chain that a card shows. Must never lead out of the agent, or the workspace, whose action it is.
"""

from .models import Action

LONGEST = 20


def chain(action: Action) -> list[Action]:
    """Its parents, the oldest first. Ends at what is gone or is another agent's: old rows may name anything."""
    found: list[Action] = []
    own = Action.objects.filter(workspace_id=action.workspace_id, agent_id=action.agent_id)
    seen, parent_id = {action.pk}, action.parent_action
    while parent_id and parent_id not in seen and len(found) < LONGEST:
        seen.add(parent_id)
        parent = own.filter(pk=parent_id).select_related("agent").first()
        if parent is None:
            break
        found.insert(0, parent)
        parent_id = parent.parent_action
    return found
