"""How long another call takes while 100 long-polls wait, beside the same call on the idle server, in one run.

.venv/bin/python -m tests.bench.waits [--runs 300]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from tests.bench import report
from tests.server.conftest import Client, connect
from tests.server.test_up import up
from tests.server.test_waits import PER_KEY, WAITING, ping, seed

REACH = 2.0


def medians_ms(client: Client, key: str, runs: int) -> tuple[float, float]:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        ping(client, key)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_known_args()[0].runs  # what the other scripts are asked for comes here as well
    with tempfile.TemporaryDirectory() as place, up(Path(place)) as (_, url, _log):
        port = int(url.rpartition(":")[2])
        action, secrets = seed(Path(place))
        client = connect(port)
        medians_ms(client, secrets[0], 50)
        idle, idle_p95 = medians_ms(client, secrets[0], runs)
        waits = [connect(port) for _ in range(WAITING)]
        for number, wait in enumerate(waits):
            wait.send(f"GET /v1/actions/{action}?wait=50 HTTP/1.1", key=secrets[number // PER_KEY])
        time.sleep(1)
        busy, busy_p95 = medians_ms(client, secrets[0], runs)
        print(f"idle                 p50 {idle:5.1f} ms   p95 {idle_p95:5.1f} ms")
        print(f"{WAITING} long-polls wait  p50 {busy:5.1f} ms   p95 {busy_p95:5.1f} ms")
        print(f"ratio of medians {busy / idle:.2f} (to reach: at most {REACH}), {runs} runs each")
        report.keep("waits", runs=runs, idle_ms=idle, waiting_ms=busy, ratio=busy / idle, reach=REACH)
        for each in (client, *waits):
            each.sock.close()


if __name__ == "__main__":
    main()
