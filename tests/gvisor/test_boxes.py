"""The hub's registry on the real engine and a real database: what fails at any stage leaves neither row nor container,
and whoever asks at the same moment gets the same sandbox."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import docker
import docker.errors
import pytest
from django.utils import timezone

from approvals.models import Action
from console.workspaces import audit, db
from sandboxes import counters, lifecycle, losses, pooled, profiles, reconciling, room
from sandboxes.boxes import Boxes
from sandboxes.engine import CreateFailed, Engine
from sandboxes.errors import BoxGone, NoCapacity, NoRuntime
from sandboxes.models import PooledSandbox, Sandbox
from sandboxes.profiles import NewSandbox
from tests.approvals.proposals import pending

SMALL = NewSandbox(memory_mb=128, disk_mb=64, network="none")


@pytest.fixture
def boxes(bench, committed_cast, settings):
    settings.POOL_MOST = 4

    async def made():
        return Boxes(bench.config.var, bench.config.instance)

    boxes = bench.do(made())
    boxes.engine = bench.engine
    yield boxes
    for sandbox_id in bench.do(bench.engine.disks()):
        bench.do(bench.engine.erase(sandbox_id))
    db.close()


@pytest.fixture
def scout(committed_cast):
    cast = committed_cast
    type(cast.scout).objects.filter(pk=cast.scout.pk).update(persistent_allowed=True)
    return cast.caller(cast.scout)


def create(bench, boxes, caller, **new):
    return bench.do(boxes.create(caller, replace(SMALL, **new)))


def run(bench, box, command):
    return bench.bash(box, command).text


def nothing_lives(bench):
    return bench.left_over() == [] and not Sandbox.objects.live().exists()


@pytest.mark.parametrize("stage", ["disk", "container", "row"])
def test_a_create_that_fails_leaves_neither_row_nor_container(bench, boxes, scout, monkeypatch, stage):
    def refuses(*args, **kwargs):
        raise docker.errors.APIError("as the test wants")

    def was_deleted(sandbox, **facts):
        lifecycle.end(sandbox, "deleted", deleted=True)
        return False

    if stage == "row":
        monkeypatch.setattr(lifecycle, "started", was_deleted)
    else:
        name = {"disk": "create_volume", "container": "create_container"}[stage]
        monkeypatch.setattr(docker.APIClient, name, refuses)
    with pytest.raises(BoxGone if stage == "row" else CreateFailed):
        create(bench, boxes, scout)
    assert nothing_lives(bench)


def test_a_create_that_is_cut_off_leaves_nothing(bench, boxes, scout):
    async def scene(after_s):
        task = asyncio.ensure_future(boxes.create(scout, SMALL))
        await asyncio.sleep(after_s)
        await boxes.room.clear(within_s=20)
        assert task.done()

    for after_s in (0.004, 0.01, 0.02, 0.05, 0.2, 0.4):
        bench.do(scene(after_s))
        for sandbox in Sandbox.objects.filter(status="running"):  # the cut came too late
            bench.do(boxes.end(sandbox, "deleted", actor=audit.SYSTEM))
        assert nothing_lives(bench)


def test_no_room_is_said_at_once_and_leaves_nothing(bench, boxes, scout, monkeypatch, tmp_path):
    with monkeypatch.context() as patched:
        patched.setattr(room, "AT_ONCE", 0)
        with pytest.raises(NoCapacity, match="being made here already"):
            create(bench, boxes, scout)
    (tmp_path / "meminfo").write_text("MemTotal: 99999999 kB\nMemAvailable: 200000 kB\n")
    monkeypatch.setattr(room, "MEMORY", tmp_path / "meminfo")
    with pytest.raises(NoCapacity, match="195 MB") as refusal:
        create(bench, boxes, scout)
    assert refusal.value.retry_after
    assert nothing_lives(bench)


def test_one_sandbox_for_a_conversation_whoever_asks_first(bench, boxes, scout, committed_cast):
    other = committed_cast.caller(committed_cast.other)

    async def asked():
        same = (boxes.for_conversation(scout, "c1", SMALL) for _ in range(4))
        return await asyncio.gather(*same, boxes.for_conversation(other, "c1", SMALL))

    *same, others = bench.do(asked())
    assert {(sandbox.pk, sandbox.status) for sandbox in same} == {(same[0].pk, "running")}
    assert others.pk != same[0].pk
    bench.do(boxes.end(same[0], "deleted", actor=audit.SYSTEM, deleted=True))
    again = bench.do(boxes.for_conversation(scout, "c1", SMALL))
    assert again.pk != same[0].pk
    for sandbox in (others, again):
        bench.do(boxes.end(sandbox, "deleted", actor=audit.SYSTEM, deleted=True))
    assert nothing_lives(bench)


def set_down(bench, boxes, sandbox):
    """As the clock does it."""

    async def scene():
        async with boxes.lock(sandbox.pk):
            assert await db.write(lifecycle.stop, sandbox, "idle")
            await boxes._set_down(sandbox.pk, "idle")

    bench.do(scene())


def test_a_start_that_fails_leaves_it_stopped_with_its_files(bench, boxes, scout, monkeypatch):
    sandbox = create(bench, boxes, scout, persistent=True)
    run(bench, bench.do(boxes.ready_box(sandbox.pk)), "echo kept > f")
    set_down(bench, boxes, sandbox)

    def refuses(*args, **kwargs):
        raise docker.errors.APIError("as the test wants")

    with monkeypatch.context() as patched:
        patched.setattr(docker.APIClient, "start", refuses)
        with pytest.raises(NoRuntime, match="as the test wants"):
            bench.do(boxes.ready_box(sandbox.pk))
    assert Sandbox.objects.get(pk=sandbox.pk).status == "stopped"
    assert bench.left_over() == [f"{sandbox.pk}.ext4"]
    assert run(bench, bench.do(boxes.ready_box(sandbox.pk)), "cat f") == "kept\n"


def test_deleted_while_it_starts_again_nothing_is_left(bench, boxes, scout):
    sandbox = create(bench, boxes, scout, persistent=True)
    set_down(bench, boxes, sandbox)

    async def scene():
        starting = asyncio.ensure_future(boxes.ready_box(sandbox.pk))
        await asyncio.sleep(0.2)
        assert await boxes.end(sandbox, "deleted", actor=audit.SYSTEM, deleted=True)
        with pytest.raises(BoxGone):
            await starting

    bench.do(scene())
    assert nothing_lives(bench)


def test_its_image_was_replaced_while_it_was_stopped(bench, boxes, scout):
    client = bench.docker()
    layer = client.containers.create(bench.config.image, ["true"])
    replaced = layer.commit().id
    layer.remove()
    sandbox = create(bench, boxes, scout, persistent=True)
    run(bench, bench.do(boxes.ready_box(sandbox.pk)), "echo kept > f")
    set_down(bench, boxes, sandbox)
    Sandbox.objects.filter(pk=sandbox.pk).update(image_id=replaced)
    action = pending(scout, sandbox_id=sandbox.pk)
    client.images.remove(replaced)
    assert run(bench, bench.do(boxes.ready_box(sandbox.pk)), "cat f") == "kept\n"
    assert Sandbox.objects.get(pk=sandbox.pk).image_id == sandbox.image_id
    assert Action.objects.get(pk=action.pk).status == "superseded"


def wish_of(workspace):
    return pooled.Wish(workspace.pk, profiles.pool_profile(workspace, can_network=False), 1)


@pytest.fixture
def warm(bench, boxes, scout, committed_cast):
    """One in the pool, as a round of it makes one."""
    wish = pooled.Wish(
        committed_cast.workspace.pk, profiles.pool_profile(committed_cast.workspace, can_network=False), 1
    )

    async def scene():
        await boxes.pool._make(bench.engine, wish, await bench.engine.image_id("default"))

    bench.do(scene())
    return PooledSandbox.objects.get()


def test_a_pool_that_cannot_be_filled_leaves_nothing(bench, boxes, scout, committed_cast, monkeypatch):
    wish = pooled.Wish(
        committed_cast.workspace.pk, profiles.pool_profile(committed_cast.workspace, can_network=False), 1
    )
    for stage in ("create_volume", "create_container", "start"):
        with monkeypatch.context() as patched:
            patched.setattr(docker.APIClient, stage, _refuse)
            with pytest.raises(CreateFailed):
                bench.do(boxes.pool._make(bench.engine, wish, bench.do(bench.engine.image_id("default"))))
        assert (bench.left_over(), PooledSandbox.objects.exists()) == ([], False)


def _refuse(*args, **kwargs):
    raise docker.errors.APIError("as the test wants")


def test_a_console_that_stops_while_its_pool_is_filled_leaves_nothing(bench, boxes, committed_cast):
    """At moments from before its row is there to after its container runs."""

    async def scene(after_s):
        wish, image_id = wish_of(committed_cast.workspace), await bench.engine.image_id("default")
        filling = asyncio.ensure_future(boxes.pool._make(bench.engine, wish, image_id))
        await asyncio.sleep(after_s)
        filling.cancel()
        await asyncio.wait([filling])
        await boxes.pool.close()
        await reconciling.reconcile(boxes)

    for after_s in (0.003, 0.1, 0.3, 0.6):
        bench.do(scene(after_s))
        assert (bench.left_over(), PooledSandbox.objects.exists()) == ([], False)


def test_a_claim_whose_box_is_gone_and_cannot_be_made_anew_leaves_nothing(bench, boxes, scout, warm, monkeypatch):
    bench.docker().api.kill(warm.container_id)
    monkeypatch.setattr(docker.APIClient, "create_container", _refuse)
    with pytest.raises(CreateFailed):
        bench.do(boxes.create(scout, NewSandbox(network="none")))
    assert nothing_lives(bench)


def test_given_up_at_the_moment_it_is_claimed_one_of_the_two_has_it(bench, boxes, scout, warm):
    async def scene():
        return await asyncio.gather(
            boxes.create(scout, NewSandbox(network="none")), boxes.pool._give_up(warm.pk), return_exceptions=True
        )

    sandbox, _ = bench.do(scene())
    assert run(bench, bench.do(boxes.ready_box(sandbox.pk)), "echo here") == "here\n"
    assert [each.sandbox_id for each in bench.do(bench.engine.found())] == [sandbox.pk]
    assert not PooledSandbox.objects.exists()


def test_while_docker_is_away_a_sandbox_is_neither_ended_nor_pretended(bench, boxes, scout, monkeypatch):
    sandbox = create(bench, boxes, scout)

    async def away(*args, **kwargs):
        raise NoRuntime("Docker does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "attach", away)
        bench.do(_lose(boxes, sandbox.pk))
        with pytest.raises(NoRuntime):
            bench.do(boxes.ready_box(sandbox.pk))
        assert boxes.losses.is_away(sandbox.pk)
        assert Sandbox.objects.get(pk=sandbox.pk).status == "running"
    assert run(bench, bench.do(boxes.ready_box(sandbox.pk)), "echo back") == "back\n"


async def _lose(boxes, sandbox_id):
    boxes._lost(sandbox_id, "host_lost")


def test_what_was_away_for_too_long_is_given_up(bench, boxes, scout, monkeypatch):
    async def away(*args, **kwargs):
        raise NoRuntime("Docker does not answer.")

    monkeypatch.setattr(losses, "AWAY_FOR_S", 0.5)
    monkeypatch.setattr(Engine, "attach", away)
    plain, kept = (create(bench, boxes, scout, persistent=persistent) for persistent in (False, True))

    async def scene():
        for sandbox in (plain, kept):
            boxes._lost(sandbox.pk, "host_lost")
        await boxes.losses.settled(within_s=20)

    bench.do(scene())
    for sandbox in (plain, kept):
        sandbox.refresh_from_db()
    assert (plain.status, plain.ended_reason, kept.status) == ("ended", "host_lost", "stopped")
    assert bench.left_over() == [f"{kept.pk}.ext4"]


def test_rows_and_docker_are_made_to_agree(bench, boxes, scout):
    half_stopped, removed, plain = (
        create(bench, boxes, scout, persistent=persistent) for persistent in (True, True, False)
    )
    lifecycle.stop(half_stopped, "idle")  # and then the console died
    for sandbox in (removed, plain):
        bench.do(_forget(boxes, sandbox.pk))
        bench.docker().api.remove_container(sandbox.container_id, force=True)
    stray = bench.create(disk_mb=64)
    bench.do(bench.engine._disks.make("sbx_onlyadisk", 16))
    never_made = lifecycle.make(scout, SMALL, image_id="sha256:1", can_network=False)
    Sandbox.objects.filter(pk=never_made.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    coming = lifecycle.make(scout, SMALL, image_id="sha256:1", can_network=False)

    bench.do(reconciling.reconcile(boxes))

    rows = {sandbox.pk: (sandbox.status, sandbox.ended_reason) for sandbox in Sandbox.objects.all()}
    assert rows[half_stopped.pk] == rows[removed.pk] == ("stopped", None)
    assert rows[plain.pk] == ("ended", "host_lost")
    assert rows[never_made.pk] == ("ended", "crashed")
    assert rows[coming.pk] == ("starting", None)
    assert sorted(bench.left_over()) == sorted(f"{sandbox.pk}.ext4" for sandbox in (half_stopped, removed))
    assert stray.sandbox_id not in bench.do(bench.engine.disks())
    for sandbox in (half_stopped, removed):
        assert run(bench, bench.do(boxes.ready_box(sandbox.pk)), "echo again") == "again\n"


async def _forget(boxes, sandbox_id):
    """As if the console had just been started."""
    await boxes._let_go(sandbox_id).close()


def test_what_was_used_a_moment_ago_without_a_trace_in_its_row_is_not_stopped(bench, boxes, scout, monkeypatch):
    """A write that is proposed looks at the file first: the row hears of it only afterwards."""
    from sandboxes import boxes as boxes_module

    sandbox = create(bench, boxes, scout)
    Sandbox.objects.filter(pk=sandbox.pk).update(last_activity_at=timezone.now() - timedelta(hours=1))
    bench.do(boxes.ready_box(sandbox.pk))
    bench.do(boxes.act_on_time(divisor=1))
    assert Sandbox.objects.get(pk=sandbox.pk).status == "running"
    monkeypatch.setattr(boxes_module, "JUST_USED_S", 0)
    bench.do(boxes.act_on_time(divisor=1))
    assert nothing_lives(bench)


HOGS = (
    "for i in $(seq 60); do head -c 1000000 /dev/zero > /tmp/$i; done; "
    "for i in $(seq 40); do python3 -c 'b = bytearray(30 << 20); import time; time.sleep(30)' & done; wait"
)


def test_a_sandbox_that_ran_out_of_memory_says_so_and_a_persistent_one_goes_on(bench, boxes, scout):
    plain, kept = (create(bench, boxes, scout, persistent=persistent) for persistent in (False, True))
    before = reaped("oom")
    for sandbox in (plain, kept):
        with pytest.raises(BoxGone) as gone:
            bench.bash(bench.do(boxes.ready_box(sandbox.pk)), HOGS)
        assert gone.value.reason == "oom"
    bench.do(boxes.losses.settled(within_s=20))
    plain.refresh_from_db()
    assert (plain.status, plain.ended_reason) == ("ended", "oom")
    assert reaped("oom") == before + 2
    stopped = kept.workspace.audit.filter(event="sandbox.stopped", subject_id=kept.pk).get()
    assert stopped.data == {"reason": "oom"}
    assert run(bench, bench.do(boxes.ready_box(kept.pk)), "echo again") == "again\n"


def reaped(reason):
    return counters.REGISTRY.get_sample_value("sandgate_reaps_total", {"reason": reason})
