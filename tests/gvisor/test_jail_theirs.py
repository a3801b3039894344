"""A Docker of the user's that keeps iptables itself, as it comes: forwarding on, policy DROP, rules for each bridge.
In a network namespace of its own, so that nothing of this machine's is touched."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from lib.daemon import OwnDaemon
from lib.place import Place
from sandboxes.engine import Box, BoxSpec, Engine, RunRequest, WriteRequest
from sandboxes.engine.hostnet import tool
from sandboxes.errors import NoRuntime

from .engines import Collected, OnePass, new_config, new_id
from .netspaces import BEYOND, PROBES, PUBLIC, RESOLVER, Net, in_own_namespace

DOCKER0 = "172.17.0.1"


class Theirs(OwnDaemon):
    def _configure(self, runtimes: Mapping[str, Any]) -> bool:
        super()._configure(runtimes)
        ours = json.loads(self.config_file.read_text())
        self.config_file.write_text(
            json.dumps({k: ours[k] for k in ours if k not in ("iptables", "bridge", "ip-forward")})
        )
        return False


async def opened(box: Box, *targets: tuple[str, str, int]) -> set[str]:
    async def source() -> AsyncIterator[bytes]:
        yield PROBES.read_bytes()

    await box.write(OnePass(box.sandbox_id, "write"), WriteRequest(path="/work/probes.py", size=None), source())
    request = RunRequest(argv=["python3", "/work/probes.py", "probe", json.dumps(targets)], timeout_s=60)
    await box.run(OnePass(box.sandbox_id, "run"), request, said := Collected())
    return {name for name, answered in json.loads(said.stdout).items() if answered}


def test_beside_dockers_own_rules_sandboxes_reach_the_internet_alone_and_a_firewall_in_the_way_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDGATE_RESOLVERS", RESOLVER)
    known = new_config(tmp_path)
    here = docker.DockerClient(base_url=known.docker_host)
    runtime = {key: value for key, value in here.info()["Runtimes"][known.runtime].items() if value}

    async def test() -> None:
        net, theirs = Net(), Theirs(Place(var=tmp_path, cache=tmp_path))
        try:
            theirs.start({known.runtime: runtime})
            image = here.images.get(known.image).save(named=True)
            docker.DockerClient(base_url=theirs.address).images.load(image)
            engine = Engine(replace(known, docker_host=theirs.address, instance=theirs.place.instance))
            await on(engine, net, known.image)
            await engine.close()
            assert "sandgate" not in tool("nft", "list", "tables")
        finally:
            theirs.stop()
            net.close()

    in_own_namespace(test)


async def on(engine: Engine, net: Net, image: str) -> None:
    assert "-P FORWARD DROP" in tool("iptables", "-S")
    await engine.start()
    box = await engine.create(BoxSpec(sandbox_id=new_id(), image=image, network="public"))
    targets = [(protocol, address, 80) for protocol in ("tcp", "udp", "icmp") for address in (*BEYOND, DOCKER0)]
    with net.serving(*[(net.beyond, address) for address in BEYOND], ("", DOCKER0)):
        assert await opened(box, *targets) == {f"{protocol} {PUBLIC} 80" for protocol in ("tcp", "udp", "icmp")}
    await engine.remove(box.container_id)
    lane = await engine.network.make(new_id())
    tool("iptables", "-F", "FORWARD")  # and now nothing lets it pass
    await engine.network.look({})
    with pytest.raises(NoRuntime, match=r"iptables -I FORWARD -i sgn\+ -j ACCEPT"):
        await engine.network.admit(lane)
    tool("iptables", "-I", "FORWARD", "-i", "sgn+", "-j", "ACCEPT")
    tool("iptables", "-I", "FORWARD", "-o", "sgn+", "-j", "ACCEPT")
    await engine.network.admit(lane)
    await engine.network.remove(lane.sandbox_id)
