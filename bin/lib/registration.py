"""How `runsc` must be registered on this kernel, found out by starting a sandbox. Never falls back to runc."""

from collections.abc import Iterable
from typing import Any

import docker

from lib import leftovers
from lib.runsc import Runsc
from lib.say import Stop

PLAIN, UNSHARE, HOST = "runsc-sandgate", "runsc-sandgate-unshare", "runsc-sandgate-hostnet"
TRIAL_S = 60


def candidates(runsc: Runsc) -> dict[str, Any]:
    """In order of preference: as it is; its own network stack behind a wrapper; the container's network stack."""
    return {
        PLAIN: {"path": str(runsc.path)},
        UNSHARE: {"path": str(runsc.wrapper)},
        HOST: {"path": str(runsc.path), "runtimeArgs": ["--network=host"]},
    }


def first_working(client: docker.DockerClient, image: str, runtimes: Iterable[str]) -> str:
    reasons = []
    for runtime in runtimes:
        reason = trial(client, image, runtime)
        if reason is None:
            return runtime
        reasons.append(f"    {runtime}: {reason}")
    raise Stop("gVisor starts no sandbox here:\n" + "\n".join(reasons) + "\nTry a newer runsc in /usr/local/bin.")


def trial(client: docker.DockerClient, image: str, runtime: str) -> str | None:
    """None when a sandbox really ran and really was gVisor; else why not."""
    container = None
    reason: str | None = "it did not end"
    try:
        container = client.containers.create(image, ["dmesg"], runtime=runtime, network_mode="none", read_only=True)
        container.start()
        code = container.wait(timeout=TRIAL_S)["StatusCode"]
        text = container.logs().decode(errors="replace").strip()
        reason = None if code == 0 and "gVisor" in text else f"exit {code}: {text[-300:] or 'no output'}"
    except (docker.errors.APIError, OSError) as problem:
        reason = str(problem).strip()[-300:]
    finally:
        if container is not None:
            container.remove(force=True)
            if reason:  # a start that fails half-way leaves a sandbox which Docker no longer knows
                leftovers.end(container.id, quiet_s=1)
    return reason
