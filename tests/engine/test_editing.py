"""Editing and writing by version: the runner's own steps, on this machine."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandboxes.runner import asked, editing, publishing
from sandboxes.runner.lines import version_of
from sandboxes.runner.versions import Versions
from tests.engine.desk import BASE, Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# --- several edits from one read ---------------------------------------------------------------------------------


def test_edits_from_one_read_are_carried_over_from_both_ends(desk: Desk) -> None:
    seen = desk.view()
    assert not desk.edit(seen, ("insert_after", 1, ["1a", "1b"]))["ok"]["report"]["carried"]
    assert desk.edit(seen, ("replace", 4, ["FOUR"]))["ok"]["report"]["carried"]
    assert desk.path.read_bytes() == b"one\n1a\n1b\ntwo\nthree\nFOUR\n"


def test_what_lies_between_two_edits_is_not_guessed(desk: Desk) -> None:
    seen = desk.view()
    desk.edit(seen, ("replace", 1, ["ONE"]))
    desk.edit(seen, ("replace", 4, ["FOUR"]))
    error = desk.edit(seen, ("replace", 3, ["THREE"]))["error"]
    assert error["code"] == "stale_edit"
    assert error["detail"].startswith("Nothing was written. ")
    assert error["version"] == version_of(desk.path.read_bytes())
    assert [line[2] for line in error["lines"]] == ["ONE", "two", "three", "FOUR"]
    assert "ok" in desk.edit({"version": error["version"], "lines": error["lines"]}, ("replace", 3, ["THREE"]))
    assert desk.path.read_bytes() == b"ONE\ntwo\nTHREE\nFOUR\n"


def test_the_lines_of_a_report_are_anchors_for_the_next_edit(desk: Desk) -> None:
    report = desk.edit(desk.view(), ("replace", 2, ["a", "b", "c"]))["ok"]["report"]
    assert report["moved"] == [[3, 2]]
    desk.edit(report, ("replace", 3, ["B"]))
    assert desk.path.read_bytes() == b"one\na\nB\nc\nthree\nfour\n"


def test_a_version_that_is_kept_no_longer_is_stale(desk: Desk) -> None:
    seen = desk.view()
    desk.path.write_bytes(BASE + b"five\n")
    desk.host.versions = Versions()
    assert desk.edit(seen, ("replace", 1, ["ONE"]))["error"]["code"] == "stale_edit"


def test_a_version_of_another_path_is_not_carried_over(desk: Desk) -> None:
    seen = desk.view()
    other = desk.root / "b.txt"
    other.write_bytes(BASE + b"five\n")
    assert desk.edit(seen, ("replace", 1, ["ONE"]), path=str(other))["error"]["code"] == "stale_edit"


@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_however_it_is_edited_what_is_told_is_what_is_there(tmp_path: Path, data: Any) -> None:
    """Each step edits from the first read, from the last, or behind the tool's back; a model keeps the lines."""
    desk = Desk(tmp_path)
    seen = [desk.view()]
    for step in range(data.draw(st.integers(1, 6))):
        base = data.draw(st.sampled_from(seen))
        if data.draw(st.integers(0, 4)) == 0:
            desk.path.write_bytes(desk.path.read_bytes() + f"behind {step}\n".encode())
            continue
        before = desk.path.read_bytes().decode().split("\n")
        number, mine = data.draw(st.sampled_from(base["lines"]))[0], f"step {step}"
        was = next(text for at, _, text in base["lines"] if at == number)
        told = desk.edit(base, ("replace", number, [mine]))
        after = desk.path.read_bytes().decode().split("\n")
        if "error" in told:
            assert after == before
            continue
        report, changed = (
            told["ok"]["report"],
            [n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b],
        )
        assert [before[n] for n in changed] == [was]
        assert [after[n] for n in changed] == [mine]
        assert report["version"] == version_of(desk.path.read_bytes())
        seen.append(desk.view())
        assert all(line in seen[-1]["lines"] for line in report["lines"])


# --- what a person saw -------------------------------------------------------------------------------------------


def test_a_draft_changes_nothing_and_is_what_the_edit_then_does(desk: Desk) -> None:
    seen = desk.view()
    told = desk.draft(seen, ("replace", 2, ["TWO"]))
    old, new = told["content"][: told["info"]["old_bytes"]], told["content"][told["info"]["old_bytes"] :]
    assert (old, desk.path.read_bytes(), desk.host.world.moments) == (BASE, BASE, 0)
    becomes = sha256(new).hexdigest()
    assert "ok" in desk.edit(seen, ("replace", 2, ["TWO"]), base=told["info"]["sha256"], becomes=becomes)
    assert desk.path.read_bytes() == new


