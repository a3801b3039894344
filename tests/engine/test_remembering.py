"""What a person sealed is remembered from one start to the next, whatever its name, and however a machine stopped."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandboxes.runner import remembering
from sandboxes.runner.files import Refused
from sandboxes.runner.remembering import opened

names = st.sampled_from(["a", "b c", "new\nline", "-", "+x", '"', "\udcff", "ä", "é\u2028"])
steps = st.lists(st.tuples(st.sampled_from(["add", "drop", "open", "cut"]), names), max_size=20)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(done=steps)
def test_what_was_taken_and_not_given_up_is_there_at_the_next_start(
    tmp_path: Path, done: list[tuple[str, str]]
) -> None:
    kept, wanted = tmp_path / remembering.NAME, set[str]()
    kept.unlink(missing_ok=True)
    remembered = opened(str(tmp_path))
    for what, name in done:
        path = os.path.join(os.fsencode(tmp_path), os.fsencode(name)).decode("utf-8", "surrogateescape")
        if what == "add":
            Path(path).touch()
            assert remembered.add(path) is (path not in wanted)
            wanted.add(path)
        elif what == "drop" and path in wanted:
            remembered.drop(path)
            wanted.remove(path)
        else:
            os.close(remembered._fd)
            if what == "cut":
                kept.write_bytes(kept.read_bytes() + b'+"/half')
            remembered = opened(str(tmp_path))
        assert set(remembered) == wanted
    os.close(remembered._fd)
    remembered = opened(str(tmp_path))
    assert set(remembered) == wanted
    os.close(remembered._fd)


def test_what_is_gone_is_forgotten_and_what_may_not_be_looked_at_is_not(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a").touch()
    remembered = opened(str(tmp_path))
    remembered.add(f"{tmp_path}/a")
    remembered.add(f"{tmp_path}/gone")
    assert set(opened(str(tmp_path))) == {f"{tmp_path}/a"}

    def shut(path: str) -> None:
        raise PermissionError(13, "")

    monkeypatch.setattr(os, "lstat", shut)
    assert set(opened(str(tmp_path))) == {f"{tmp_path}/a"}


def test_there_is_a_most_and_nobody_else_may_read_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(remembering, "MOST", 2)
    remembered = opened(str(tmp_path))
    assert [remembered.add(path) for path in ("/a", "/b", "/a")] == [True, True, False]
    with pytest.raises(Refused):
        remembered.add("/c")
    assert "/c" not in remembered
    assert (tmp_path / remembering.NAME).stat().st_mode & 0o777 == 0o600
