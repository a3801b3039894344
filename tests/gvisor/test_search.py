"""Searches in a sandbox: in order, page by page, bounded in time and memory, whatever lies there and whatever rg is."""

import asyncio
import shlex

import pytest

from approvals.errors import PassSpent
from sandboxes.engine import GlobRequest, GrepRequest, RunRequest
from sandboxes.errors import FileError
from tests.gvisor.engines import OnePass
from tests.gvisor.served import until


def glob(bench, box, pattern: str, path: str = "/work", **more):
    request = GlobRequest(path=path, pattern=pattern, **more)
    return bench.do(box.glob(OnePass(box.sandbox_id, "glob"), request))


def grep(bench, box, pattern: str, path: str = "/work", **more):
    request = GrepRequest(path=path, pattern=pattern, **more)
    return bench.do(box.grep(OnePass(box.sandbox_id, "grep"), request))


def python(bench, box, lines: str) -> None:
    ran = bench.bash(box, f"python3 -c {shlex.quote(lines)}")
    assert ran.code == 0, ran.err


def places(found) -> list[tuple[str, int]]:
    return [(match["path"], match["line"]) for match in found["matches"]]


def of_rg(bench, box) -> int:
    return int(bench.bash(box, "ps -eo comm= | grep -cx rg || true").text)


def test_a_search_takes_a_pass_for_itself(bench, box):
    with pytest.raises(PassSpent):
        bench.do(box.grep(OnePass(box.sandbox_id, "glob"), GrepRequest(path="/work", pattern="x")))
    with pytest.raises(PassSpent):
        bench.do(box.glob(OnePass(box.sandbox_id, "run"), GlobRequest(path="/work", pattern="x")))


def test_page_by_page_every_match_comes_once_and_in_order(bench, box):
    python(bench, box, """
import os
for n in range(700):
    os.makedirs(f"/work/pages/d{n % 40:02}", exist_ok=True)
    open(f"/work/pages/d{n % 40:02}/f{n:03}", "w").write("no\\nneedle\\n" * (n % 3))
""")  # fmt: skip
    got, offset = [], 0
    while offset is not None:
        found = grep(bench, box, "needle", "/work/pages", limit=150, offset=offset)
        got += places(found)
        offset = found["next"]
    expected = [
        (f"pages/d{n % 40:02}/f{n:03}", line) for n in range(700) for line in range(2, 2 * (n % 3) + 1, 2)
    ]  # fmt: skip
    assert got == sorted(expected, key=lambda place: (place[0].split("/"), place[1]))
    whole = grep(bench, box, "needle", "/work/pages", mode="files", limit=1000)
    assert (len(whole["paths"]), whole["files_searched"], whole["at_least"]) == (466, 700, False)
    counted = grep(bench, box, "needle", "/work/pages", mode="count", limit=1000)
    assert sum(entry["count"] for entry in counted["counts"]) == len(expected)
    assert [entry["path"] for entry in counted["counts"]] == whole["paths"]


def test_the_latest_come_first_of_all_not_of_those_that_were_found_first(bench, box):
    python(bench, box, """
import os
os.makedirs("/work/times")
for n in range(300):
    open(f"/work/times/f{n:03}", "w").close(); os.utime(f"/work/times/f{n:03}", (0, 1_000_000 + n * 7 % 300))
""")  # fmt: skip
    found = glob(bench, box, "*", "/work/times", sort="recent", limit=3)
    by_time = sorted(range(300), key=lambda n: -(n * 7 % 300))
    assert found["paths"] == [f"times/f{n:03}" for n in by_time[:3]]
    assert (found["found"], found["at_least"], found["truncated"], found["next"]) == (300, False, True, 3)
    second = glob(bench, box, "*", "/work/times", sort="recent", limit=3, offset=3)
    assert second["paths"] == [f"times/f{n:03}" for n in by_time[3:6]]


def test_more_hits_than_can_be_held_are_still_told_in_order(bench, box):
    python(bench, box, """
import os
os.makedirs("/work/dense")
for n in range(390):
    open(f"/work/dense/f{n:03}", "w").write("needle\\n" * 200)
""")  # fmt: skip
    found = grep(bench, box, "needle", "/work/dense", limit=1000, offset=10_000)
    first = found["matches"][0]
    assert (first["path"], first["line"]) == ("dense/f050", 1)
    assert places(found) == sorted(places(found))
    assert (found["at_least"], found["truncated"]) == (True, True)


