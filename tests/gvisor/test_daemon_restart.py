"""Docker's daemon dies under running sandboxes (live-restore, as bin/ sets it up). On a daemon of the test's own."""

import asyncio
import json
import os
import signal
import threading
import time
from dataclasses import replace

import docker
import pytest

from lib import leftovers
from lib.daemon import OwnDaemon
from lib.place import Place
from sandboxes.engine import RunRequest, disks, hostnet
from sandboxes.errors import BoxGone, NoRuntime, OutOfReach
from tests.gvisor import hosts
from tests.gvisor.engines import Bench, Collected, OnePass, loop_files, new_config
from tests.gvisor.hosts import PORT, PUBLIC, RANGES
from tests.gvisor.netspaces import PROBES
from tests.gvisor.served import Served, until

PRIVATE = RANGES["10/8"]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    var = tmp_path_factory.mktemp("own")
    known = new_config(var)
    own = OwnDaemon(Place(var=var, cache=var))
    theirs = docker.DockerClient(base_url=known.docker_host)
    runtime = theirs.info()["Runtimes"][known.runtime]
    own.start({known.runtime: {key: value for key, value in runtime.items() if value}})
    try:
        docker.DockerClient(base_url=own.address).images.load(theirs.images.get(known.image).save(named=True))
        yield own
    finally:
        own.stop()


@pytest.fixture
def own_bench(daemon):
    place = daemon.place
    bench = Bench(replace(new_config(place.var), docker_host=daemon.address, instance=place.instance))
    bench.do(bench.engine.start())
    yield bench
    for found in bench.do(bench.engine.found()):
        bench.do(bench.engine.remove(found.container_id))
    # Docker may keep the volume's name until its own next start; disk and device must be free at once
    assert list((place.var / "disks").glob("*")) == []
    assert [file for file in loop_files() if str(place.var) in file] == []
    bench.close()