def test_an_approved_edit_is_not_made_of_another_file_or_to_another_end(desk: Desk) -> None:
    seen = desk.view()
    sha = desk.draft(seen, ("replace", 2, ["TWO"]))["info"]["sha256"]
    error = desk.edit(seen, ("replace", 2, ["TWO"]), base=sha, becomes="0" * 64)["error"]
    assert (error["code"], desk.path.read_bytes()) == ("stale_edit", BASE)
    desk.path.write_bytes(BASE + b"five\n")
    error = desk.edit(seen, ("replace", 2, ["TWO"]), base=sha)["error"]
    assert (error["code"], desk.path.read_bytes()) == ("stale_edit", BASE + b"five\n")
    link = desk.root / "link"
    link.symlink_to(desk.path)
    assert desk.edit(seen, ("replace", 2, ["TWO"]), base=sha, path=str(link))["error"]["code"] == "bad_path"


# --- what stays --------------------------------------------------------------------------------------------------


def test_a_link_stays_one_and_its_target_is_edited(desk: Desk) -> None:
    link = desk.root / "link"
    link.symlink_to("a.txt")
    assert desk.edit(desk.view(link), ("replace", 1, ["ONE"]), path=str(link))["ok"]["path"] == str(desk.path)
    assert link.is_symlink()
    assert desk.path.read_bytes().startswith(b"ONE\n")
    desk.only("a.txt", "link")


def test_mode_and_attributes_stay(desk: Desk) -> None:
    desk.path.chmod(0o4750)
    has_attributes = True
    try:
        os.setxattr(desk.path, "user.kept", b"yes")
    except OSError:
        has_attributes = False
    desk.edit(desk.view(), ("replace", 1, ["ONE"]))
    assert desk.path.stat().st_mode & 0o7777 == 0o4750
    if has_attributes:
        assert os.getxattr(desk.path, "user.kept") == b"yes"


def test_an_edit_that_changes_nothing_touches_nothing(desk: Desk) -> None:
    before = desk.path.stat()
    report = desk.edit(desk.view(), ("replace", 1, ["one"]))["ok"]["report"]
    assert (report["changed"], desk.host.world.moments) == (False, 0)
    assert desk.path.stat() == before


@pytest.mark.parametrize("size", [len(BASE) - 8, len(BASE) + 4000])
def test_a_file_that_somebody_holds_open_to_write_stays_the_same_file(desk: Desk, size: int) -> None:
    desk.host.world.is_written = True
    with open(desk.path, "ab", buffering=0) as held:
        inode = desk.path.stat().st_ino
        line = "x" * (size - len(BASE) + 3) if size > len(BASE) else None
        wish = ("replace", 1, [line]) if line else ("delete", 3, None)
        assert "ok" in desk.edit(desk.view(), wish)
        held.write(b"later\n")
    assert desk.path.stat().st_ino == inode
    assert desk.path.read_bytes() == (f"{line}\n".encode() + BASE[4:] if line else b"one\ntwo\nfour\n") + b"later\n"
    desk.only("a.txt")


