"""Members and their permissions. Nobody gives `sandboxes:run` to themselves unless they are the only member."""

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from . import audit, permissions
from .errors import Conflict, Invalid, PermissionDenied
from .models import Agent, Key, Member, Permission, User, Workspace

Holder = Member | Agent


def _actor(by: Member | None) -> audit.Actor:
    return audit.Actor("member", by.pk) if by else audit.SYSTEM


@transaction.atomic
def add(workspace: Workspace, user: User, *, by: Member | None) -> Member:
    """The user's membership, brought back when it was removed. It starts without any permission."""
    member, made = Member.objects.get_or_create(workspace=workspace, user=user)
    if not made:
        if member.removed_at is None:
            raise Conflict(f"{user} is a member of {workspace} already.")
        member.removed_at = None
        member.save(update_fields=["removed_at"])
    audit.append(workspace_id=workspace.pk, actor=_actor(by), event="member.added", subject_id=member.pk)
    return member


@transaction.atomic
def add_by_email(workspace: Workspace, *, email: str, name: str, by: Member) -> tuple[Member, str | None]:
    """The member and, when the user is new, a first password that must change at the first sign-in (shown once)."""
    by_need(by, permissions.MEMBERS_MANAGE)
    user = User.objects.filter(email__iexact=email.strip()).first()
    password = None
    if user is None:
        password = first_password()
        user = User.objects.create_user(email.strip(), password, name=name.strip(), password_must_change=True)
    return add(workspace, user, by=by), password


def first_password() -> str:
    from django.utils.crypto import get_random_string

    return get_random_string(20, "abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789")


def by_need(by: Member, permission: str) -> None:
    if not by.may(permission):
        raise PermissionDenied(
            f"This needs `{permission}` in {by.workspace}. A member with `members:manage` can give it.",
            permission=permission,
        )


@transaction.atomic
def give(holder: Holder, permission: str, *, by: Member | None) -> bool:
    """False when the holder had it. `by` is None only for the first start."""
    if permission not in permissions.ALL:
        raise Invalid(f"There is no permission `{permission}`.", field="permission")
    if by is not None:
        _may_give(holder, permission, by)
    key = "member" if isinstance(holder, Member) else "agent"
    _, made = Permission.objects.get_or_create(
        workspace=holder.workspace, **{key: holder}, name=permission, defaults={"given_by": by}
    )
    if made:
        _audit("permission.given", holder, permission, by)
    return made


def _may_give(holder: Holder, permission: str, by: Member) -> None:
    by_need(by, permissions.MEMBERS_MANAGE)
    if by.workspace_id != holder.workspace_id:
        raise PermissionDenied(f"{by} is no member of {holder.workspace}.")
    if permission == permissions.SANDBOXES_RUN and to_self(holder, by):
        raise PermissionDenied("Nobody gives `sandboxes:run` to themselves. Ask another member with `members:manage`.")


def to_self(holder: Holder, by: Member) -> bool:
    """Whether giving `sandboxes:run` would be giving it to oneself, which only the one member of a workspace may."""
    own = holder == by or (isinstance(holder, Agent) and holder.owner_id == by.pk)
    return own and Member.objects.current().filter(workspace=by.workspace).count() != 1


@transaction.atomic
def take(holder: Holder, permission: str, *, by: Member) -> bool:
    """False when the holder did not have it. The last `members:manage` of a workspace stays."""
    by_need(by, permissions.MEMBERS_MANAGE)
    rows = Permission.objects.filter(name=permission, **{"member" if isinstance(holder, Member) else "agent": holder})
    if not rows.exists():
        return False
    others = Permission.objects.filter(
        workspace=holder.workspace, name=permission, member__removed_at=None, member__isnull=False
    ).exclude(member_id=holder.pk)
    if permission == permissions.MEMBERS_MANAGE and isinstance(holder, Member) and not others.exists():
        raise Conflict(f"{holder} is the last member with `members:manage`. Give it to somebody else first.")
    rows.delete()
    _audit("permission.taken", holder, permission, by)
    return True


def check_may_remove(member: Member, *, by: Member) -> None:
    by_need(by, permissions.MEMBERS_MANAGE)
    if by.workspace_id != member.workspace_id:
        raise PermissionDenied(f"{by} is no member of {member.workspace}.")
    if member == by:
        raise Conflict("You cannot remove yourself. Ask another member with `members:manage`.")


@transaction.atomic
def remove(member: Member, *, by: Member) -> None:
    """Ends the membership, its permissions and its keys, and the sessions of who is a member nowhere else; in other
    workspaces one stays signed in. Pages look at each request, sockets every few seconds."""
    check_may_remove(member, by=by)
    _escalate_no_more_to(member, by=by)
    now = timezone.now()
    Member.objects.filter(pk=member.pk, removed_at=None).update(removed_at=now, away_until=None, deputy=None)
    Key.objects.filter(member=member, revoked_at=None).update(revoked_at=now)
    Permission.objects.filter(member=member).delete()
    if not Member.objects.of(member.user).exists():
        User.objects.filter(pk=member.user_id).update(session_epoch=F("session_epoch") + 1)
    audit.append(workspace_id=member.workspace_id, actor=_actor(by), event="member.removed", subject_id=member.pk)


def _escalate_no_more_to(member: Member, *, by: Member) -> None:
    """A deputy stays named: none at all would mean that nobody is told, and one who is not there is passed over."""
    workspace = Workspace.objects.select_for_update(no_key=True).get(pk=member.workspace_id)
    before = workspace.escalate_to
    if member.pk not in before:
        return
    after = [each for each in before if each != member.pk]
    Workspace.objects.filter(pk=workspace.pk).update(escalate_to=after)
    audit.append(
        workspace_id=workspace.pk, actor=_actor(by), event="workspace.settings_changed", subject_id=workspace.pk,
        before={"escalate_to": before}, after={"escalate_to": after},
    )  # fmt: skip


def _audit(event: str, holder: Holder, permission: str, by: Member | None) -> None:
    audit.append(
        workspace_id=holder.workspace_id, actor=_actor(by), event=event, subject_id=holder.pk, permission=permission
    )
