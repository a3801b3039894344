"""Reading with tags: the runner's own steps, on this machine."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.runner.lines import Text, fault_at, version_of
from sandboxes.runner.tagged import NotText, Scan
from sandboxes.runner.versions import FILE_BYTES, KEPT_BYTES, Versions
from tests.engine.desk import Desk
from tests.engine.test_edits import texts


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@given(texts(), st.integers(1, 12), st.integers(1, 6), st.lists(st.integers(3, 30), max_size=4))
def test_a_part_is_that_of_the_whole_however_it_comes(data: bytes, first: int, limit: int, cuts: list[int]) -> None:
    scan, at = Scan(first, limit), 0
    for cut in sorted({cut for cut in cuts if cut < len(data)}):
        scan.feed(data[at:cut])
        at = cut
    scan.feed(data[at:])
    found, text = scan.result(), Text(data)
    last = min(text.count, first + limit - 1)
    assert found["lines"] == [text.shown(number) for number in range(first, last + 1)]
    assert (found["version"], found["line_count"]) == (version_of(data), text.count)
    assert found["truncated"] == (0 < last < text.count and first <= text.count)
    assert found["next"] == (last + 1 if found["truncated"] else None)
    endings = {text.ending(number) for number in range(1, text.count + 1)} - {b""}
    names = {frozenset(): "none", frozenset({b"\n"}): "LF", frozenset({b"\r\n"}): "CRLF"}
    assert found["newline"] == names.get(frozenset(endings), "mixed")


@given(st.binary(min_size=1, max_size=30), st.integers(3, 29))
def test_the_first_byte_that_is_no_text_is_named_however_it_comes(data: bytes, cut: int) -> None:
    scan, found = Scan(1, 10), None
    try:
        scan.feed(data[:cut])
        scan.feed(data[cut:])
        scan.result()
    except NotText as error:
        found = error.offset
    assert found == fault_at(data)


def test_a_page_ends_at_50_kilobytes(desk: Desk) -> None:
    desk.path.write_bytes((b"x" * 1000 + b"\n") * 200)
    seen = desk.view()
    assert (len(seen["lines"]), seen["next"], seen["truncated"]) == (51, 52, True)
    assert desk.view(offset=52)["lines"][0][0] == 52


def test_beyond_the_end_is_nothing(desk: Desk) -> None:
    seen = desk.view(offset=99)
    assert (seen["lines"], seen["from"], seen["to"], seen["line_count"], seen["truncated"]) == ([], 0, 0, 4, False)


def test_bytes_are_had_in_letters(desk: Desk) -> None:
    desk.path.write_bytes(bytes(range(256)))
    assert desk.view()["code"] == "not_utf8"
    assert desk.view()["offset"] == 0
    seen = desk.view(form="hex", offset=250, limit=4)
    assert (seen["data"], seen["truncated"], seen["next"], seen["size"]) == ("fafbfcfd", True, 254, 256)
    assert desk.view(form="base64", offset=254)["data"] == "/v8="
    assert desk.view(form="hex", offset=300)["data"] == ""


def test_what_is_not_there_comes_with_the_nearest_names(desk: Desk) -> None:
    (desk.root / "README.md").write_text("x")
    (desk.root / "src").mkdir()
    assert desk.view(desk.root / "readme.md")["nearest"] == [str(desk.root / "README.md")]
    assert desk.view(desk.root / "scr" / "x.py")["nearest"] == [str(desk.root / "src/") + "/"]
    assert desk.view(desk.root / "qqqq")["nearest"] == []
    assert desk.view(desk.path / "x")["code"] == "file_not_found"


def test_a_folder_comes_with_its_names(desk: Desk) -> None:
    (desk.root / "src").mkdir()
    assert desk.view(desk.root)["names"] == ["a.txt", "src/"]


def test_a_folder_is_listed_whole_whatever_its_links_are(desk: Desk) -> None:
    """A loop, a link to nothing, one to a folder, one to a place that may not be looked at, a pipe."""
    (desk.root / "src").mkdir()
    for name, target in (("loop", "loop"), ("one", "two"), ("two", "one"), ("gone", "nowhere"), ("to_src", "src")):
        (desk.root / name).symlink_to(target)
    (desk.root / "deep").symlink_to("a.txt/x")
    (desk.root / "long").symlink_to("x" * 300)
    os.mkfifo(desk.root / "pipe")
    told = desk.view(desk.root)
    assert told["names"] == ["a.txt", "deep", "gone", "long", "loop", "one", "pipe", "src/", "to_src/", "two"]
    assert told["truncated"] is False
    assert desk.view(desk.root / "lop")["nearest"] == [str(desk.root / "loop")]


def test_a_large_folder_comes_with_its_first_names_and_says_that_there_are_more(desk: Desk) -> None:
    for number in range(6000):
        (desk.root / f"{number:04}").touch()
    told = desk.view(desk.root)
    assert told["names"] == [f"{number:04}" for number in range(100)]
    assert told["truncated"] is True
    (desk.root / "hundred").mkdir()
    for number in range(100):
        (desk.root / "hundred" / str(number)).touch()
    assert desk.view(desk.root / "hundred")["truncated"] is False


def test_a_link_to_nothing_is_not_said_to_be_missing_itself(desk: Desk) -> None:
    (desk.root / "link").symlink_to("nowhere")
    told = desk.view(desk.root / "link")
    assert told["code"] == "file_not_found"
    assert f"it leads through a link to {desk.root / 'nowhere'}, where there is no such file" in told["detail"]


@pytest.mark.parametrize("path", ["/proc/self", "/proc/self/status", "/proc/mounts", "/proc/{}/status"])
def test_what_tells_of_whoever_looks_is_not_said_to_be_missing_or_empty(desk: Desk, path: str) -> None:
    """In a sandbox that is its first process, of which the user may see nothing; a command has its own."""
    told = desk.view(Path(path.format(os.getpid())))
    assert told["code"] == "permission_denied_in_sandbox"
    assert "a command" in told["detail"]


def test_what_tells_of_the_machine_is_read(desk: Desk) -> None:
    assert desk.view(Path("/proc/cpuinfo"))["line_count"] > 1


def test_kept_versions_are_bounded() -> None:
    kept = Versions()
    for number in range(10):
        kept.keep("/f", str(number), bytes(FILE_BYTES - number))
    assert kept.find("/f", "0") is None
    assert kept.find("/f", "9") is not None
    assert sum(len(kept.find("/f", str(n)) or b"") for n in range(10)) <= KEPT_BYTES
    kept.keep("/g", "x", bytes(FILE_BYTES + 1))
    assert kept.find("/g", "x") is None
