"""What lies in a directory of a sandbox: whole, in order, bounded, whatever the names are."""

import os
import shlex
import stat
import time
from dataclasses import replace

import pytest

from sandboxes.engine import Listing
from sandboxes.errors import FileError
from sandboxes.runner.listing import ENTRIES
from tests.gvisor.engines import OnePass


def entries(bench, box, path: str, depth: int = 1) -> Listing:
    found = bench.do(box.entries(OnePass(box.sandbox_id, "list"), path, depth=depth))
    return replace(found, entries=[replace(entry, path=os.fsdecode(entry.path)) for entry in found.entries])


def test_kinds_sizes_modes_and_times(bench, box):
    bench.bash(
        box,
        "mkdir -p /work/kinds/d; cd /work/kinds; printf 12345 > f; chmod 640 f; touch -d @1000000000.25 f;"
        "ln -s f l; ln -s /nowhere broken; mkfifo p; printf x > d/below; touch -d @-5 d/below",
    )
    found = entries(bench, box, "/work/kinds", 2)
    assert (found.path, found.truncated) == ("/work/kinds", False)
    assert [(entry.path, entry.type) for entry in found.entries] == [
        ("broken", "link"), ("d", "dir"), ("d/below", "file"), ("f", "file"), ("l", "link"), ("p", "other"),
    ]  # fmt: skip
    by_name = {entry.path: entry for entry in found.entries}
    assert (by_name["f"].size, by_name["f"].mode, by_name["f"].mtime_ms) == (5, 0o640, 1_000_000_000_250)
    assert by_name["d/below"].mtime_ms == -5000
    assert by_name["l"].size == 1
    assert [entry.path for entry in entries(bench, box, "/work/kinds").entries] == ["broken", "d", "f", "l", "p"]


def test_links_to_directories_are_named_and_not_followed_and_a_loop_ends(bench, box):
    bench.bash(box, "mkdir -p /work/loop/a; cd /work/loop; ln -s . self; ln -s .. a/up; touch a/f")
    found = entries(bench, box, "/work/loop", 20)
    assert [entry.path for entry in found.entries] == ["a", "a/f", "a/up", "self"]
    assert entries(bench, box, "/work/loop/a/up/self").path == "/work/loop"


def test_every_name_that_a_file_can_have_comes_as_it_is(bench, box):
    names = ["..foo", "a%2Fb", "a b#c?.txt", "ünï.txt", "отчёт.pdf", "two\nlines", "\"'`$HOME", "-rf", "\udcff\udcfe"]
    for name in names:
        bench.write(box, f"/work/names/{name}", b"")
    found = [entry.path for entry in entries(bench, box, "/work/names").entries]
    assert found == sorted(names, key=os.fsencode)


@pytest.mark.parametrize(
    ("make", "path", "code"),
    [
        ("", "/work/none", "file_not_found"),
        ("touch /work/a-file", "/work/a-file", "not_a_directory"),
        ("", "/root", "permission_denied_in_sandbox"),
        ("", "/opt/sandgate/runner", "permission_denied_in_sandbox"),
        ("ln -sfn /root /work/to-root", "/work/to-root", "permission_denied_in_sandbox"),
        ("", "/work/nul\0", "bad_path"),
    ],
)
def test_errors_tell_why(bench, box, make, path, code):
    bench.bash(box, make or "true")
    with pytest.raises(FileError) as caught:
        entries(bench, box, path)
    assert caught.value.code == code


def test_what_may_not_be_read_is_named_and_not_entered(bench, box):
    bench.bash(box, "mkdir -p /work/closed/in; touch /work/closed/in/f /work/closed/last; chmod 000 /work/closed/in")
    bench.give_to_root(box, "/work/closed/in")
    assert [entry.path for entry in entries(bench, box, "/work/closed", 5).entries] == ["in", "last"]


def make(bench, box, first: int, end: int) -> None:
    lines = f"import os; [open(f'/work/many/{{n:06}}', 'w').close() for n in range({first}, {end})]"
    assert bench.bash(box, f"mkdir -p /work/many; python3 -c {shlex.quote(lines)}").code == 0


def memory_mb(bench, box) -> float:
    """What counts against the sandbox's limit."""
    found = bench.docker().containers.get(box.container_id).stats(stream=False)
    return found["memory_stats"]["usage"] / (1 << 20)


def test_thirty_thousand_names_again_and_again_take_no_more_memory(bench, box):
    """The first names come, in order, and it is said when there are more."""
    make(bench, box, 0, ENTRIES)
    exact = entries(bench, box, "/work/many")
    assert (len(exact.entries), exact.truncated) == (ENTRIES, False)
    make(bench, box, ENTRIES, 30_000)
    began = time.monotonic()
    first = entries(bench, box, "/work/many")
    print(f"30,000 names: {time.monotonic() - began:.1f} s")
    assert first.truncated
    assert [entry.path for entry in first.entries] == [f"{n:06}" for n in range(ENTRIES)]
    before_mb = memory_mb(bench, box)
    for _ in range(5):
        assert len(entries(bench, box, "/work/many").entries) == ENTRIES
    assert memory_mb(bench, box) - before_mb < 24  # one such listing in memory is about 5


def test_a_mode_is_only_the_permissions(bench, box):
    entry = next(entry for entry in entries(bench, box, "/").entries if entry.path == "tmp")
    assert (entry.type, entry.mode) == ("dir", stat.S_ISVTX | 0o777)
