"""What a person put there under seal: whole, from the moment it is there, and again after a stop; or not at all."""

from contextlib import suppress

import pytest

from sandboxes.errors import FileError
from tests.gvisor.test_sealing import found, put, unseal

HOLDER = """
import glob, os, time
held, until = {}, time.monotonic() + 60
print("ready", file=open("/work/holds", "w"), flush=True)
while time.monotonic() < until and not os.path.exists("/work/go"):
    for path in glob.glob("/work/held/.*") + glob.glob("/work/held/*") + glob.glob("/work/.sandgate*"):
        try:
            fd = os.open(path, os.O_RDWR)
            held[os.fstat(fd).st_ino] = fd
            if EAGER:
                os.pwrite(fd, b"EVIL", 0)
        except OSError:
            pass
for fd in held.values():
    try:
        os.pwrite(fd, b"EVIL", 0)
    except OSError:
        pass
print(len(held))
"""
TRY = "for f in {}; do chmod u+w $f; echo EVIL > $f; echo EVIL >> $f; rm -f $f; cat $f; done 2>/dev/null"


def again(bench, box):
    bench.do(bench.engine.set_down(box.sandbox_id, reason="idle"))
    return bench.do(bench.engine.create(bench.spec(sandbox_id=box.sandbox_id), kept=True))


@pytest.mark.parametrize("eager", [False, True])
def test_whoever_holds_what_is_being_written_changes_nothing_of_what_is_sealed(bench, box, eager):
    """Who writes before it is there has it refused; who waits with it has nothing in hand."""
    bench.bash(box, "mkdir -p /work/held; rm -f /work/go /work/holds")
    holder = bench.begin(bench.running(box, "python3", "-c", f"EAGER = {eager}\n{HOLDER}"))
    bench.bash(box, "while [ ! -e /work/holds ]; do sleep 0.05; done")
    content, sealed = b"SECRET=1\n" * 100_000, []
    for number in range(8):
        with suppress(FileError):  # somebody changed it, so it was not put there
            sealed.append(put(bench, box, f"/work/held/{eager}{number}.key", content))
    bench.bash(box, "touch /work/go")
    assert int(holder.result(60).text) > 0, "nothing was held: this shows nothing"
    assert eager or len(sealed) == 8
    for file in sealed:
        assert file.sealed
        assert bench.bash(box, f"sha256sum < {file.path}").text.split()[0] == file.sha256
        assert bench.bash(box, f"grep -c EVIL {file.path}").text == "0\n"
    assert bench.bash(box, "ls -A /work /work/held | grep -c part").text == "0\n"


def test_what_cannot_be_sealed_is_not_put_there(bench, box):
    bench.bash(box, "mkdir -p /tmp/out")
    with pytest.raises(FileError) as refused:
        put(bench, box, "/tmp/out/.env")
    assert "/work" in refused.value.detail
    assert bench.bash(box, "ls -A /tmp/out").text == ""


def test_decoys_take_no_room_from_a_persons_files_nor_does_a_stop(bench):
    """Nor do names that are not listed, folders of packages, or a folder that its owner cannot read."""
    box = bench.create()
    files = ["/work/a/.env", "/work/token.txt", "/work/app/node_modules/.env", "/work/.venv/.env", "/home/agent/z/.env"]
    for path in files:
        assert put(bench, box, path).sealed
    shut = (
        "cd /work; mkdir -p shut/in; echo D > shut/in/.env; chmod 300 shut/in; chmod 300 a app; chmod 0 /home/agent/z"
    )
    assert found(bench.bash(box, shut)) == {"/work/shut/in/.env": True}
    decoys = "mkdir /work/A; cd /work/A; for i in $(seq 1100); do mkdir $i; echo D > $i/.env; done"
    assert bench.bash(box, decoys).code == 0
    later = "/work/later/.env"
    assert put(bench, box, later).sealed
    assert bench.bash(box, TRY.format(later)).text == "S=1\n"
    opened = "/work/opened.txt"
    assert put(bench, box, opened).sealed
    unseal(bench, box, opened)
    box = again(bench, box)
    bench.bash(box, "chmod 700 /work/a /work/app /home/agent/z /work/shut/in")
    for path in (*files, later, opened):
        assert bench.bash(box, TRY.format(path)).text == "S=1\n", path
    bench.do(bench.engine.remove(box.container_id))
