"""What an agent is told of a decision: the same words in its answer and on the reviewer's page."""

from .models import Action


def denied(action: Action) -> str:
    return f"This was denied and not run. Reason: {action.end_reason}"
