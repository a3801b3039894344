"""Making and removing sandboxes: nothing is left behind, whatever fails, and nobody else's is touched."""

import asyncio
import time
from dataclasses import replace

import docker
import docker.errors
import pytest

from sandboxes.engine import BoxSpec, CreateFailed, Engine, EngineConfig
from sandboxes.engine import containers as containers_module
from sandboxes.engine import engine as engine_module
from sandboxes.engine.attach import AttachFailed
from sandboxes.engine.names import BadName
from sandboxes.errors import NoRuntime
from tests.gvisor.engines import Bench, new_id


def test_create_run_remove(bench):
    box = bench.create()
    assert bench.bash(box, "echo hi").text == "hi\n"
    found = bench.do(bench.engine.found())
    assert [(each.sandbox_id, each.container_id, each.running) for each in found] == [
        (box.sandbox_id, box.container_id, True)
    ]
    bench.do(bench.engine.remove(box.container_id))
    bench.do(bench.engine.remove(box.container_id))
    assert bench.do(bench.engine.found()) == []
    assert bench.left_over() == []


def test_an_id_that_is_taken_is_refused_and_its_sandbox_unharmed(bench, fresh_box):
    with pytest.raises(CreateFailed, match="exists already"):
        bench.do(bench.engine.create(bench.spec(sandbox_id=fresh_box.sandbox_id)))
    assert bench.bash(fresh_box, "echo unharmed").text == "unharmed\n"


def test_labels_and_names_carry_the_instance(bench, fresh_box):
    container = bench.docker().containers.get(fresh_box.container_id)
    assert container.name == f"sandgate-{bench.config.instance}-{fresh_box.sandbox_id}"
    assert container.labels["sandgate.instance"] == bench.config.instance
    assert container.labels["sandgate.sandbox"] == fresh_box.sandbox_id


def test_container_has_the_walls_it_should_have(bench, fresh_box):
    host = bench.docker().containers.get(fresh_box.container_id).attrs["HostConfig"]
    assert host["Runtime"] == bench.config.runtime
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["Privileged"] is False
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["LogConfig"]["Type"] == "none"
    assert not host["Binds"]
    assert {mount["Type"] for mount in host["Mounts"]} == {"volume"}
    assert host["Memory"] == host["MemorySwap"] == 512 << 20
    assert host["PidsLimit"] == 1024


def test_limits_of_the_spec_hold_inside(bench):
    box = bench.create(memory_mb=256, disk_mb=64)
    assert 60_000 < int(bench.bash(box, "df -k --output=size /work | tail -1").text) < 66_000
    assert 250_000 < int(bench.bash(box, "grep MemTotal /proc/meminfo | tr -dc 0-9").text) < 270_000
    bench.do(bench.engine.remove(box.container_id))


