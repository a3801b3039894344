"""Names that are swapped while a file is sealed or covered: nothing is mounted anywhere else, and no mount is lost."""

from collections import Counter
from contextlib import suppress

from sandboxes.errors import FileError

from .served import until
from .test_pinning import ran, script
from .test_sealing import put

SWAPS = """
import os
os.makedirs("/work/race/d/e", exist_ok=True)
os.makedirs("/home/agent/other", exist_ok=True)
while not os.path.exists("/work/race/stop"):
    for act in (
        lambda: os.rename("/work/race/d", "/work/race/x"), lambda: os.symlink("/home/agent/other", "/work/race/d"),
        lambda: os.unlink("/work/race/d"), lambda: os.rename("/work/race/x", "/work/race/d"),
        lambda: os.link("/work/race/d/e/n.key", "/work/race/link"), lambda: os.unlink("/work/race/link"),
        lambda: os.rename("/work/race/d/e/n.key", "/work/race/n"), lambda: os.makedirs("/work/race/d/e"),
    ):
        try:
            act()
        except OSError:
            pass
"""
TURNS = """
import itertools, os, sys
numbers = itertools.count()
path = "/work/r/0.key"
while not os.path.exists("/work/r/stop"):
    for act in (*(lambda to=to: os.symlink(to, path) for to in sys.argv[1:]), lambda: open(path, "x").close()):
        for each in (act, lambda: os.unlink(path)):
            try:
                each()
            except FileNotFoundError:
                pass
            except OSError:
                path = f"/work/r/{next(numbers)}.key"
"""
SHUTS = """
import os
open("/work/shutting", "x").close()
while not os.path.exists("/work/stop"):
    os.chmod("/work/s", 0)
os.chmod("/work/s", 0o700)
"""


def mounts(bench, box):
    """How many there are at each place below /work and the home, and of those that are read-only."""
    said = bench.bash(box, "cat /proc/mounts").text.splitlines()
    all_of_them = [(at, mode.split(",")[0]) for _, at, _, mode, *_ in map(str.split, said)]
    inside = [(at, mode) for at, mode in all_of_them if at.startswith(("/work/", "/home/agent/"))]
    return Counter(at for at, mode in inside if mode == "rw"), Counter(at for at, mode in inside if mode == "ro")


def seals(*paths):
    """One for each folder above that is pinned, and one."""
    return Counter({path: path.count("/") - 1 for path in paths})


def above(*paths):
    """The pins, one for each folder."""
    parts = [path.split("/") for path in paths]
    return Counter({"/".join(each[:upto]): 1 for each in parts for upto in range(3, len(each))})


def test_whoever_swaps_names_meanwhile_gets_nothing_sealed_that_is_not_there(bench, fresh_box):
    running = bench.begin(bench.running(fresh_box, "python3", "-c", SWAPS))
    sealed = set()
    for number in range(25):
        path = f"/work/race/d/e/{'n' if number % 2 else number}.key"
        with suppress(FileError):
            written = put(bench, fresh_box, path, f"{number}\n".encode())
            sealed |= {(written.path, f"{number}\n")} if written.sealed else set()
    bench.bash(fresh_box, "touch /work/race/stop")
    running.result(60)
    last = dict(sorted(sealed, key=lambda each: int(each[1])))
    for path, content in last.items():
        assert bench.bash(fresh_box, f"echo x >> {path}; echo x > {path}; cat {path}").text == content
    assert last
    assert mounts(bench, fresh_box) == (above(*last), seals(*last))


def test_a_name_that_turns_into_a_link_takes_off_no_seal_and_no_cover(bench, fresh_box):
    key, covered, text = "/work/keys/.env", "/work/s/x.sh", b"until [ -e /work/r/stop ]; do sleep 0.1; done\n"
    folder = "/home/agent/other"
    assert put(bench, fresh_box, key).sealed
    bench.write(fresh_box, covered, text)
    bench.bash(fresh_box, f"mkdir -p /work/r {folder}")
    script_running = bench.begin(ran(fresh_box, script(covered, text), "bash", covered))
    until(lambda: covered in mounts(bench, fresh_box)[1])
    turning = bench.begin(bench.running(fresh_box, "python3", "-c", TURNS, key, covered, folder))
    told = set()
    for _ in range(150):
        ended = bench.bash(fresh_box, f"echo x >> {key} || : > {key} || echo x >> {covered} || : > {covered}")
        assert ended.code != 0
        told |= {each.path for each in ended.result.protected if each.sealed}
    rw, ro = mounts(bench, fresh_box)
    bench.bash(fresh_box, "touch /work/r/stop")
    assert (turning.result(60).code, script_running.result(60).code) == (0, 0)
    assert told
    assert ro - Counter([covered]) == seals(key, *(path for path in ro if path.startswith("/work/r/")))
    assert rw == above(key, covered, "/work/r/any")
    assert set(ro) >= {covered, *told}
    assert bench.bash(fresh_box, f"cat {key}; cmp {covered} - <<'E'\n{text.decode()}E").text == "S=1\n"


def test_a_folder_that_is_shut_again_and_again_keeps_no_cover_in_place(bench, fresh_box):
    path, text = "/work/s/x.sh", b"until [ -e /work/go ]; do sleep 0.05; done; echo ran\n"
    bench.write(fresh_box, path, text)
    for _ in range(8):
        running = bench.begin(ran(fresh_box, script(path, text), "bash", path))
        until(lambda: mounts(bench, fresh_box)[1])
        shutting = bench.begin(bench.running(fresh_box, "python3", "-c", SHUTS))
        bench.bash(fresh_box, "until [ -e /work/shutting ]; do sleep 0.05; done; touch /work/go")
        assert running.result(60).text == "ran\n"
        bench.bash(fresh_box, "touch /work/stop")
        assert shutting.result(60).code == 0
        until(lambda: mounts(bench, fresh_box) == (Counter(), Counter()))
        assert bench.bash(fresh_box, "mv /work/s /work/t && echo x >> /work/t/x.sh && mv /work/t /work/s").code == 0
        bench.bash(fresh_box, "rm /work/go /work/stop /work/shutting")
        bench.write(fresh_box, path, text)