def test_names_and_lines_of_any_bytes(bench, box):
    python(
        bench,
        box,
        r"""
import os
os.makedirs("/work/bytes")
for name in (b"two\nlines", b"\xff\xfe", b"-f", b"--pre=x", b" ", b"a:1:b"):
    open(b"/work/bytes/" + name, "wb").write(b"\xff\xe9 needle \x1b[31m\r\n")
open("/work/bytes/utf16", "wb").write("needle ü".encode("utf-16"))
""",
    )
    found = grep(bench, box, "needle", "/work/bytes")
    assert sorted(match["path"][6:] for match in found["matches"]) == sorted(
        [" ", "--pre=x", "-f", "a:1:b", "two\nlines", "utf16", "\ufffd\ufffd"]
    )
    assert {match["text"] for match in found["matches"]} == {"\ufffd\ufffd needle \x1b[31m", "needle ü"}
    assert len(glob(bench, box, "*", "/work/bytes")["paths"]) == 7
    assert grep(bench, box, "needle", "/work/bytes", mode="count")["found"] == 7


@pytest.mark.parametrize(
    ("make", "path", "pattern", "code"),
    [
        ("", "/work/none", "x", "file_not_found"), ("", "/work/nul\0", "x", "bad_path"),
        ("", "/root", "x", "permission_denied_in_sandbox"),
        ("", "/opt/sandgate/runner", "x", "permission_denied_in_sandbox"),
        ("mkfifo /work/pipe", "/work/pipe", "x", "not_a_file"),
        ("install -m 0 /dev/null /work/closed", "/work/closed", "x", "permission_denied_in_sandbox"),
        ("mkdir -p /work/.git/a; ln -s .git/a /work/to-git", "/work/to-git", "x", "bad_path"),
        ("", "/work", "a\nb", "bad_pattern"), ("", "/work", "(", "bad_pattern"), ("", "/work", "a\0b", "bad_pattern"),
        ("", "/work", "\\p{nothing}", "bad_pattern"), ("", "/work", "(\\w{1000}){1000}", "bad_pattern"),
        ("", "/work", "(?=x)y", "bad_pattern"), ("", "/work", r"(a)\1", "bad_pattern"),
        ("", "/work", "x\ud800", "bad_pattern"), ("mkdir /work/nothing", "/work/nothing", "(", "bad_pattern"),
    ],
)  # fmt: skip
def test_errors_tell_why(bench, box, make, path, pattern, code):
    bench.bash(box, make or "true")
    with pytest.raises(FileError) as caught:
        grep(bench, box, pattern, path)
    assert caught.value.code == code
    said = str(caught.value)
    assert said
    assert "--" not in said, "the tool has no flags to advise"
    assert not said.endswith("..")


def test_a_pattern_for_names_that_is_none_is_refused(bench, box):
    for asked in (lambda: glob(bench, box, "/etc/*"), lambda: grep(bench, box, "x", glob="{a")):
        with pytest.raises(FileError) as caught:
            asked()
        assert caught.value.code == "bad_pattern"
    with pytest.raises(FileError) as caught:
        glob(bench, box, "*", "/etc/passwd")
    assert caught.value.code == "not_a_directory"


def test_what_may_not_be_read_is_counted_and_the_rest_is_searched(bench, box):
    bench.bash(box, "mkdir -p /work/partly/shut; cd /work/partly; echo needle > a; echo needle > b; chmod 0 b shut")
    bench.give_to_root(box, "/work/partly/shut")
    found = grep(bench, box, "needle", "/work/partly")
    assert (places(found), found["unreadable"]) == ([("partly/a", 1)], 2)
    assert grep(bench, box, "nothing", "/work/partly")["unreadable"] == 2


def test_places_outside_of_the_workspace_are_told_whole(bench, box):
    assert glob(bench, box, "./passwd", "/etc")["paths"] == ["/etc/passwd"]
    assert places(grep(bench, box, "^root:", "/etc/passwd")) == [("/etc/passwd", 1)]


def test_a_search_whose_caller_leaves_is_killed(bench, box):
    """Of a gigabyte without a line's end there is always something left to read; a hole needs no room on the disk."""
    bench.bash(box, "mkdir /work/endless; for n in 1 2 3 4; do truncate -s 100G /work/endless/$n; done")

    async def leave() -> None:
        request = GrepRequest(path="/work/endless", pattern="x", mode="count")
        search = asyncio.ensure_future(box.grep(OnePass(box.sandbox_id, "grep"), request))
        await asyncio.wait([search], timeout=1)
        assert not search.done()
        search.cancel()
        await asyncio.gather(search, return_exceptions=True)

    for _ in range(3):
        bench.do(leave())
    until(lambda: of_rg(bench, box) == 0, within_s=6)  # a search ends by itself after 10
    assert grep(bench, box, "root", "/etc/passwd")["found"]
    bench.bash(box, "rm -r /work/endless")


