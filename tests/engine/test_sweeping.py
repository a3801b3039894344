"""What a sweep finds is what is new, however it came there: against a walk of everything, on this machine's kernel."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandboxes.runner import sweeping
from sandboxes.runner.paths import Protection
from sandboxes.runner.sweeping import Sweeper

folders = st.sampled_from(["a", "b", "a/b", "a/c", "b/a", "node_modules", "a/node_modules", "a/node_modules/p"])
names = st.sampled_from([".env", "x.key", "id_rsa", "plain", "a.pem", "README"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("make"), folders, names),
        st.tuples(st.just("folder"), folders, folders),
        st.tuples(st.just("move"), folders, folders),
        st.tuples(st.just("name"), folders, names),
        st.tuples(st.just("drop"), folders, folders),
        st.tuples(st.just("sweep"), folders, folders),
    ),
    max_size=25,
)


def do(top: Path, what: str, first: str, second: str) -> None:
    try:
        if what == "make":
            (top / first).mkdir(parents=True, exist_ok=True)
            (top / first / second).write_text("x")
        elif what == "folder":
            (top / first / second).mkdir(parents=True, exist_ok=True)
        elif what == "move":
            (top / first).rename(top / second)
        elif what == "name":
            (top / first / "plain").rename(top / first / second)
        elif what == "drop":
            shutil.rmtree(top / first)
    except OSError:
        pass


def protected_below(top: Path, *, reported: bool) -> set[str]:
    found = set()
    for folder, _, files in os.walk(top):
        if any(part in sweeping.REPORTED for part in folder.split("/")) == reported:
            found |= {f"{folder}/{name}" for name in files if Protection().check(f"{folder}/{name}")}
    return found


def fresh(top: Path) -> Sweeper:
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    sweeper = Sweeper([str(top)])
    assert list(sweeper.everything()) == []
    return sweeper


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(done=steps)
def test_everything_new_is_found_and_nothing_else(tmp_path: Path, done: list[tuple[str, str, str]]) -> None:
    top = tmp_path / "work"
    sweeper, found = fresh(top), {}
    try:
        for what, first, second in done:
            do(top, what, first, second)
            if what == "sweep":
                found |= {each.path: each.reported_only for each in sweeper.among(sweeper.take())}
        found |= {each.path: each.reported_only for each in sweeper.among(sweeper.take())}
        there = {path for path, reported in found.items() if not reported and os.path.exists(path)}
        assert there == protected_below(top, reported=False)
        assert not sweeper.take()
        told = {path for path, reported in found.items() if reported and os.path.exists(path)}
        assert told <= protected_below(top, reported=True)
    finally:
        os.close(sweeper._fd)


def test_nothing_made_is_nothing_to_look_at(tmp_path: Path) -> None:
    sweeper = fresh(tmp_path / "work")
    (tmp_path / "work" / "old").write_text("x")
    sweeper.take()
    (tmp_path / "work" / "old").write_text("changed")
    (tmp_path / "work" / "old").unlink()
    assert sweeper.take() == b""
    assert not sweeper.must_walk


def test_what_is_too_much_to_keep_is_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "TOLD_BYTES", 400)
    sweeper = fresh(tmp_path / "work")
    for number in range(60):
        (tmp_path / "work" / f"{number}.txt").write_text("x")
        sweeper.collect()
    (tmp_path / "work" / ".env").write_text("x")
    assert {each.path for each in sweeper.among(sweeper.take())} == {str(tmp_path / "work" / ".env")}


def test_more_folders_than_can_be_watched_are_walked_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "MOST_WATCHES", 3)
    monkeypatch.setattr(sweeping, "AGAIN_S", 0.0)
    top = tmp_path / "work"
    sweeper = fresh(top)
    (top / "a/b/c/d").mkdir(parents=True)
    assert list(sweeper.among(sweeper.take())) == []
    (top / "a/b/c/d/.env").write_text("x")
    assert sweeper.take() == b""
    assert sweeper.must_walk
    assert [each.path for each in sweeper.everything()] == [str(top / "a/b/c/d/.env")]


def test_a_link_is_told_and_not_followed_and_a_pipe_is_told(tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / ".env").write_text("x")
    sweeper = fresh(tmp_path / "work")
    os.symlink(tmp_path / "else", tmp_path / "work" / "way")
    os.symlink(tmp_path / "else" / ".env", tmp_path / "work" / ".envrc")
    os.mkfifo(tmp_path / "work" / "a.pem")
    os.symlink("nowhere", tmp_path / "work" / "b.pem")
    wanted = {(str(tmp_path / "work" / name), True) for name in (".envrc", "a.pem", "b.pem")}
    assert {(each.path, each.reported_only) for each in sweeper.among(sweeper.take())} == wanted
    assert {(each.path, each.reported_only) for each in sweeper.everything()} == wanted
