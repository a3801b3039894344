"""Which addresses sandboxes get, and whom they may ask for names: decided without Docker, from what the host has."""

import asyncio
import os
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from sandboxes.engine import Engine, EngineConfig, lanes, resolvers, rules
from sandboxes.engine.hostnet import NetworkFault
from sandboxes.engine.rules import Jailed, Lane, Opening
from sandboxes.errors import NoRuntime

BLOCK = IPv4Network("10.170.0.0/20")


def networks(*texts: str) -> list[IPv4Network]:
    return [IPv4Network(text) for text in texts]


@pytest.mark.parametrize(
    "taken",
    [
        [],
        networks("10.0.0.0/8"),
        networks("10.0.0.0/8", "172.16.0.0/12"),
        networks("192.168.0.0/24", "172.17.0.0/16", "10.160.0.0/12"),
        [IPv4Network(f"10.{second}.{third}.1/32") for second in range(160, 192) for third in range(0, 250, 16)],
    ],
)
def test_the_block_is_where_the_host_has_nothing(taken: list[IPv4Network]) -> None:
    block = lanes.free_block("one", taken)
    assert (block.prefixlen, any(block.overlaps(other) for other in taken)) == (20, False)
    assert any(block.subnet_of(IPv4Network(wide)) for wide in rules.BLOCKED)


def test_a_vpn_that_takes_all_private_addresses_leaves_room_for_smaller_routes() -> None:
    vpn = networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
    own = [*vpn, *networks("10.160.0.0/12")]
    block = lanes.free_block("one", [*own, *networks(str(lanes.free_block("one", own)))])
    assert block != lanes.free_block("one", own)


def test_without_any_room_it_says_so() -> None:
    with pytest.raises(NetworkFault, match="in use"):
        lanes.free_block("one", [block for wide in lanes.RANGES for block in IPv4Network(wide).subnets(new_prefix=20)])


def test_instances_begin_at_different_places_and_each_at_the_same() -> None:
    assert len({lanes.free_block(f"instance {number}", []) for number in range(20)}) > 15
    assert lanes.free_block("one", []) == lanes.free_block("one", [])


def test_what_the_host_routes_is_read_from_the_kernel() -> None:
    found = lanes.in_use()
    assert IPv4Network("127.0.0.0/8") in found or IPv4Network("127.0.0.1/32") in found
    assert IPv4Network("0.0.0.0/0") not in found


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.delenv(resolvers.SETTING, raising=False)
    first, second = tmp_path / "resolv.conf", tmp_path / "behind.conf"
    first.write_text("# ours\nsearch lan\nnameserver 127.0.0.53\nnameserver ::1\nnameserver fe80::1%eth0\n")
    return first, second


def test_loopback_and_ipv6_servers_are_passed_over_for_those_behind(files: tuple[Path, Path]) -> None:
    files[1].write_text("nameserver 192.168.1.1\n  nameserver\t9.9.9.9\n#nameserver 8.8.8.8\nnameserver 2620:fe::fe\n")
    assert resolvers.chosen(files) == ("192.168.1.1", "9.9.9.9")


def test_without_a_server_nobody_elses_is_taken(files: tuple[Path, Path]) -> None:
    with pytest.raises(NoRuntime, match=resolvers.SETTING):
        resolvers.chosen(files)


def test_what_is_chosen_holds(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(resolvers.SETTING, " 10.1.1.1, 10.1.1.2 10.1.1.3,10.1.1.4 ")
    assert resolvers.chosen(files) == ("10.1.1.1", "10.1.1.2", "10.1.1.3")


@pytest.mark.parametrize("word", ["127.0.0.1", "::1", "dns.example", "10.1.1.1/24", "0.0.0.0", "169.254.0.1; accept"])
def test_what_no_sandbox_could_ask_is_named(
    word: str, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(resolvers.SETTING, word)
    with pytest.raises(NoRuntime, match="Correct it"):
        resolvers.chosen(files)


def jailed(**changes: object) -> Jailed:
    lane = Lane("sbx_a", "n", "sgn000", "10.170.0.2", "10.170.0.1", IPv4Network("10.170.0.0/30"))
    return Jailed("one", BLOCK, ("10.1.1.1",), (lane,), **changes)  # type: ignore[arg-type]


def test_every_range_that_is_not_public_is_refused_to_its_last_address() -> None:
    refused = rules.chains(jailed())["from_sandbox"]
    for block in rules.BLOCKED:
        assert f"ip daddr {block} goto refused" in refused
    private = [IPv4Network(block) for block in rules.BLOCKED]
    for address in ("255.255.255.255", "240.0.0.0", "239.255.255.255", "100.127.255.255", "172.31.255.255"):
        assert any(IPv4Network(address).subnet_of(block) for block in private)


def test_no_rule_that_refuses_looks_into_a_set_of_its_own() -> None:
    """While rules are replaced the kernel finds such a set empty: what would be refused passes."""
    for chain in rules.chains(jailed()).values():
        for rule in chain:
            if "{" in rule and rule.endswith((" drop", " goto refused")):
                assert "!=" in rule or "@flows" in rule, rule


def test_a_new_sandbox_changes_elements_only_and_none_that_stay() -> None:
    before = jailed(openings={"sbx_a": [Opening("10.9.0.2", "tcp", 80)]})
    other = Lane("sbx_b", "m", "sgn001", "10.170.0.6", "10.170.0.5", IPv4Network("10.170.0.4/30"))
    after = Jailed("one", BLOCK, before.resolvers, (*before.lanes, other), before.openings)
    assert rules.changes(before, after) == "add element inet sandgate_one live { sgn001 . 10.170.0.6 }"
    assert rules.changes(after, before) == "delete element inet sandgate_one live { sgn001 . 10.170.0.6 }"
    assert rules.changes(before, before) == ""


@pytest.mark.parametrize("name", ['eth0" accept', "a name", "", "x" * 16])
def test_an_odd_interface_name_becomes_no_rule(name: str) -> None:
    with pytest.raises(ValueError, match="interface"):
        rules.chains(jailed(guarded=[name]))


@pytest.mark.parametrize(("user", "docker"), [(1000, "unix:///run/docker.sock"), (0, "tcp://192.168.1.9:2376")])
def test_without_root_on_dockers_own_machine_there_is_only_none(
    user: int, docker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    config = EngineConfig(docker, "runsc", "image", "one", tmp_path, tmp_path)

    async def asked() -> None:
        engine = Engine(config)
        assert not engine.can_network
        await engine.network_ready()

    with pytest.raises(NoRuntime, match="need root on Docker's own machine"):
        asyncio.run(asked())