def restart(daemon, number, *, away_s):
    runtimes = json.loads(daemon.config_file.read_text())["runtimes"]
    pid = daemon.pid()
    os.kill(pid, number)
    while daemon.pid() is not None:
        time.sleep(0.05)
    time.sleep(away_s)
    daemon.start(runtimes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_short_restart_goes_unnoticed(daemon, own_bench, number):
    """Neither by who waits for a command nor by who follows one in the background."""
    box = own_bench.create()
    counting = ["bash", "-c", "for i in $(seq 100); do echo $i; sleep 0.1; done; exit 3"]
    running = own_bench.begin(own_bench.running(box, *counting))
    sink = Collected()
    own_bench.do(box.start(OnePass(box.sandbox_id, "run", "act_bg"), RunRequest(argv=counting, timeout_s=None)))
    following = own_bench.begin(box.follow("act_bg", sink))
    time.sleep(1)
    restart(daemon, number, away_s=0.3)
    ran, followed = running.result(30), following.result(30)
    assert (followed.exit_code, followed.lost_bytes, bytes(sink.stdout)) == (3, 0, ran.out)
    assert ran.code == 3
    assert ran.text.split() == [str(n) for n in range(1, 101)]
    assert (ran.gaps, ran.result.lost_bytes) == ([], 0)
    assert own_bench.bash(box, "echo alive").text == "alive\n"


def test_a_daemon_that_hangs_is_told_as_one_that_is_away(daemon, own_bench):
    box = own_bench.create()
    running = own_bench.begin(own_bench.bashing(box, "sleep 15; echo slept", action_id="act_hung"))
    time.sleep(1)
    os.kill(daemon.pid(), signal.SIGSTOP)
    try:
        struck_at = time.monotonic()
        with pytest.raises(OutOfReach):
            running.result(20)
        assert time.monotonic() - struck_at < 9  # 5 to 6, and a busy machine
    finally:
        os.kill(daemon.pid(), signal.SIGCONT)
    again = own_bench.do(own_bench.engine.attach(box.sandbox_id, box.container_id, env={}))
    sink = Collected()
    ended = own_bench.do(again.resume(OnePass(box.sandbox_id, "run", "act_hung"), sink))
    assert (ended.exit_code, bytes(sink.stdout)) == (0, b"slept\n")


def test_long_absence_is_told_in_time_and_the_command_is_found_again(daemon, own_bench):
    box = own_bench.create()
    lost, heard = [], threading.Event()
    box.on_lost = lambda reason: (lost.append(reason), heard.set())
    command = "for i in $(seq 100); do echo $i; sleep 0.1; done; echo x >> /work/ran; exit 3"
    running = own_bench.begin(own_bench.bashing(box, command, action_id="act_away"))
    time.sleep(1)
    back = threading.Thread(target=restart, args=(daemon, signal.SIGKILL), kwargs={"away_s": 7})
    struck_at = time.monotonic()
    back.start()
    with pytest.raises(BoxGone) as caught:
        running.result(20)
    assert time.monotonic() - struck_at < 5.5
    assert caught.value.reason == "host_lost"
    assert "Try again in a moment" in caught.value.detail
    assert "has ended" not in caught.value.detail
    assert heard.wait(2)
    assert lost == ["host_lost"]
    back.join(30)

    async def again():
        other = await own_bench.engine.attach(box.sandbox_id, box.container_id, env={})
        sink = Collected()
        return await other.resume(OnePass(box.sandbox_id, "run", "act_away"), sink), sink, other

    result, sink, other = own_bench.do(again())
    assert (result.exit_code, result.lost_bytes) == (3, 0)
    assert sink.stdout.decode().split() == [str(n) for n in range(1, 101)]
    assert own_bench.bash(other, "cat /work/ran").text == "x\n"


def test_the_name_that_docker_keeps_of_a_volume_is_no_stray_and_goes_after_its_next_start(
    daemon, own_bench, caplog, monkeypatch
):
    """Docker 20 to 23 miscount the mounts of what lived through a restart."""
    box = own_bench.create()
    restart(daemon, signal.SIGKILL, away_s=0.3)
    assert own_bench.bash(box, "echo alive").text == "alive\n"
    own_bench.do(own_bench.engine.remove(box.container_id))
    kept = volumes_of(own_bench, box.sandbox_id)
    assert box.sandbox_id not in own_bench.do(own_bench.engine.disks())
    own_bench.do(own_bench.engine.erase(box.sandbox_id))
    monkeypatch.setattr(disks, "ASK_AGAIN_S", 0)
    own_bench.engine._disks._ask_again_at = 0
    assert box.sandbox_id not in own_bench.do(own_bench.engine.disks())  # asked in vain, and nothing is said of it
    assert len([each for each in caplog.messages if box.sandbox_id in each]) == len(kept) <= 1
    restart(daemon, signal.SIGKILL, away_s=0.3)
    assert box.sandbox_id not in own_bench.do(own_bench.engine.disks())
    assert volumes_of(own_bench, box.sandbox_id) == []


def volumes_of(bench, sandbox_id):
    client = bench.docker()
    found = [each.name for each in client.volumes.list(filters={"label": f"sandgate.sandbox={sandbox_id}"})]
    client.close()
    return found


def test_without_a_daemon_creating_says_what_to_do(daemon, own_bench):
    async def create():
        async with asyncio.timeout(20):
            await own_bench.engine.create(own_bench.spec())

    stopped = threading.Thread(target=restart, args=(daemon, signal.SIGKILL), kwargs={"away_s": 2})
    stopped.start()
    time.sleep(0.5)
    with pytest.raises(NoRuntime, match="bin/up"):
        own_bench.do(create())
    stopped.join(30)


def test_a_sandbox_keeps_its_network_and_its_jail(daemon, own_bench):
    with hosts.beyond() as space, hosts.running("serve", [[space, each, PORT] for each in (PUBLIC, PRIVATE)]):
        hostnet.turn("sgtest0", on=True)  # no way out that the engine knows of: none of its resolvers is there
        box = own_bench.create(network="public")
        own_bench.write(box, "/work/probes.py", PROBES.read_bytes())
        targets = json.dumps([["tcp", PUBLIC, PORT], ["udp", PUBLIC, PORT], ["tcp", PRIVATE, PORT]])
        before = own_bench.run(box, "python3", "/work/probes.py", "probe", targets).out
        assert json.loads(before) == {
            f"tcp {PUBLIC} {PORT}": True, f"udp {PUBLIC} {PORT}": True, f"tcp {PRIVATE} {PORT}": False
        }  # fmt: skip
        restart(daemon, signal.SIGKILL, away_s=0.3)
        assert own_bench.run(box, "python3", "/work/probes.py", "probe", targets).out == before
        assert own_bench.create(network="public").address != box.address


AWAY_S = 9  # longer than a caller is kept waiting


@pytest.fixture
def served(daemon, tmp_path):
    console = Served(tmp_path / "var")
    found = json.loads((console.var / "engine.json").read_text())
    (console.var / "engine.json").write_text(json.dumps({**found, "docker_host": daemon.address}))
    yield console.up()
    console.close()


def run(api, sandbox, **body):
    return api.post(f"/sandboxes/{sandbox}/commands", json=body)


def test_sandboxes_of_a_console_go_on_when_docker_is_back_and_end_or_stop_when_they_are_gone(served, daemon):
    with served.api("workspace") as api:
        bodies = {"plain": {}, "gone": {}, "kept": {"persistent": True}}
        made = {name: make(api, **body) for name, body in bodies.items()}
        for sandbox in made.values():
            run(api, sandbox, command=f"echo {sandbox} > /work/name").raise_for_status()
        line = "for n in $(seq 40); do echo $n; sleep 0.4; done"
        background = run(api, made["plain"], command=line, background=True).json()["id"]
        told = []

        def call():
            told.append(run(api, made["plain"], command="sleep 13; echo late > /work/late"))

        caller = threading.Thread(target=call)
        caller.start()
        until(lambda: len(running_in(api, made["plain"])) == 2)
        containers = {name: container_of(daemon, sandbox) for name, sandbox in made.items()}
        back = threading.Thread(target=restart, args=(daemon, signal.SIGKILL), kwargs={"away_s": AWAY_S})
        back.start()
        for name in ("gone", "kept"):
            leftovers.end(containers[name], quiet_s=0.2)
        caller.join(AWAY_S)
        (answer,) = told
        assert is_out_of_reach(answer), answer.json()
        answer = run(api, made["plain"], command="true")
        assert (answer.status_code, answer.json()["code"]) == (503, "no_runtime")
        answer = api.delete(f"/sandboxes/{made['plain']}/commands/{background}")
        assert is_out_of_reach(answer), answer.json()
        assert back.is_alive()
        back.join(60)

        until(lambda: run(api, made["plain"], command="true").status_code == 200)
        assert run(api, made["plain"], command="cat /work/name").json()["stdout"] == f"{made['plain']}\n"
        assert run(api, made["plain"], command="pgrep -cx sleep").json()["stdout"] <= "1\n"  # only the background's
        until(lambda: state(api, made["gone"]) == ("ended", "host_lost"))
        until(lambda: state(api, made["kept"])[0] == "stopped")
        assert run(api, made["kept"], command="cat /work/name").json()["stdout"] == f"{made['kept']}\n"
        ended = api.get(f"/sandboxes/{made['plain']}/commands/{background}", params={"wait": 40}).json()
        while ended["status"] == "running":
            ended = api.get(f"/sandboxes/{made['plain']}/commands/{background}", params={"wait": 40}).json()
        ended = api.get(f"/sandboxes/{made['plain']}/commands/{background}").json()
        assert (ended["status"], ended["stdout"].split()) == ("exited", [str(n) for n in range(1, 41)])
        assert run(api, made["plain"], command="ls /work").json()["stdout"] == "name\n"
    assert served.stop() == 0
    assert served.containers() == []


def make(api, **body):
    return api.post("/sandboxes", json={"network": "none", **body}).raise_for_status().json()["id"]


def running_in(api, sandbox):
    return api.get(f"/sandboxes/{sandbox}/commands", params={"status": "running"}).json()["items"]


def state(api, sandbox):
    found = api.get(f"/sandboxes/{sandbox}").json()
    return found["status"], found["ended_reason"]


def is_out_of_reach(answer):
    said = answer.json()
    gone = (answer.status_code, said["code"], said["ended_reason"]) == (409, "sandbox_gone", "host_lost")
    return gone and "Try again in a moment" in said["detail"]


def container_of(daemon, sandbox):
    client = docker.DockerClient(daemon.address)
    (found,) = client.containers.list(filters={"label": f"sandgate.sandbox={sandbox}"})
    client.close()
    return found.id
