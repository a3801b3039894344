"""That somebody signed in, signed out or changed their password: a row in each workspace that they are a member of."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from console import whence
from console.workspaces import audit, origin

from .shell import memberships


def began(request: Any) -> None:
    """Right after signing in."""
    request.session["signed_in_at"] = timezone.now().isoformat(timespec="seconds")
    record(request, "member.signed_in")


def record(request: Any, event: str) -> None:
    members = memberships(request.user)
    with origin.given(whence.of_person(request, *members)), transaction.atomic():
        for member in members:
            audit.append(
                workspace_id=member.workspace_id, actor=audit.Actor("member", member.pk), event=event,
                subject_id=member.pk,
            )  # fmt: skip
