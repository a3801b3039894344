"""The example that the README walks through, as a newcomer would run it; a reviewer's key stands in for the clicks."""

import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .served import CHECKOUT, Served

pytestmark = pytest.mark.gvisor


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    console = Served(tmp_path / "var").up()
    yield console
    console.close()


class Reviewer(threading.Thread):
    """Decides every proposal as `verdict`, and remembers what it saw."""

    def __init__(self, served: Served, verdict: str) -> None:
        super().__init__(daemon=True)
        self.served, self.verdict, self.seen = served, verdict, []
        self.over = threading.Event()

    def run(self) -> None:
        with self.served.api("agent") as agent, self.served.api("review") as reviewer:
            while not self.over.wait(0.1):
                for action in agent.get("/actions", params={"status": "pending"}).json()["items"]:
                    body = {"verdict": self.verdict, "digest": action["digest"], "reason": "Not on a Sunday."}
                    reviewer.post(f"/actions/{action['id']}/decision", json=body).raise_for_status()
                    self.seen.append((action["tool"], action["arguments"]))


def example(served: Served, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "examples/report_agent.py", "--url", served.url, "--out", str(out)],
        cwd=CHECKOUT,
        env={**served.environment, "SANDGATE_KEY": served.first_run["agent_key"]},
        capture_output=True,
        text=True,
        timeout=90,
    )


def test_approved_step_by_step_it_ends_with_a_real_report(served: Served, tmp_path: Path) -> None:
    reviewer = Reviewer(served, "approve")
    reviewer.start()
    done = example(served, tmp_path / "report.xlsx")
    reviewer.over.set()
    assert done.returncode == 0, done.stderr
    assert "309 years, 27 whole cycles, highest maximum 190.2 in 1957" in done.stdout
    assert [tool for tool, _ in reviewer.seen] == ["write", "write", "run"]
    assert reviewer.seen[2][1]["command"] == "python3 /work/make_report.py"
    with zipfile.ZipFile(tmp_path / "report.xlsx") as report:
        names = report.namelist()
        assert report.testzip() is None
    assert sum(name.startswith("xl/charts/chart") for name in names) == 2
    assert sum(name.startswith("xl/worksheets/sheet") for name in names) == 2


def test_denied_it_stops_and_prints_what_the_reviewer_said(served: Served, tmp_path: Path) -> None:
    reviewer = Reviewer(served, "deny")
    reviewer.start()
    done = example(served, tmp_path / "report.xlsx")
    reviewer.over.set()
    assert done.returncode == 1
    assert "Not on a Sunday." in done.stderr
    assert not (tmp_path / "report.xlsx").exists()
    assert len(reviewer.seen) == 1
    assert not served.containers()