@pytest.mark.parametrize("size", [600_000, 5 << 20, 10 << 20])
@pytest.mark.parametrize("mark", ["", "\\ufeff"])
def test_in_a_line_of_any_length_a_match_is_shown_in_its_window(bench, fresh_box, size, mark):
    python(bench, fresh_box, f"""
line = "ü" * {size // 2} + "=needle=" + "y" * 5000 + "=needle=\\n"
open("/work/long", "w").write("{mark}first\\n" + line + "needle\\n" + line)
""")  # fmt: skip
    found = grep(bench, fresh_box, "needle", context=1)
    assert [(each["line"], each["column"]) for each in found["matches"]] == [
        (2, size // 2 + 2), (3, 1), (4, size // 2 + 2),
    ]  # fmt: skip
    for long in (found["matches"][0], found["matches"][2]):
        assert "üü=needle=yy" in long["text"]
        assert len(long["text"].encode()) <= 400 + 2 * len("…".encode())
    assert [len(text) < 500 for _, text in found["matches"][0]["before"]] == [True]
    second = grep(bench, fresh_box, "needle", limit=1, offset=1)
    assert places(second) == [("long", 3)]
    whole = grep(bench, fresh_box, "ü.*", limit=1)["matches"][0]
    assert (whole["column"], whole["text"]) == (1, "ü" * 200 + "…")


def test_in_a_very_long_line_of_another_encoding_the_match_is_shown_alone(bench, fresh_box):
    python(bench, fresh_box, f"""
open("/work/wide", "w", encoding="utf-16").write("x" * {5 << 20} + "needle" + "y" * 500)
""")  # fmt: skip
    (found,) = grep(bench, fresh_box, "needle")["matches"]
    assert (found["line"], found["column"], found["text"]) == (1, (5 << 20) + 1, "…needle…")


def test_a_search_that_takes_too_long_tells_what_it_found(bench, box):
    bench.bash(box, "mkdir /work/slow; cd /work/slow; truncate -s 200G b; echo needle > a; echo needle > c")
    found = grep(bench, box, "needle", "/work/slow")
    assert found["at_least"]
    assert found["incomplete"]
    assert found["files_searched"] < 3
    assert set(places(found)) <= {("slow/a", 1), ("slow/c", 1)}
    assert of_rg(bench, box) == 0
    bench.bash(box, "rm -r /work/slow")


def test_what_the_sandbox_sets_for_itself_does_not_reach_ripgrep(bench):
    box = bench.create(env={"RIPGREP_CONFIG_PATH": "/work/config", "LD_PRELOAD": "/work/evil.so", "PATH": "/work/bin"})
    bench.run(box, "/bin/bash", "-c", "echo --invert-match > /work/config; echo needle > /work/f")
    assert places(grep(bench, box, "needle")) == [("f", 1)]


def test_an_image_without_ripgrep_says_so_and_glob_works(bench):
    box = bench.create(writable_root=True)
    request = RunRequest(argv=["rm", "/usr/bin/rg"], timeout_s=20, as_root=True)
    removed = bench.do(box.run(OnePass(box.sandbox_id, "install"), request, _Nothing()))
    if removed.exit_code:
        pytest.fail("the program could not be removed for this test")
    with pytest.raises(FileError, match="ripgrep") as caught:
        grep(bench, box, "x")
    assert caught.value.code == "no_ripgrep"
    bench.bash(box, "touch /work/a.py")
    assert glob(bench, box, "*.py")["paths"] == ["a.py"]
    for lie, code in (('#!/bin/sh\necho \'{"type":"match"\'; cat /dev/zero', 0), ("#!/bin/sh\nsleep 1000 &", 0)):
        script = f"printf {shlex.quote(lie)} > /usr/bin/rg; chmod 755 /usr/bin/rg"
        request = RunRequest(argv=["sh", "-c", script], timeout_s=20, as_root=True)
        assert bench.do(box.run(OnePass(box.sandbox_id, "install"), request, _Nothing())).exit_code == code
        assert grep(bench, box, "x")["matches"] == []
        assert int(bench.bash(box, "ps -eo args= | grep -c '[s]leep 1000' || true").text) == 0


class _Nothing:
    async def put(self, stream, offset, data):
        """Not of interest."""


def test_one_line_of_half_the_memory_does_not_hide_what_else_is_found(bench):
    box = bench.create(memory_mb=512, disk_mb=1500)
    bench.bash(box, "head -c 700000000 /dev/zero | tr '\\0' x > /work/huge.txt; echo needle > /work/z", timeout_s=200)
    found = grep(bench, box, "needle")
    assert (places(found), found["large_left_out"]) == ([("z", 1)], True)
    assert grep(bench, box, "root", "/etc/passwd")["found"]
