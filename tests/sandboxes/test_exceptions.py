import pytest

from console.workspaces import audit
from console.workspaces.errors import Conflict, Invalid, NotFound, PermissionDenied
from console.workspaces.models import AuditEntry
from sandboxes import exceptions, lifecycle
from sandboxes.engine import Opening
from sandboxes.models import NetworkException, Sandbox
from sandboxes.profiles import NewSandbox

DATABASE = {"address": "10.1.2.3", "protocol": "tcp", "port": 5432}


def networked(caller):
    return lifecycle.make(caller, NewSandbox(network="public"), image_id="sha256:1", can_network=True)


def test_it_is_open_to_the_live_sandboxes_of_that_agent_alone(cast):
    mine, gone = networked(cast.caller(cast.scout)), networked(cast.caller(cast.scout))
    others = networked(cast.caller(cast.other))
    quiet = lifecycle.make(cast.caller(cast.scout), NewSandbox(network="none"), image_id="i", can_network=True)
    exceptions.make(cast.scout, by=cast.alice, **DATABASE)
    lifecycle.end(gone, "idle")
    assert exceptions.for_sandboxes() == {mine.pk: [Opening("10.1.2.3", "tcp", 5432)]}
    assert {others.pk, quiet.pk}.isdisjoint(exceptions.for_sandboxes())


def test_ended_it_is_open_to_nobody_and_stays_as_a_record(cast):
    sandbox = networked(cast.caller(cast.scout))
    made = exceptions.make(cast.scout, by=cast.alice, reason="reports", **DATABASE)
    assert sandbox.pk in exceptions.for_sandboxes()
    exceptions.end(made, by=cast.alice)
    assert exceptions.for_sandboxes() == {}
    assert NetworkException.objects.get(pk=made.pk).ended_at is not None
    with pytest.raises(NotFound):
        exceptions.end(made, by=cast.alice)
    again = exceptions.make(cast.scout, by=cast.alice, **DATABASE)
    assert again.pk != made.pk


def test_both_ends_are_in_the_audit_log(cast):
    made = exceptions.make(cast.scout, by=cast.alice, reason="reports", **DATABASE)
    exceptions.end(made, by=cast.alice)
    rows = AuditEntry.objects.filter(event__startswith="agent.network_exception").order_by("seq")
    assert [row.event.rsplit("_", 1)[1] for row in rows] == ["made", "ended"]
    for row in rows:
        assert (row.actor_id, row.subject_id) == (cast.alice.pk, cast.scout.pk)
        assert row.data == {"exception": made.pk, "reason": "reports", **DATABASE}
    cast.workspace.refresh_from_db()
    assert not list(audit.broken_links(cast.workspace))


def test_only_a_member_who_manages_agents_makes_or_ends_one(cast):
    with pytest.raises(PermissionDenied, match="agents:manage"):
        exceptions.make(cast.scout, by=cast.bob, **DATABASE)
    made = exceptions.make(cast.scout, by=cast.alice, **DATABASE)
    with pytest.raises(PermissionDenied):
        exceptions.end(made, by=cast.bob)
    assert NetworkException.objects.get().ended_at is None


def test_the_same_destination_twice_is_a_conflict(cast):
    exceptions.make(cast.scout, by=cast.alice, **DATABASE)
    with pytest.raises(Conflict, match="already"):
        exceptions.make(cast.scout, by=cast.alice, **DATABASE)
    exceptions.make(cast.scout, by=cast.alice, **DATABASE | {"protocol": "udp"})
    exceptions.make(cast.other, by=cast.alice, **DATABASE)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "10.0.0.0/8", "10.1.2.03", "10.1.2",
        "0x0a010203", "::1", "::ffff:10.1.2.3", "db.example", "", " 10.1.2.3", "10.1.2.3 }; flush ruleset", "１0.1.2.3",
    ],
)  # fmt: skip
def test_an_address_is_one_of_another_machine_in_one_spelling(cast, address):
    with pytest.raises(Invalid) as refusal:
        exceptions.make(cast.scout, by=cast.alice, **DATABASE | {"address": address})
    assert refusal.value.fields == {"field": "address"}


METADATA_HOSTS = ["169.254.169.254", "169.254.170.2", "169.254.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192"]


@pytest.mark.parametrize("address", [*METADATA_HOSTS, "fd00:ec2::254", "::ffff:169.254.169.254", "2852039166"])
def test_a_metadata_service_is_opened_to_nobody_also_not_by_a_row_from_before(cast, address):
    with pytest.raises(Invalid, match="metadata services|one IPv4 address") as refusal:
        exceptions.make(cast.scout, by=cast.alice, **DATABASE | {"address": address})
    assert refusal.value.fields == {"field": "address"}
    if address in METADATA_HOSTS:
        networked(cast.caller(cast.scout))
        cast.scout.network_exceptions.create(address=address, protocol="tcp", port=80, made_by=cast.alice)
        assert exceptions.for_sandboxes() == {}


@pytest.mark.parametrize(("address", "says"), [("240.0.0.1", "no address of another"), ("93.184.215.14", "is public")])
def test_what_makes_no_sense_to_open_is_said(cast, address, says):
    with pytest.raises(Invalid, match=says):
        exceptions.make(cast.scout, by=cast.alice, **DATABASE | {"address": address})


def test_of_public_addresses_only_ports_that_are_closed_everywhere_are_opened(cast):
    exceptions.make(cast.scout, by=cast.alice, address="93.184.215.14", protocol="tcp", port=25)


def test_the_sandboxes_own_addresses_are_opened_to_no_sandbox(cast, monkeypatch):
    monkeypatch.setattr(exceptions, "_sandbox_block", lambda: "10.170.0.0/18")
    for address in ("10.170.0.1", "10.170.63.254"):
        with pytest.raises(Invalid, match="sandboxes' own"):
            exceptions.make(cast.scout, by=cast.alice, **DATABASE | {"address": address})
    exceptions.make(cast.scout, by=cast.alice, **DATABASE | {"address": "10.170.64.1"})


@pytest.mark.parametrize(("field", "value"), [("protocol", "icmp"), ("port", 0), ("port", 65536)])
def test_protocol_and_port_are_named_when_wrong(cast, field, value):
    with pytest.raises(Invalid) as refusal:
        exceptions.make(cast.scout, by=cast.alice, **DATABASE | {field: value})
    assert refusal.value.fields == {"field": field}
    assert not Sandbox.objects.exists()


def test_there_is_a_most(cast, monkeypatch):
    monkeypatch.setattr(exceptions, "MOST", 1)
    exceptions.make(cast.scout, by=cast.alice, **DATABASE)
    with pytest.raises(Conflict, match="End one"):
        exceptions.make(cast.scout, by=cast.alice, **DATABASE | {"port": 1})
