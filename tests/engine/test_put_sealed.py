"""A person's file takes its place sealed, with the bytes that came, or everything is as before."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sandboxes.runner import putting
from sandboxes.runner.files import Refused
from sandboxes.runner.publishing import beside
from tests.engine.on_host import Alone

CONTENT = b"SECRET=1\n" * 1000


class Held:
    """Instead of a Hold: says in which order the seal went and came."""

    def __init__(self, seal: Callable[[], bool] = lambda: True) -> None:
        self.acts: list[str] = []
        self._seal = seal

    def lift(self) -> None:
        self.acts.append("lift")

    def seal(self) -> bool:
        self.acts.append("seal")
        return self._seal()

    def back(self) -> None:
        self.acts.append("back")


@pytest.fixture(params=[True, False], ids=["replaced", "new"])
def place(tmp_path: Path, request) -> Path:
    if request.param:
        (tmp_path / ".env").write_bytes(b"old")
    return tmp_path / ".env"


def what_lies(place: Path) -> dict[str, bytes]:
    names = sorted(name for name in os.listdir(place.parent) if not name.endswith(".part"))
    return {name: (place.parent / name).read_bytes() for name in names}


def put(place: Path, hold: Any, content: bytes = CONTENT, expect: Callable[[], object] = lambda: None) -> int:
    """The descriptor of somebody who held what was written open."""
    temporary, fd = beside(str(place))
    os.write(fd, content)
    os.chmod(temporary, 0)  # and shut it
    putting.put(Alone(), temporary, str(place), sha256(CONTENT).hexdigest(), 0o640, hold, expect)  # type: ignore[arg-type]
    return fd


def test_whoever_held_it_open_holds_another_file(place: Path) -> None:
    held = put(place, hold := Held())
    os.pwrite(held, b"EVIL", 0)
    assert what_lies(place) == {".env": CONTENT}
    assert place.stat().st_mode & 0o777 == 0o640
    assert hold.acts == ["lift", "seal"]
    assert len(os.listdir(place.parent)) == 1


def test_what_changed_while_it_came_is_not_put_there_and_no_seal_was_let_go(place: Path) -> None:
    before = what_lies(place)
    with pytest.raises(Refused):
        put(place, hold := Held(), content=CONTENT + b"x")
    assert (what_lies(place), hold.acts) == (before, [])


def test_what_leads_elsewhere_by_then_is_not_put_there(place: Path) -> None:
    before = what_lies(place)

    def expect() -> None:
        raise Refused("bad_path", "it leads through a link")

    with pytest.raises(Refused):
        put(place, hold := Held(), expect=expect)
    assert (what_lies(place), hold.acts) == (before, [])


def test_what_could_not_be_sealed_leaves_the_old_one_as_it_was(place: Path) -> None:
    before, seen = what_lies(place), []

    def seal() -> bool:
        seen.append(place.read_bytes())
        return False

    with pytest.raises(Refused):
        put(place, hold := Held(seal))
    assert (seen, what_lies(place), hold.acts) == ([CONTENT], before, ["lift", "seal", "back"])


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / ".env").symlink_to("x")
    with pytest.raises(Refused):
        put(tmp_path / ".env", hold := Held())
    assert os.readlink(tmp_path / ".env") == "x"
    assert hold.acts == []


@pytest.mark.parametrize("way", ["second name", "held open"])
def test_what_is_sealed_again_is_parted_from_what_could_still_write_it(tmp_path: Path, way: str) -> None:
    place, world = tmp_path / ".env", Alone()
    place.write_bytes(CONTENT)
    place.chmod(0o200)
    world.is_written = way == "held open"
    if way == "second name":
        os.link(place, tmp_path / "two")
    with place.open("r+b") as held:
        assert putting.again(world, str(place), Held())  # type: ignore[arg-type]
        held.write(b"FORGED")
    assert place.read_bytes() == CONTENT
    assert place.stat().st_nlink == 1


def test_what_is_alone_is_sealed_again_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(CONTENT)
    before = os.stat(tmp_path / ".env").st_ino
    assert putting.again(Alone(), str(tmp_path / ".env"), hold := Held())  # type: ignore[arg-type]
    assert (os.stat(tmp_path / ".env").st_ino, hold.acts) == (before, ["seal"])


def test_no_link_is_sealed_again(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(CONTENT)
    (tmp_path / ".env").symlink_to("real")
    assert not putting.again(Alone(), str(tmp_path / ".env"), hold := Held())  # type: ignore[arg-type]
    assert hold.acts == []