STAGES = {
    "disk": ("disks", "make"),
    "attach": ("link", "attach"),
    "hello": ("link", "greet"),
    "container": ("daemon", "create_container"),
    "start": ("daemon", "start"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_failure_at_any_stage_leaves_nothing(bench, monkeypatch, stage):
    """The stage itself is done for real, then fails."""
    owner, name = STAGES[stage]
    target = {"disks": bench.engine._disks, "link": engine_module.Link, "daemon": docker.APIClient}[owner]
    real = getattr(target, name)

    async def fails(*args, **kwargs):
        await real(*args, **kwargs)
        raise AttachFailed("as the test wants")

    def refuses(*args, **kwargs):
        real(*args, **kwargs)
        raise docker.errors.APIError("as the test wants")

    monkeypatch.setattr(target, name, refuses if owner == "daemon" else fails)
    with pytest.raises(CreateFailed, match="as the test wants"):
        bench.create()
    monkeypatch.undo()
    assert bench.left_over() == []


@pytest.mark.parametrize("name", ["attach", "greet"])
def test_cancelled_while_it_hangs_leaves_nothing(bench, monkeypatch, name):
    async def hangs(*args, **kwargs):
        await asyncio.sleep(60)

    monkeypatch.setattr(engine_module.Link, name, hangs)

    async def scene():
        task = asyncio.ensure_future(bench.engine.create(bench.spec()))
        await asyncio.sleep(1.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    bench.do(scene(), 20)
    assert bench.left_over() == []


def test_cancelled_at_any_moment_leaves_nothing(bench):
    async def scene(after_s):
        task = asyncio.ensure_future(bench.engine.create(bench.spec()))
        await asyncio.sleep(after_s)
        task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            return None

    for n in range(8):
        if box := bench.do(scene(n * 0.07)):  # it was made before the cancel came
            bench.do(bench.engine.remove(box.container_id))
    assert bench.left_over() == []


def test_removal_that_is_cancelled_is_still_whole(bench):
    async def scene(box, after_s):
        task = asyncio.ensure_future(bench.engine.remove(box.container_id))
        await asyncio.sleep(after_s)
        task.cancel()
        await asyncio.wait([task])

    for after_s in (0, 0.02, 0.1, 0.2):
        bench.do(scene(bench.create(), after_s))
    for found in bench.do(bench.engine.found()):  # the cancel came before it had begun
        bench.do(bench.engine.remove(found.container_id))
    assert bench.left_over() == []


def test_runner_that_cannot_start_is_told_with_its_own_words(bench, monkeypatch):
    real = containers_module.options

    def without_mounting(*args, **kwargs):
        return real(*args, **kwargs) | {"cap_add": ["CHOWN", "KILL", "SETUID", "SETGID", "SETPCAP"]}

    monkeypatch.setattr(containers_module, "options", without_mounting)
    with pytest.raises(CreateFailed, match="mount"):
        bench.create()
    assert bench.left_over() == []


def test_unknown_image_is_refused(bench):
    with pytest.raises(NoRuntime, match="sandgate/nothing"):
        bench.create(image="sandgate/nothing:here")
    assert bench.left_over() == []


@pytest.mark.parametrize("sandbox_id", ["", "../../x", "a/b", "x" * 100, "-rf", "sbx_%2e%2e", "SBX", "sbx\n"])
def test_ids_that_would_reach_elsewhere_are_refused(bench, sandbox_id):
    with pytest.raises(BadName):
        bench.do(bench.engine.create(BoxSpec(sandbox_id=sandbox_id, image=bench.config.image)))


def test_ten_at_once_are_each_ready(bench):
    async def many():
        return await asyncio.gather(*(bench.engine.create(bench.spec(memory_mb=256)) for _ in range(10)))

    boxes = bench.do(many())
    assert len({box.container_id for box in boxes}) == 10
    assert [bench.bash(box, "echo $0").text for box in boxes] == ["bash\n"] * 10

    async def away():
        await asyncio.gather(*(bench.engine.remove(box.container_id) for box in boxes))

    bench.do(away())
    assert bench.left_over() == []


def test_sandboxes_do_not_see_each_other(bench):
    one, two = bench.create(), bench.create()
    bench.write(one, "/work/mine", b"one")
    assert bench.bash(two, "ls -A /work; pgrep -x sleep; cat /tmp/*").out == b""
    for box in (one, two):
        bench.do(bench.engine.remove(box.container_id))


def test_disk_of_a_process_that_died_is_found_and_can_be_erased(bench):
    sandbox_id = new_id()
    bench.do(bench.engine._disks.make(sandbox_id, 16))
    assert len(bench.left_over()) >= 3
    other = Bench(bench.config)
    other.do(other.engine.start())
    assert other.do(other.engine.disks()) == {sandbox_id}
    other.do(other.engine.erase(sandbox_id))
    assert bench.left_over() == []
    other.do(other.engine.close())


def test_volumes_pruned_behind_its_back_are_made_again(bench):
    for volume in bench.docker().volumes.list(filters={"label": f"sandgate.instance={bench.config.instance}"}):
        volume.remove(force=True)
    box = bench.create()
    assert bench.bash(box, "echo hi").text == "hi\n"
    bench.do(bench.engine.remove(box.container_id))


def test_other_instances_are_not_touched(bench, fresh_box, tmp_path):
    other = Bench(replace(bench.config, instance="0therone", var=tmp_path))
    other.do(other.engine.start())
    assert other.do(other.engine.found()) == []
    other.do(other.engine.close())
    assert bench.bash(fresh_box, "echo here").text == "here\n"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"docker_host": "unix:///run/nobody-is-there.sock"}, "does not answer"),
        ({"runtime": "runsc-nowhere"}, "no runtime runsc-nowhere"),
        ({"image": "sandgate/nothing:here"}, "no image sandgate/nothing:here"),
    ],
)
def test_without_gvisor_it_says_what_to_do(bench, change, says):
    async def scene():
        engine = Engine(replace(bench.config, **change))
        try:
            await engine.start()
        finally:
            await engine.close()

    with pytest.raises(NoRuntime, match=says) as caught:
        bench.do(scene())
    assert "bin/up" in str(caught.value)


def test_without_engine_json_it_says_what_to_do(tmp_path):
    with pytest.raises(NoRuntime, match="bin/up"):
        EngineConfig.load(tmp_path, "12345678")


def test_cold_create_takes_about_as_long_as_docker_run(bench):
    client = bench.docker()
    started_at = time.monotonic()
    client.containers.run(bench.config.image, ["true"], runtime=bench.config.runtime, network_mode="none", remove=True)
    plain_s = time.monotonic() - started_at
    started_at = time.monotonic()
    box = bench.create()
    bench.run(box, "true")
    ours_s = time.monotonic() - started_at
    bench.do(bench.engine.remove(box.container_id))
    assert ours_s < max(3 * plain_s, 3)
