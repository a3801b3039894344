import pytest

from sandboxes.engine import BadCommand, RunRequest
from sandboxes.engine.running import LONG_ARGUMENT_BYTES, READ_SCRIPT, request

BASH = ["bash", "--noprofile", "--norc", "-c", "--"]


def test_short_command_is_sent_as_it_is():
    message, script = request("act_1", RunRequest(argv=[*BASH, "echo hi"], timeout_s=5, env={"A": "1"}, cwd="/work/x"))
    assert (message["argv"], message["cwd"], message["env"], script) == ([*BASH, "echo hi"], "/work/x", {"A": "1"}, b"")
    assert message["id"] == "act_1"


def test_long_script_goes_beside_the_arguments():
    command = "# é\n" * 40_000
    message, script = request("act_1", RunRequest(argv=[*BASH, command], timeout_s=5))
    assert message["argv"] == [*BASH, READ_SCRIPT]
    assert script == command.encode()
    assert message["script_bytes"] == len(script)


def test_length_counts_in_bytes():
    command = "é" * (LONG_ARGUMENT_BYTES // 2 + 1)
    assert request("act_1", RunRequest(argv=[*BASH, command], timeout_s=5))[1]


@pytest.mark.parametrize(
    "argv",
    [
        [],
        [""],
        ["echo", "x" * (LONG_ARGUMENT_BYTES + 1)],
        ["echo", *["x" * 50_000] * 30],
        [*BASH, "x\0" * 100_000],
        [*BASH, "# padding\n" * 300_000],
    ],
)
def test_what_no_program_can_be_given_is_refused(argv):
    with pytest.raises(BadCommand):
        request("act_1", RunRequest(argv=argv, timeout_s=5))
