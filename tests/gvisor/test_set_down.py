"""A sandbox that is set down leaves a file, and nothing else of the machine; made again on it, its files are there."""

import asyncio

import docker
import docker.errors
import pytest

from sandboxes.engine import CreateFailed
from sandboxes.engine import engine as engine_module
from sandboxes.engine.attach import AttachFailed
from sandboxes.errors import BoxGone
from tests.gvisor.engines import loop_files, new_id

LAY = "mkdir -p a/b && echo kept > a/b/f && chmod 640 a/b/f && ln -s b a/l && echo home > ~/h && sleep 60 & sleep 0.3"
SEE = "cat a/l/f ~/h; stat -c %a:%U a/b/f; df -m --output=size /work | tail -1; pgrep -c sleep"


@pytest.fixture(scope="module")
def down(bench):
    """One that had files written, without a word to the disk, and was set down. Its spec."""
    spec = bench.spec(disk_mb=64, env={"MONTH": "3"})
    box = bench.do(bench.engine.create(spec))
    bench.bash(box, LAY)
    bench.do(bench.engine.set_down(spec.sandbox_id, reason="idle"))
    with pytest.raises(BoxGone) as caught:
        bench.bash(box, "true")
    assert caught.value.reason == "idle"
    yield spec
    bench.do(bench.engine.erase(spec.sandbox_id))
    assert bench.left_over() == []


def only_a_file(bench, spec):
    left = bench.left_over()
    return left == [f"{spec.sandbox_id}.ext4"] and bench.do(bench.engine.disks()) == {spec.sandbox_id}


def test_files_variables_and_limits_are_there_again_and_nothing_runs(bench, down):
    assert only_a_file(bench, down)
    assert not [file for file in loop_files() if down.sandbox_id in file]
    for _ in range(2):
        box = bench.do(bench.engine.create(down, kept=True))
        seen = bench.bash(box, f"{SEE}; echo $MONTH").text.split()
        assert seen[:3] == ["kept", "home", "640:agent"]
        assert 56 <= int(seen[3]) <= 64
        assert seen[4:] == ["0", "3"]
        bench.do(bench.engine.set_down(down.sandbox_id, reason="idle"))
    assert only_a_file(bench, down)


STAGES = {
    "attach": (engine_module.Link, "attach"),
    "hello": (engine_module.Link, "greet"),
    "container": (docker.APIClient, "create_container"),
    "start": (docker.APIClient, "start"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_start_that_fails_at_any_stage_leaves_the_files_and_nothing_else(bench, down, monkeypatch, stage):
    owner, name = STAGES[stage]
    real = getattr(owner, name)

    async def fails(*args, **kwargs):
        await real(*args, **kwargs)
        raise AttachFailed("as the test wants")

    def refuses(*args, **kwargs):
        real(*args, **kwargs)
        raise docker.errors.APIError("as the test wants")

    monkeypatch.setattr(owner, name, refuses if owner is docker.APIClient else fails)
    with pytest.raises(CreateFailed, match="as the test wants"):
        bench.do(bench.engine.create(down, kept=True))
    monkeypatch.undo()
    assert only_a_file(bench, down)


def test_a_start_or_a_stop_cancelled_at_any_moment_leaves_the_files_and_nothing_else(bench, down):
    async def cut(work, after_s):
        task = asyncio.ensure_future(work)
        await asyncio.sleep(after_s)
        task.cancel()
        await asyncio.wait([task])

    for after_s in (0.02, 0.1, 0.2, 0.35):
        bench.do(cut(bench.engine.create(down, kept=True), after_s))
        bench.do(cut(bench.engine.set_down(down.sandbox_id, reason="idle"), after_s / 4))
        bench.do(bench.engine.set_down(down.sandbox_id, reason="idle"))
        assert only_a_file(bench, down)
    box = bench.do(bench.engine.create(down, kept=True))
    assert bench.bash(box, "cat a/b/f").text == "kept\n"
    bench.do(bench.engine.set_down(down.sandbox_id, reason="idle"))


def test_no_disk_is_made_over_one_that_is_there_and_none_is_made_up(bench, down):
    with pytest.raises(CreateFailed, match="has a disk already"):
        bench.do(bench.engine.create(down))
    with pytest.raises(CreateFailed, match="has no disk any more"):
        bench.do(bench.engine.create(bench.spec(sandbox_id=new_id()), kept=True))
    assert only_a_file(bench, down)


def test_a_disk_that_was_cut_off_with_the_machine_is_mended(bench, down):
    """Set "in use" by hand, as a crash of the machine leaves it: ext4 without a journal."""
    import subprocess

    file = bench.config.var / "disks" / f"{down.sandbox_id}.ext4"
    subprocess.run(["debugfs", "-w", "-R", "ssv state 0", str(file)], check=True, capture_output=True, timeout=30)
    subprocess.run(["debugfs", "-w", "-R", "ssv free_blocks_count 7", str(file)], check=True, capture_output=True)
    box = bench.do(bench.engine.create(down, kept=True))
    assert bench.bash(box, "cat a/b/f && head -c 2000000 /dev/zero > big && wc -c < big").text == "kept\n2000000\n"
    bench.do(bench.engine.set_down(down.sandbox_id, reason="idle"))


def test_a_disk_whose_file_was_deleted_under_it_leaves_no_device(bench):
    spec = bench.spec(disk_mb=64)
    bench.do(bench.engine.create(spec))
    (bench.config.var / "disks" / f"{spec.sandbox_id}.ext4").unlink()
    bench.do(bench.engine.erase(spec.sandbox_id))
    assert not [file for file in loop_files() if spec.sandbox_id in file]
