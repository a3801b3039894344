"""Making, turning and ending webhooks: who may, what is refused, and what is on record."""

import pytest
from django.db import IntegrityError

from approvals.notices import acts
from approvals.notices.models import Webhook
from console.workspaces import members, permissions
from console.workspaces.errors import Invalid, PermissionDenied
from console.workspaces.models import AuditEntry


@pytest.mark.parametrize(
    ("kind", "target", "field"),
    [
        ("plain", "http://example.com/", "target"),
        ("plain", "https://user:pw@example.com/", "target"),
        ("email", "not an address", "target"),
        ("email", "a@example.test\nBcc: b@example.test", "target"),
        ("ntfy", "https://ntfy.sh/", "target"),
        ("pigeon", "https://example.com/", "kind"),
    ],
)
def test_what_cannot_be_told_is_refused_by_name(cast, kind, target, field):
    with pytest.raises(Invalid) as refused:
        acts.make(kind=kind, target=target, by=cast.alice)
    assert refused.value.fields["field"] == field
    assert not Webhook.objects.exists()


def test_only_who_manages_the_workspace_makes_one_and_only_reviewers_are_mailed(cast):
    with pytest.raises(PermissionDenied):
        acts.make(kind="plain", target="https://example.com/", by=cast.bob)
    members.take(cast.bob, permissions.APPROVALS_REVIEW, by=cast.alice)
    with pytest.raises(PermissionDenied):
        acts.set_own_email(on=True, by=cast.bob)


def test_addresses_are_on_no_record_because_chats_keep_passwords_in_them(cast):
    hook = acts.make(kind="slack", target="https://hooks.slack.test/services/T0/B0/SECRET", by=cast.alice)
    acts.turn(hook, on=False, by=cast.alice)
    acts.end(hook, by=cast.alice)
    rows = AuditEntry.objects.filter(subject_id=hook.pk).order_by("seq")
    assert [row.event for row in rows] == ["webhook.made", "webhook.disabled", "webhook.ended"]
    assert "SECRET" not in str(list(rows.values()))
    assert rows[0].data["host"] == "hooks.slack.test"


def test_a_secret_is_in_no_column(cast):
    hook = acts.make(kind="plain", target="https://example.com/", by=cast.alice)
    again = Webhook.objects.get(pk=hook.pk)
    assert again.secret == hook.secret
    assert hook.secret.removeprefix("whsec_") not in str(Webhook.objects.values().get())
    other = acts.make(kind="plain", target="https://example.com/", by=cast.alice)
    assert other.secret != hook.secret


def test_the_database_keeps_one_own_email_a_reviewer(cast):
    acts.set_own_email(on=True, by=cast.bob)
    assert not acts.set_own_email(on=True, by=cast.bob)
    with pytest.raises(IntegrityError):
        Webhook.objects.create(workspace=cast.workspace, kind="email", owner=cast.bob, member=cast.bob)
