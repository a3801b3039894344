"""What real sandboxes reach and do not, from inside, as `agent`; with the jail, without it, and in between."""

import errno
import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

import pytest

from console.state import bridge_prefix, table_name
from sandboxes.engine import Box, Engine, Opening, hostnet, network
from sandboxes.engine.hostnet import tool
from sandboxes.errors import NoRuntime

from . import hosts
from .engines import Bench, new_config, new_id
from .hosts import HERE, OTHER_PORT, PORT, PUBLIC, RANGES, RESOLVER
from .netspaces import PROBES
from .served import until

PRIVATE, METADATA = RANGES["10/8"], RANGES["metadata"]
Target = tuple[str, str, int]


def every(address: str, port: int = PORT) -> list[Target]:
    return [(protocol, address, port) for protocol in ("tcp", "udp", "icmp")]


def names(*targets: Target) -> set[str]:
    return {" ".join(str(word) for word in target) for target in targets}


class Jailed(Bench):
    """A bench whose jail is looked after when a test says so, and whose openings are a test's."""

    openings: Mapping[str, list[Opening]] = {}

    def look(self) -> None:
        self.do(self.engine.network.look(self.openings))

    def opened(self, box: Box, *targets: Target) -> set[str]:
        """Which of them answer `agent` in there."""
        ran = self.run(box, "python3", "/work/probes.py", "probe", json.dumps(targets))
        assert ran.code == 0, ran.err
        return {name for name, answered in json.loads(ran.out).items() if answered}

    def networked(self, **changes: object) -> Box:
        box = self.create(network="public", **changes)
        self.write(box, "/work/probes.py", PROBES.read_bytes())
        return box


def left_on_host(instance: str) -> list[str]:
    tables = tool("nft", "list", "tables").splitlines()
    links = [link["ifname"] for link in hostnet.asked("link")]
    return [name for name in tables if table_name(instance) in name] + [
        name for name in links if name.startswith(bridge_prefix(instance))
    ]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jailed]:
    with pytest.MonkeyPatch.context() as patch, hosts.beyond() as space, ExitStack() as servers:
        patch.setenv("SANDGATE_RESOLVERS", RESOLVER)
        patch.setattr(network, "LOOK_EVERY_S", 3600.0)
        patch.setattr(network, "AT_MOST_EVERY_S", 3600.0)
        far = [[space, address, port] for address in (PUBLIC, *RANGES.values()) for port in (PORT, OTHER_PORT)]
        servers.enter_context(hosts.running("serve", far))
        servers.enter_context(hosts.running("names", [space, RESOLVER, hosts.ZONE]))
        bench = Jailed(new_config(tmp_path_factory.mktemp("var")))
        try:
            bench.do(bench.engine.start())
            yield bench
        finally:
            bench.close()
    assert bench.left_over() == []
    assert left_on_host(bench.config.instance) == []


@pytest.fixture(scope="module")
def one(bench: Jailed) -> Box:
    return bench.networked()


@pytest.fixture(scope="module")
def two(bench: Jailed) -> Box:
    return bench.networked()


@pytest.fixture(scope="module")
def around(bench: Jailed, one: Box, two: Box) -> Iterator[dict[str, str]]:
    """Services on this machine and in the other sandbox, by what they stand for."""
    gateways = [lane.gateway for lane in bench.engine.network._lanes.known.values()]
    near = dict(zip(("gateway", "another's gateway"), gateways, strict=True))
    near |= {f"host's own {address}": address for address in hosts.own_addresses()}
    serve = shlex.quote(json.dumps([["", two.address, PORT]]))
    bench.bash(two, f"python3 /work/probes.py serve {serve} > /work/serving & until [ -s /work/serving ]; do :; done")
    with hosts.running("serve", [["", address, PORT] for address in near.values()]):
        yield near | {"another sandbox": two.address or ""}


def test_a_sandbox_reaches_the_internet_and_nothing_else_and_without_the_jail_it_would(
    bench: Jailed, one: Box, around: dict[str, str]
) -> None:
    targets = [target for address in (PUBLIC, *RANGES.values(), *around.values()) for target in every(address)]
    assert bench.opened(one, *targets) == names(*every(PUBLIC))
    repairs = bench.engine.network.repairs
    tool("nft", "delete", "table", "inet", table_name(bench.config.instance))
    try:
        assert bench.opened(one, *targets) == names(*targets)  # so it is the jail, and a flushed one is open
    finally:
        bench.look()
    assert bench.engine.network.repairs == repairs + 1
    assert bench.opened(one, *targets) == names(*every(PUBLIC))


