"""A console that says it is ready on its first line is ready for whoever asks without a key."""

from pathlib import Path

import httpx
import pytest

from .served import Served

pytestmark = pytest.mark.gvisor


def test_a_console_that_is_up_is_ready(tmp_path: Path) -> None:
    served = Served(tmp_path / "var").up()
    try:
        ready = httpx.get(f"{served.url}/readyz", trust_env=False)
        assert (ready.status_code, set(ready.json()["parts"].values())) == (200, {"ready"})
        head = httpx.head(f"{served.url}/healthz", headers={"Host": "10.0.0.1"}, trust_env=False)
        assert (head.status_code, head.content) == (200, b"")
    finally:
        served.close()
