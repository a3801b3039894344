"""Two who remove the same sandbox do each other no harm: one deletes it, the other takes it for a stray."""

import asyncio
import os
import signal
from pathlib import Path


def test_removed_by_two_at_once(bench):
    for _ in range(5):
        box = bench.create()

        async def both(container_id=box.container_id):
            await asyncio.gather(*(bench.engine.remove(container_id) for _ in range(3)))

        bench.do(both())
        assert box.sandbox_id not in {found.sandbox_id for found in bench.do(bench.engine.found())}


def test_a_shim_that_outlives_its_sandbox_and_answers_no_more_does_not_keep_it(bench):
    """Seen with containerd 1.6: no process is left, and calls about the container wait for a minute or for ever."""
    box = bench.create()
    sandbox = bench.docker().containers.get(box.container_id).attrs["State"]["Pid"]
    shim = int(Path(f"/proc/{sandbox}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(shim, signal.SIGSTOP)
    os.kill(sandbox, signal.SIGKILL)
    bench.do(bench.engine.remove(box.container_id))
    assert box.sandbox_id not in {found.sandbox_id for found in bench.do(bench.engine.found())}
    assert not Path(f"/proc/{shim}").exists()
