"""What should be sealed and is not is tried again until it is, and told each time; what lost its reason is lifted."""

import time

import pytest

from sandboxes.errors import FileError
from tests.gvisor.test_sealing import found, put, unseal


def exempt(bench, box, path, seconds=600.0):
    bench.do(box.protect(more=[], exempt={path: seconds}))


def end_exemptions(bench, box):
    bench.do(box.protect(more=[], exempt={}))


@pytest.mark.parametrize("name", [".env", "token.txt"])
def test_a_second_name_made_while_exempt_does_not_outlive_it(bench, box, name):
    """Of a person's file, also one that only its person knows to be a secret: sealed again at once, the name parted."""
    folder = f"/work/owed/{name}"
    path = f"{folder}/{name}"
    put(bench, box, path)
    exempt(bench, box, path)
    assert bench.bash(box, f"cd {folder}; ln {name} innocent").code == 0
    end_exemptions(bench, box)
    assert bench.bash(box, f"cd {folder}; echo forged >> {name}").code != 0
    assert bench.bash(box, f"cd {folder}; echo forged >> innocent; cat {name}").text == "S=1\n"
    assert bench.bash(box, f"cd {folder}; rm innocent; rm {name} || mv {name} x; ls -A").text == f"{name}\n"


def test_a_second_name_made_in_an_exemption_that_ends_by_itself(bench, box):
    put(bench, box, "/work/ends/.env")
    exempt(bench, box, "/work/ends/.env", 1.0)
    bench.bash(box, "cd /work/ends; ln .env innocent; sleep 2")
    assert bench.bash(box, "cd /work/ends; echo forged >> innocent; echo forged >> .env; cat .env").text == "S=1\n"


def test_what_a_command_links_is_told_each_time_and_sealed_when_it_can_be(bench, box):
    made = bench.bash(box, "mkdir -p /work/hl; cd /work/hl; echo s > hl.env; ln hl.env o")
    assert found(made) == {"/work/hl/hl.env": False}
    for _ in range(2):
        assert found(bench.bash(box, "true")) == {"/work/hl/hl.env": False}
    assert found(bench.bash(box, "rm /work/hl/o")) == {"/work/hl/hl.env": True}
    assert found(bench.bash(box, "true")) == {}
    assert bench.bash(box, "echo x >> /work/hl/hl.env").code != 0


def test_what_lay_there_is_sealed_again_when_its_second_name_goes(bench, box):
    """A file that no person put there: sealed as found, exempt for a while, linked meanwhile."""
    bench.bash(box, "mkdir -p /work/lay; echo S=1 > /work/lay/.env")
    exempt(bench, box, "/work/lay/.env")
    bench.bash(box, "cd /work/lay; ln .env two")
    end_exemptions(bench, box)
    assert found(bench.bash(box, "true")) == {"/work/lay/.env": False}
    assert found(bench.bash(box, "rm /work/lay/two")) == {"/work/lay/.env": True}
    assert bench.bash(box, "echo x >> /work/lay/.env").code != 0


def test_what_is_owed_and_gone_is_not_told_for_ever(bench, box):
    assert found(bench.bash(box, "mkdir -p /work/gone; cd /work/gone; echo s > a.env; ln a.env o"))
    assert found(bench.bash(box, "rm -r /work/gone")) == {}
    assert found(bench.bash(box, "true")) == {}


def test_what_a_person_lets_go_of_is_not_sealed_behind_them(bench, box):
    bench.bash(box, "mkdir -p /work/let; cd /work/let; echo s > a.env; ln a.env o")
    assert unseal(bench, box, "/work/let/a.env") == ("/work/let/a.env", False)
    assert found(bench.bash(box, "rm /work/let/o")) == {}
    assert bench.bash(box, "echo x >> /work/let/a.env").code == 0


def test_a_persons_file_with_a_second_name_is_sealed_after_a_stop(bench):
    box = bench.create()
    put(bench, box, "/work/.env")
    unseal(bench, box, "/work/.env")
    bench.bash(box, "cd /work; ln .env two")
    bench.do(bench.engine.set_down(box.sandbox_id, reason="idle"))
    box = bench.do(bench.engine.create(bench.spec(sandbox_id=box.sandbox_id), kept=True))
    assert bench.bash(box, "cd /work; echo x >> two; echo x >> .env; cat .env").text == "S=1\n"
    bench.do(bench.engine.remove(box.container_id))


def test_a_name_that_is_protected_no_more_is_sealed_no_more(bench, box):
    """Save what a person put there."""
    bench.do(box.protect(more=["*.cfg"], exempt={}))
    put(bench, box, "/work/cfg/mine.cfg")
    bench.bash(box, "cd /work/cfg; echo 1 > x.cfg; echo 1 > .env")
    assert bench.bash(box, "cd /work/cfg; echo 2 >> x.cfg").code != 0
    bench.do(box.protect(more=[], exempt={}))
    assert bench.bash(box, "cd /work/cfg; echo 2 >> x.cfg && cat x.cfg && rm x.cfg").text == "1\n2\n"
    for name in ("mine.cfg", ".env"):
        assert bench.bash(box, f"cd /work/cfg; echo 2 >> {name} || rm {name}").code != 0, name


def test_a_tool_that_a_seal_stops_says_so(bench, box):
    """Under a name that is protected by nothing: a person alone knew it for a secret."""
    put(bench, box, "/work/says/token.txt", b"one\n")
    bench.bash(box, "ln -s token.txt /work/says/way")
    for path in ("/work/says/token.txt", "/work/says/way"):
        with pytest.raises(FileError) as refused:
            put(bench, box, path, b"two\n", seal=False)
        assert refused.value.code == "protected_path"
        assert "unseal" in refused.value.detail
    unseal(bench, box, "/work/says/token.txt")
    put(bench, box, "/work/says/token.txt", b"two\n", seal=False)


def test_a_command_that_owes_nothing_waits_for_nothing(bench, box):
    """Beside a hundred that are owed, a command that makes nothing still ends soon."""
    bench.bash(box, "mkdir -p /work/many; cd /work/many; for i in $(seq 100); do echo s > $i.env; ln $i.env $i; done")
    began = time.monotonic()
    assert len(found(bench.bash(box, "true"))) == 50
    assert time.monotonic() - began < 5
    bench.bash(box, "rm -r /work/many")
