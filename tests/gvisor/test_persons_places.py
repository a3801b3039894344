"""A person's file lands under the name that the person gave, or nowhere: no link that a command made leads it on."""

import pytest

from sandboxes.errors import FileError
from tests.gvisor.test_sealing import put, unseal

SWAPS = """
import os
os.makedirs("/work/swapped/in", exist_ok=True)
print("ready", file=open("/work/swapped/ready", "w"), flush=True)
while not os.path.exists("/work/swapped/stop"):
    for act in (
        lambda: os.rename("/work/swapped/in", "/work/swapped/aside"),
        lambda: os.symlink("/work/kept", "/work/swapped/in"),
        lambda: os.unlink("/work/swapped/in"),
        lambda: os.rename("/work/swapped/aside", "/work/swapped/in"),
        lambda: os.unlink("/work/swapped/in/.env"),
        lambda: os.symlink("/work/kept/.env", "/work/swapped/in/.env"),
    ):
        try:
            act()
        except OSError:
            pass
"""


@pytest.mark.parametrize(
    ("made", "asked", "real"),
    [
        ("mkdir conf; ln -s ../app/.env conf/.env", "conf/.env", "app/.env"),
        ("ln -s app way", "way/.env", "app/.env"),
        ("ln -s app way", "way/new/.env", "app/new/.env"),
        ("mkdir deep; ln -s ../way2 deep/a; ln -s app way2", "deep/a/.env", "app/.env"),
        ("ln -s nowhere gone.env", "gone.env", "nowhere"),
    ],
)
def test_no_link_leads_a_persons_file_on(bench, box, request, made, asked, real):
    top = f"/work/{abs(hash(request.node.name))}"
    put(bench, box, f"{top}/app/.env", b"FIRST\n")
    bench.bash(box, f"cd {top}; {made}")
    with pytest.raises(FileError) as refused:
        put(bench, box, f"{top}/{asked}", b"SECOND\n")
    assert refused.value.code == "bad_path"
    assert f"{top}/{real}" in refused.value.detail
    assert bench.bash(box, f"cd {top}; cat app/.env; ls -A . app | grep -e part -e nowhere").text == "FIRST\n"
    assert bench.bash(box, f"echo x >> {top}/app/.env").code != 0, "the seal of the other one is gone"


def test_a_link_that_is_put_there_meanwhile_leads_nothing_on(bench, box):
    """Whoever swaps a folder and a link as fast as it goes finds no moment between the look and the rename."""
    put(bench, box, "/work/kept/.env", b"FIRST\n")
    swapping = bench.begin(bench.running(box, "python3", "-c", SWAPS))
    bench.bash(box, "while [ ! -e /work/swapped/ready ]; do sleep 0.05; done")
    done = []
    for number in range(40):
        try:
            written = put(bench, box, "/work/swapped/in/.env", b"SECOND\n" * (1 + number % 3))
        except FileError as error:
            done.append(error.code)
        else:
            done.append(written.path)
            assert written.path == "/work/swapped/in/.env"
            unseal(bench, box, written.path)
        assert bench.bash(box, "cat /work/kept/.env").text == "FIRST\n", done
    bench.bash(box, "touch /work/swapped/stop")
    swapping.result(60)
    assert "bad_path" in done, done
    assert bench.bash(box, "echo x >> /work/kept/.env").code != 0
    assert bench.bash(box, "ls -A /work/kept; ls -A /work | grep part").text == ".env\n"


def test_no_mode_that_a_command_set_keeps_a_person_out(bench, box):
    """Of the file that is there, of what comes, of a folder above; also where there is a second name."""
    put(bench, box, "/work/modes/in/.env", b"FIRST\n")
    unseal(bench, box, "/work/modes/in/.env")
    bench.bash(box, "cd /work/modes/in; ln .env two; chmod 000 .env; chmod 000 . ; chmod 000 ..")
    assert put(bench, box, "/work/modes/in/.env", b"SECOND\n").sealed
    assert bench.bash(box, "cd /work/modes/in; cat .env; echo x >> two; cat .env").text == "SECOND\nSECOND\n"
    assert bench.bash(box, "echo x >> /work/modes/in/.env").code != 0


def test_what_fails_gives_no_command_a_moment_with_the_old_one(bench, box):
    """A command that spoils what comes makes the putting fail; the seal of what was there has not gone meanwhile."""
    put(bench, box, "/work/gap/.env", b"FIRST\n")
    script = """
import glob, os
print("ready", file=open("/work/gap/ready", "w"), flush=True)
while not os.path.exists("/work/gap/stop"):
    for path in glob.glob("/work/.sandgate-*.part"):
        try:
            os.pwrite(os.open(path, os.O_WRONLY), b"EVIL", 0)
        except OSError:
            pass
    try:
        os.write(os.open("/work/gap/.env", os.O_WRONLY | os.O_APPEND), b"FORGED")
    except OSError:
        pass
"""
    running = bench.begin(bench.running(box, "python3", "-c", script))
    bench.bash(box, "while [ ! -e /work/gap/ready ]; do sleep 0.05; done")
    failed = 0
    for _ in range(15):
        try:
            put(bench, box, "/work/gap/.env", b"SECOND\n" * 100_000)
        except FileError:
            failed += 1
        assert "FORGED" not in bench.bash(box, "tail -c 100 /work/gap/.env").text
    bench.bash(box, "touch /work/gap/stop")
    running.result(60)
    assert failed, "nothing was spoiled: this shows nothing"
