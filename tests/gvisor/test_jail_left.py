"""What a killed console leaves of its network jail is cleared by `bin/`, and nobody else's."""

import shutil
from pathlib import Path

from console import state
from lib import jail
from lib.place import Place
from sandboxes.engine import hostnet
from sandboxes.engine.forwarding import Forwarding
from sandboxes.engine.hostnet import tool

from .netspaces import in_own_namespace


def test_table_bridges_and_forwarding_of_this_instance_go_and_a_neighbours_stay(tmp_path: Path) -> None:
    mine, theirs = Place(var=tmp_path / "a", cache=tmp_path), Place(var=tmp_path / "b", cache=tmp_path)

    async def test() -> None:
        tool("sysctl", "-qw", "net.ipv4.ip_forward=0")
        tool("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1")
        for place in (mine, theirs):
            tool("nft", "add", "table", "inet", state.table_name(place.instance))
            tool("ip", "link", "add", f"{state.bridge_prefix(place.instance)}000", "type", "bridge")
        Forwarding(mine.run).turn(["up0"], [])
        assert hostnet.switch("up0")
        jail.clear(mine)
        assert not hostnet.switch("up0")
        links = {link["ifname"] for link in hostnet.asked("link")}
        assert f"{state.bridge_prefix(mine.instance)}000" not in links
        assert f"{state.bridge_prefix(theirs.instance)}000" in links
        assert tool("nft", "list", "tables").split() == ["table", "inet", state.table_name(theirs.instance)]
        jail.clear(mine)  # nothing there any more

    try:
        in_own_namespace(test)
    finally:
        shutil.rmtree(mine.run, ignore_errors=True)


def test_forwarding_that_somebody_turned_on_since_stays(tmp_path: Path) -> None:
    async def test() -> None:
        tool("sysctl", "-qw", "net.ipv4.ip_forward=1")
        tool("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1")
        record = tmp_path / "forwarding"
        record.write_text("up0")
        jail.restore(record)
        assert hostnet.switch("up0")
        assert not record.exists()

    in_own_namespace(test)