def test_no_room_behind_the_old_end_leaves_the_old_bytes(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.host.world.is_written = True
    seen, real = desk.view(), os.pwrite

    def pwrite(fd: int, data: bytes, at: int) -> int:
        if at >= len(BASE) + 1000:
            raise OSError(28, "no space")
        return real(fd, data[: 1000 - at % 1000], at)

    monkeypatch.setattr(publishing.os, "pwrite", pwrite)
    assert desk.edit(seen, ("replace", 1, ["x" * 5000]))["error"]["code"] == "no_space"
    assert desk.path.read_bytes() == BASE
    desk.only("a.txt")


# --- what changes in between -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["same size", "grown", "renamed over", "gone", "a folder", "a link", "another name"])
def test_what_the_last_look_does_not_find_as_it_was_is_not_replaced(desk: Desk, way: str) -> None:
    theirs, path, other = b"ONE\ntwo\nthree\nfour\n", desk.path, desk.root / "other"
    steps = {
        "same size": lambda: path.write_bytes(theirs),
        "grown": lambda: path.write_bytes(BASE + b"five\n"),
        "renamed over": lambda: (other.write_bytes(BASE), other.rename(path)),
        "gone": path.unlink,
        "a folder": lambda: (path.unlink(), path.mkdir()),
        "a link": lambda: (path.rename(other), path.symlink_to(other)),
        "another name": lambda: other.hardlink_to(path),
    }
    seen = desk.view()
    desk.host.world.before_last_look = steps[way]
    error = desk.edit(seen, ("replace", 2, ["TWO"]))["error"]
    assert error["code"] == "stale_edit", error
    assert not any(name.startswith(".sandgate") for name in os.listdir(desk.root))
    if way == "same size":
        assert (path.read_bytes(), error["version"]) == (theirs, version_of(theirs))
    if way == "gone":
        assert not path.exists()


def test_an_edit_without_room_leaves_all_as_it_was(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = desk.view()

    def full(fd: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(editing.os, "fsync", full)
    assert desk.edit(seen, ("replace", 1, ["ONE"]))["error"]["code"] == "no_space"
    assert desk.path.read_bytes() == BASE
    desk.only("a.txt")


# --- writing by version ------------------------------------------------------------------------------------------


def test_a_write_of_what_must_not_be_there_makes_it_and_its_folders(desk: Desk) -> None:
    path = desk.root / "n" / "e" / "w"
    report = desk.host.write(str(path), b"x\n", version="")["ok"]["report"]
    assert (path.read_bytes(), report["version"], report["changed"]) == (b"x\n", version_of(b"x\n"), True)
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(path.parent) == ["w"]


@pytest.mark.parametrize("version", ["", "0123456789ab"])
def test_a_write_without_the_current_version_is_refused_with_it(desk: Desk, version: str) -> None:
    error = desk.host.write(str(desk.path), b"x\n", version=version)["error"]
    assert (error["code"], error["version"], desk.path.read_bytes()) == ("stale_edit", version_of(BASE), BASE)
    assert [line[2] for line in error["lines"]] == ["one", "two", "three", "four"]
    assert error["detail"].startswith("Nothing was written. ")
    desk.only("a.txt")


def test_a_write_of_what_is_gone_does_not_make_it_again(desk: Desk) -> None:
    desk.path.unlink()
    assert desk.host.write(str(desk.path), b"x\n", version=version_of(BASE))["error"]["code"] == "stale_edit"
    desk.only()


def test_a_write_by_version_says_what_it_changed(desk: Desk) -> None:
    desk.path.chmod(0o600)
    told = desk.host.write(str(desk.path), b"one\nTWO\nthree\nfour\nfive\n", version=version_of(BASE))["ok"]["report"]
    assert told["diff"].split("\n") == ["@@ -1,4 +1,5 @@", " one", "-two", "+TWO", " three", " four", "+five"]
    assert told["moved"] == []
    assert desk.path.stat().st_mode & 0o777 == 0o600
    desk.edit(told, ("replace", 5, ["FIVE"]))
    assert desk.path.read_bytes() == b"one\nTWO\nthree\nfour\nFIVE\n"


@pytest.mark.parametrize("version", ["", None])
def test_what_comes_while_a_write_is_made_is_not_overwritten(desk: Desk, version: str | None) -> None:
    """`None`: by the version that was read."""
    path = desk.root / "new" if version == "" else desk.path
    create = desk.host.publisher.create

    def late(temporary: str, real: str) -> None:
        path.write_bytes(b"theirs\n")
        create(temporary, real)

    desk.host.publisher.create = late  # type: ignore[method-assign]
    desk.host.world.before_last_look = lambda: path.write_bytes(b"theirs\n")
    told = desk.host.write(str(path), b"mine\n", version=version_of(BASE) if version is None else version)
    assert (told["error"]["code"], path.read_bytes()) == ("stale_edit", b"theirs\n")


def test_hard_links_are_not_parted(desk: Desk) -> None:
    (desk.root / "twin").hardlink_to(desk.path)
    seen = desk.view()
    assert desk.edit(seen, ("replace", 1, ["ONE"]))["error"]["code"] == "hard_link"
    assert desk.host.write(str(desk.path), b"x", version=seen["version"])["error"]["code"] == "hard_link"


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_write_that_has_come_whole_is_made_though_its_caller_leaves(desk: Desk, is_whole: bool) -> None:
    """The runner drops only what is not whole, and answers whoever asks again for the rest."""
    later: list[Any] = []
    desk.host.ready = later.append  # type: ignore[method-assign]
    message = {"id": "act", "path": str(desk.path), "mode": None, "size": None, "version": version_of(BASE)}
    write: Any = asked.CHANGES["write"](desk.host, 1, message, b"")  # type: ignore[arg-type]
    write.content(b"new\n", last=is_whole)
    write.unfollow()
    later[0].run_steps()
    assert write.is_whole == is_whole
    assert ("ok" in write.result) == is_whole
    assert desk.path.read_bytes() == (b"new\n" if is_whole else BASE)
    desk.only("a.txt")


@pytest.mark.parametrize("is_there", [True, False])
def test_without_hard_links_all_stands_still_while_a_file_is_made(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    path = desk.root / "new"

    def no_links(*names: str, **how: Any) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(publishing.os, "link", no_links)
    if is_there:
        desk.host.world.before_last_look = lambda: path.write_bytes(b"theirs\n")
    told = desk.host.write(str(path), b"mine\n", version="")
    assert told.get("error", {}).get("code") == ("stale_edit" if is_there else None)
    assert (path.read_bytes(), desk.host.world.moments) == (b"theirs\n" if is_there else b"mine\n", 1)
    desk.only("a.txt", "new")


@pytest.mark.parametrize(
    "wishes",
    [
        [("replace", 2, ["two"])],
        [("delete", 2, None), ("insert_before", 3, ["two"])],
        [("insert_after", 1, ["two"]), ("delete", 2, None)],
    ],
)
def test_an_edit_that_comes_to_nothing_tells_of_no_change(desk: Desk, wishes: list[tuple[Any, ...]]) -> None:
    before = desk.path.stat()
    report = desk.edit(desk.view(), *wishes)["ok"]["report"]
    assert (report["changed"], report["diff"], report["moved"]) == (False, "", [])
    assert report["version"] == version_of(BASE)
    assert desk.path.stat().st_ino == before.st_ino
