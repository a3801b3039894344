"""A person's file takes its place sealed, with the bytes that came, or everything is as before."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from sandboxes.runner.files import Refused
from sandboxes.runner.publishing import beside
from tests.engine.on_host import OnHost

CONTENT = b"SECRET=1\n" * 1000


@pytest.fixture(params=[True, False], ids=["replaced", "new"])
def place(tmp_path: Path, request) -> Path:
    if request.param:
        (tmp_path / ".env").write_bytes(b"old")
    return tmp_path / ".env"


def what_lies(place: Path) -> dict[str, bytes]:
    return {name: (place.parent / name).read_bytes() for name in sorted(os.listdir(place.parent))}


def put(place: Path, seal, content: bytes = CONTENT) -> int:
    """The descriptor of somebody who held what was written open."""
    temporary, fd = beside(str(place))
    os.write(fd, content)
    OnHost().publisher.put_sealed(temporary, str(place), sha256(CONTENT).hexdigest(), 0o640, seal)
    return fd


def test_whoever_held_it_open_holds_another_file(place: Path) -> None:
    held = put(place, lambda: True)
    os.pwrite(held, b"EVIL", 0)
    assert what_lies(place) == {".env": CONTENT}
    assert place.stat().st_mode & 0o777 == 0o640


def test_what_changed_while_it_came_is_not_put_there(place: Path) -> None:
    before = what_lies(place)
    with pytest.raises(Refused):
        put(place, lambda: True, content=CONTENT + b"x")
    after = {name: content for name, content in what_lies(place).items() if not name.endswith(".part")}
    assert after == before


def test_what_could_not_be_sealed_leaves_the_old_one(place: Path) -> None:
    before, seen = what_lies(place), []

    def seal() -> bool:
        seen.append(place.read_bytes())
        return False

    with pytest.raises(Refused):
        put(place, seal)
    after = {name: content for name, content in what_lies(place).items() if not name.endswith(".part")}
    assert (seen, after) == ([CONTENT], before)


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / ".env").symlink_to("x")
    with pytest.raises(Refused):
        put(tmp_path / ".env", lambda: True)
    assert os.readlink(tmp_path / ".env") == "x"