def test_addresses_of_nobody_answer_nobody(bench: Jailed, one: Box) -> None:
    own6 = [each["local"] for link in hostnet.asked("-6", "addr") for each in link["addr_info"]]
    odd = ["0.0.0.0", "255.255.255.255", "224.0.0.251", "127.0.0.1", "::1", "ff02::1", "fd00::1", "64:ff9b::a9fe:a9fe"]
    tried = [
        (protocol, address, port) for address in (*odd, *own6) for protocol in ("tcp", "udp") for port in (PORT, 22)
    ]
    assert bench.opened(one, *tried) == set()


def test_metadata_is_closed_in_every_spelling(bench: Jailed, one: Box) -> None:
    """For the client that leaves the spelling to the C library, and for the one that reads it itself."""
    spellings = ["169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "169.16689662"]
    six = ["::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::169.254.169.254", "64:ff9b::169.254.169.254"]
    assert bench.opened(one, *[("tcp", spelling, PORT) for spelling in (*spellings, *six)]) == set()
    hosts_in_urls = [*spellings, *(f"[{address}]" for address in six), "①⑥⑨.254.169.254"]
    urls = " ".join(shlex.quote(f"http://{host}:{PORT}/") for host in hosts_in_urls)
    ran = bench.bash(one, f"for url in {urls}; do curl -gsS --http0.9 -m 3 $url && echo; echo $?; done")
    assert b"here" not in ran.out
    assert "0" not in ran.text.split()
    # The same spellings lead somewhere when they name what is open.
    ran = bench.bash(
        one, f"for url in http://184549378:{PORT}/ http://0xb000002:{PORT}/; do curl -sS --http0.9 -m 3 $url; done"
    )
    assert ran.out.count(b"here") == 2


def test_names_are_resolved_and_an_address_counts_not_its_name(bench: Jailed, one: Box) -> None:
    ran = bench.bash(
        one, "cat /etc/resolv.conf; getent ahostsv4 public.test | head -1; getent hosts nowhere.test; echo $?"
    )
    assert f"nameserver {RESOLVER}" in ran.text
    assert PUBLIC in ran.text
    assert ran.text.endswith("\n2\n")
    closed = [("tcp", f"{name}.test", PORT) for name in ("private", "metadata", "self")]
    assert bench.opened(one, ("tcp", "public.test", PORT), *closed) == names(("tcp", "public.test", PORT))
    again = "for i in 1 2 3 4 5 6; do curl -sS --http0.9 -m 3 --no-keepalive http://rebinding.test:%d/; done" % PORT
    ran = bench.bash(one, again)
    assert 0 < ran.out.count(b"here") < 6


ASK = r"""
import socket, sys
question = b"\x12\x34\1\0\0\1\0\0\0\0\0\0\6public\4test\0\0\1\0\1"
for server in sys.argv[1:]:
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.settimeout(1)
    asking.connect((server, 53))
    try:
        asking.send(question)
        print(len(asking.recv(512)) > len(question))
    except OSError as error:
        print(error.errno)
"""


def test_other_name_servers_are_closed_wherever_they_are(bench: Jailed, two: Box) -> None:
    """In a sandbox that was refused little so far: the kernel says so to each address six times, then once a second."""
    ran = bench.run(two, "python3", "-c", ASK, RESOLVER, PUBLIC, PRIVATE, "8.8.8.8")
    assert ran.text.split() == ["True", *[str(errno.ECONNREFUSED)] * 3]  # at once, not after the resolver's patience


def test_without_a_network_there_is_nothing_and_nobody_to_ask(bench: Jailed) -> None:
    none = bench.create()
    bench.write(none, "/work/probes.py", PROBES.read_bytes())
    assert none.address is None
    assert bench.bash(none, "cat /etc/resolv.conf").out == b""
    assert bench.opened(none, *every(PUBLIC), *every(PRIVATE), *every(HERE), ("udp", RESOLVER, 53)) == set()
    assert bench.bash(none, "getent hosts public.test; tail -n +3 /proc/net/dev | cut -d: -f1").text.split() == ["lo"]
    bench.do(bench.engine.remove(none.container_id))


RELAY = r"""
import socket, subprocess, sys, threading
door = socket.create_server(("127.0.0.1", 9000))
def pass_on():
    while True:
        near, _ = door.accept()
        host, port = near.recv(4096).split()[1].decode().rsplit(":", 1)
        try:
            far = socket.create_connection((host, int(port)), timeout=2)
            near.sendall(b"HTTP/1.1 200 yes\r\n\r\n" + far.recv(5))
        except OSError:
            near.sendall(b"HTTP/1.1 502 no\r\n\r\n")
        near.close()
threading.Thread(target=pass_on, daemon=True).start()
curl = ["curl", "-s", "-m5", "--http0.9"]
for url in sys.argv[1:]:
    print(subprocess.run([*curl, "-p", "-x", "http://127.0.0.1:9000", url], capture_output=True).stdout[:5])
print(subprocess.run([*curl, "-H", "Host: 10.9.0.2", sys.argv[1]], capture_output=True).stdout[:5])
"""


def test_a_relay_inside_and_another_host_header_lead_nowhere_else(bench: Jailed, one: Box) -> None:
    urls = [f"http://{address}:{PORT}" for address in (PUBLIC, PRIVATE, METADATA)]
    assert bench.run(one, "python3", "-c", RELAY, *urls).text.splitlines() == ["b'here '", "b''", "b''", "b'here '"]


def test_an_exception_is_open_to_its_sandbox_alone_and_closed_with_what_it_let_through(
    bench: Jailed, one: Box, two: Box
) -> None:
    tried = [*every(PRIVATE), *every(PRIVATE, OTHER_PORT), *every(METADATA), *every(RANGES["192.168/16"])]
    bench.openings = {one.sandbox_id: [Opening(PRIVATE, "tcp", PORT), Opening(METADATA, "udp", PORT)]}
    bench.look()
    assert bench.opened(one, *tried) == names(("tcp", PRIVATE, PORT), ("udp", METADATA, PORT))
    assert bench.opened(two, *tried) == set()
    talk = f"""
import os, socket, time
s = socket.create_connection(("{PRIVATE}", {PORT}), timeout=3)
s.recv(5); s.sendall(b"?"); print(s.recv(1) == b"?", flush=True); open("/work/talking", "w").close()
while os.path.exists("/work/talking"): time.sleep(0.02)
try: s.sendall(b"!"); print(s.recv(1) == b"!")
except OSError: print(False)
"""
    talking = bench.begin(bench.running(one, "python3", "-c", talk))
    bench.bash(one, "until [ -e /work/talking ]; do sleep 0.02; done")
    bench.openings = {}
    bench.look()
    bench.bash(one, "rm /work/talking")
    assert talking.result(60).text.split() == ["True", "False"]
    assert bench.opened(one, *tried) == set()


def test_an_address_comes_again_only_when_the_jail_has_forgotten_it(bench: Jailed) -> None:
    network = bench.engine.network
    seen = []
    for _ in range(3):
        sandbox_id = new_id()
        lane = bench.do(network.make(sandbox_id))
        bench.openings = {sandbox_id: [Opening(PRIVATE, "tcp", PORT)]}
        bench.look()
        listed = tool("nft", "list", "table", "inet", table_name(bench.config.instance))
        assert f'"{lane.bridge}" . {PRIVATE} . tcp . {PORT}' in listed
        bench.do(network.remove(sandbox_id))
        listed = tool("nft", "list", "table", "inet", table_name(bench.config.instance))
        assert lane.bridge not in listed
        assert lane.address not in listed
        seen.append(lane.address)
    assert len(set(seen)) == 3
    bench.openings = {}
    bench.look()


FIRST = """
import json, sys, time
source, targets, public = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
tools, end, came = {"__name__": "probes"}, time.monotonic() + 2, set()
exec(source, tools)
tools["WAIT_S"] = 0.3
while time.monotonic() < end:
    came |= {name for name, answered in tools["probes"](targets).items() if answered}
print(json.dumps(sorted(came)), tools["probe"](*public))
"""


def test_the_first_thing_a_sandbox_does_is_jailed_already(bench: Jailed, around: dict[str, str]) -> None:
    """Its first process is the probe: from before anything of ours runs in it, for two seconds."""
    targets = [target for address in (PRIVATE, METADATA, *around.values()) for target in every(address)]
    sandbox_id = new_id()
    lane = bench.do(bench.engine.network.make(sandbox_id))
    words = [PROBES.read_text(), json.dumps(targets), json.dumps(("tcp", PUBLIC, PORT))]
    container = bench.docker().containers.create(
        bench.config.image, entrypoint=["python3", "-c", FIRST, *words], user="1000:1000",
        runtime=bench.config.runtime, network=lane.network, detach=True,
    )  # fmt: skip
    try:
        bench.do(bench.engine.network.admit(lane))
        container.start()
        container.wait(timeout=60)
        assert container.logs().decode().strip() == "[] True"
    finally:
        container.remove(force=True)
        bench.do(bench.engine.network.remove(sandbox_id))


def test_no_sandbox_with_a_network_starts_while_the_jail_cannot_be_set(
    bench: Jailed, one: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    jail = bench.engine.network._jail
    assert jail
    before = sorted(bench.left_over())
    tool("nft", "delete", "table", "inet", table_name(bench.config.instance))
    monkeypatch.setattr(jail, "_nft", "/nonexistent/nft")
    with pytest.raises(NoRuntime, match="apt-get install nftables"):
        bench.create(network="public")
    assert sorted(bench.left_over()) == before
    assert bench.opened(one, *every(PRIVATE), *every(PUBLIC)) == set()  # nobody is let out while nobody is jailed
    bench.do(bench.engine.remove(bench.create().container_id))
    with pytest.raises(NoRuntime, match="network: none"):
        bench.do(bench.engine.network_ready())
    monkeypatch.undo()
    bench.look()
    until(lambda: bench.opened(one, *every(PUBLIC)) == names(*every(PUBLIC)))  # a bridge takes a moment to come up
    assert bench.opened(one, *every(PRIVATE)) == set()
    bench.do(bench.engine.network_ready())


def test_a_new_engine_takes_over_what_runs_and_clears_what_nobody_has(bench: Jailed, one: Box) -> None:
    """As after `kill -9`: the table stays, the next start reads Docker's networks, and not its own memory."""
    stray = bench.do(bench.engine.network.make(new_id()))
    later = bench.do(_engine(bench.config.instance, bench))
    openings = {one.sandbox_id: [Opening(PRIVATE, "tcp", PORT)]}

    async def opening() -> dict[str, list[Opening]]:
        return openings

    later.openings = opening
    try:
        bench.do(later.start())
        assert later.network.address(one.sandbox_id) == one.address
        assert later.network.block == bench.engine.network.block
        assert stray.bridge not in [link["ifname"] for link in hostnet.asked("link")]
        assert bench.opened(one, *every(PRIVATE), *every(METADATA), *every(PUBLIC)) == names(
            ("tcp", PRIVATE, PORT), *every(PUBLIC)
        )
    finally:
        bench.do(later.close())
    bench.engine.network._lanes.known.pop(stray.sandbox_id)
    bench.look()
    assert bench.opened(one, *every(PRIVATE)) == set()


async def _engine(instance: str, bench: Jailed) -> Engine:
    return Engine(replace(bench.config, instance=instance))


def test_gvisors_other_network_stack_is_jailed_as_well(bench: Jailed, around: dict[str, str]) -> None:
    known = bench.docker().info()["Runtimes"]
    (runtime,) = [name for name, its in known.items() if "--network=host" in (its.get("runtimeArgs") or ())] or [""]
    config, bench.engine.config = bench.engine.config, replace(bench.config, runtime=runtime or bench.config.runtime)
    try:
        box = bench.networked()
        targets = [target for address in (PUBLIC, PRIVATE, METADATA, *around.values()) for target in every(address)]
        assert bench.opened(box, *targets) - names(("icmp", PUBLIC, PORT)) == names(*every(PUBLIC)[:2])
        bench.do(bench.engine.remove(box.container_id))
    finally:
        bench.engine.config = config


def test_a_flushed_jail_is_put_back_when_the_kernel_tells_not_when_the_clock_comes_round(
    bench: Jailed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "AT_MOST_EVERY_S", 0.1)  # and the clock's is an hour still

    table = table_name(f"{bench.config.instance}-b")
    engine = bench.do(_engine(bench.config.instance + "-b", bench))
    try:
        bench.do(engine.start())
        tool("nft", "flush", "table", "inet", table)
        until(lambda: "goto refused" in tool("nft", "list", "table", "inet", table))
        until(lambda: engine.network.repairs == 1)
    finally:
        bench.do(engine.close())
