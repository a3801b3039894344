"""Two instances on one machine never share a name."""

from pathlib import Path

import pytest

from console import state
from lib.place import Place, place


def at(var: Path) -> Place:
    return Place(var=var, cache=Path("/nowhere"))


def test_two_state_directories_share_no_host_wide_name(tmp_path: Path) -> None:
    one, other = at(tmp_path / "one"), at(tmp_path / "other")
    assert one.instance != other.instance
    assert one.run != other.run


def test_the_product_and_the_set_up_make_the_same_id_of_a_state_directory(tmp_path: Path) -> None:
    assert at(tmp_path).instance == state.instance(tmp_path)


def test_a_deep_state_directory_still_gets_a_socket_path_the_kernel_takes(tmp_path: Path) -> None:
    assert len(bytes(at(tmp_path / ("deep/" * 60)).socket)) <= 107


def test_the_state_directory_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    monkeypatch.setenv("SANDGATE_VAR", str(tmp_path / "open"))
    monkeypatch.setenv("SANDGATE_CACHE", str(tmp_path / "cache"))
    assert place().var.stat().st_mode & 0o777 == 0o700


def test_a_link_to_a_state_directory_is_the_same_instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("SANDGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SANDGATE_VAR", str(tmp_path / "real"))
    direct = place()
    monkeypatch.setenv("SANDGATE_VAR", str(tmp_path / "link"))
    assert place().instance == direct.instance
