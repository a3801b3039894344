"""Two who remove the same sandbox do each other no harm: one deletes it, the other takes it for a stray."""

import asyncio


def test_removed_by_two_at_once(bench):
    for _ in range(5):
        box = bench.create()

        async def both(container_id=box.container_id):
            await asyncio.gather(*(bench.engine.remove(container_id) for _ in range(3)))

        bench.do(both())
        assert box.sandbox_id not in {found.sandbox_id for found in bench.do(bench.engine.found())}
