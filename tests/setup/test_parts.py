"""What the set-up takes from the machine: its mirror, its runsc; and what it keeps from running twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lib import debian, lock, runsc, venv
from lib.place import CHECKOUT, Place
from lib.say import Stop, run
from lib.test import benches, none_skipped


@pytest.mark.parametrize(
    ("sources", "mirror"),
    [
        ("deb http://mirror.example/debian bookworm main\n", "http://mirror.example/debian"),
        (
            "deb [signed-by=/k.gpg arch=amd64] https://m.example/pub/debian/ bookworm main\n",
            "https://m.example/pub/debian",
        ),
        ("Types: deb\nURIs: http://m.example/debian\nSuites: bookworm\n", "http://m.example/debian"),
        ("# deb http://old.example/debian bookworm main\n", None),
        ("URIs: http://m.example/debian-security\n", None),
        ("deb https://other.example/node nodistro main\n", None),
    ],
)
def test_the_machines_own_mirror_is_found_in_both_formats(sources: str, mirror: str | None) -> None:
    assert debian.mirror_in(sources) == mirror


@pytest.mark.parametrize(
    ("printed", "taken"),
    [
        ("runsc version release-20221212.0-dirty", False),
        ("runsc version 0.0~20240729.0", True),
        ("runsc version release-20260105.0", True),
        ("something else", False),
    ],
)
def test_a_runsc_of_the_machine_is_taken_only_when_new_enough(
    printed: str, taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "runsc"
    program.write_text(f"#!/bin/sh\necho '{printed}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert runsc.on_machine() == (program if taken else None)


def test_a_second_start_in_the_same_state_directory_is_told_who_has_it(tmp_path: Path) -> None:
    here = Place(var=tmp_path, cache=tmp_path)
    first = lock.take(here)
    with pytest.raises(Stop, match=f"process {os.getpid()}.*SANDGATE_VAR"):
        lock.take(here)
    first.close()
    lock.take(here).close()


def test_a_failing_step_shows_what_it_printed_and_the_fix() -> None:
    with pytest.raises(Stop, match="(?s)ended with 3.*the reason.*do this"):
        run(["sh", "-c", "echo the reason; exit 3"], fix="do this")


def test_a_skipped_test_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "r.xml"
    report.write_text('<testsuites><testsuite><testcase classname="a" name="b"/></testsuite></testsuites>')
    assert none_skipped(report)
    report.write_text(
        '<testsuites><testsuite><testcase classname="a" name="b"><skipped/></testcase></testsuite></testsuites>'
    )
    assert not none_skipped(report)
    assert "skipped: a.b" in capsys.readouterr().out


def test_there_is_something_that_measures() -> None:
    assert {"tests.bench.sandboxes", "tests.bench.waits"} <= set(benches())


@pytest.mark.parametrize("script", benches())
def test_each_bench_takes_the_arguments_that_bin_test_passes_on(script: str) -> None:
    command = [sys.executable, "-m", script, "--help"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "--runs" in done.stdout


def test_without_an_archive_in_apts_sources_the_variable_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "SOURCES", tmp_path)
    monkeypatch.delenv("SANDGATE_DEBIAN_MIRROR", raising=False)
    with pytest.raises(Stop, match="SANDGATE_DEBIAN_MIRROR"):
        debian.mirror()
    monkeypatch.setenv("SANDGATE_DEBIAN_MIRROR", "http://mirror.example/debian/")
    assert debian.mirror() == "http://mirror.example/debian"


def test_a_virtual_environment_that_was_cut_off_while_it_was_made_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[str]] = []
    monkeypatch.setattr(venv, "VENV", tmp_path)
    monkeypatch.setattr(venv, "PYTHON", tmp_path / "bin/python")
    monkeypatch.setattr(venv, "run", made.append)
    venv.PYTHON.parent.mkdir()
    venv.PYTHON.symlink_to(sys.executable)
    venv.make()
    assert len(made) == 1, "it has a Python and no pip"
    (tmp_path / "lib/python3.11/site-packages/pip").mkdir(parents=True)
    venv.make()
    assert len(made) == 1, "it is whole"
