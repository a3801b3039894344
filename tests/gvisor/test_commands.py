import asyncio
import hashlib
import signal
import time

import pytest

from approvals.errors import PassSpent
from sandboxes.engine import BadCommand, Refusal, RunRequest
from sandboxes.errors import FileError
from sandboxes.toolsets.run import command_line
from tests.gvisor.engines import Collected, OnePass, new_id

KB, MB = 1 << 10, 1 << 20


def test_command_runs_as_agent_in_work_with_only_the_environment_it_is_given(bench, box):
    ran = bench.bash(box, "id -un; id -u; pwd; env | cut -d= -f1 | sort | tr '\\n' ' '", env={"MINE": "1"})
    user, uid, cwd, names = ran.text.splitlines()
    assert (user, uid, cwd) == ("agent", "1000", "/work")
    expected = "FROM_SANDBOX HOME LANG LOGNAME MINE PATH PWD SHELL SHLVL TMPDIR USER _ "
    assert names == expected


def test_streams_and_exit_code_are_kept_apart(bench, box):
    ran = bench.bash(box, "printf 'a\\0b\\n\\nc'; echo err >&2; exit 3")
    assert (ran.code, ran.out, ran.err) == (3, b"a\0b\n\nc", b"err\n")
    assert (ran.result.stdout_bytes, ran.result.stderr_bytes, ran.result.lost_bytes) == (6, 4, 0)


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["no-such-program"], 127),
        (["/etc/passwd"], 126),
        (["/work"], 126),
        (["bash", "-c", "kill -TERM $$"], 143),
        (["bash", "-c", "kill -KILL $$"], 137),
        (["python", "-c", "print(1)"], 0),
    ],
)
def test_exit_codes_are_those_a_shell_gives(bench, box, argv, code):
    assert bench.run(box, *argv).code == code


@pytest.mark.parametrize("line", ["--version", "-i", "-c 'echo no'", "-x; echo no" + " " * 140 * KB])
def test_a_line_that_begins_with_a_dash_is_a_line_and_no_option(bench, box, line):
    ran = bench.run(box, *command_line({"command": line}))
    assert ran.code == (0 if "; echo" in line else 127)
    assert ran.out == (b"no\n" if "; echo" in line else b"")
    assert b"command not found" in ran.err


def test_a_program_that_is_missing_says_so(bench, box):
    assert bench.run(box, "no-such-program").err == b"no-such-program: command not found\n"


def test_missing_working_directory_is_an_error_not_an_exit_code(bench, box):
    with pytest.raises(FileError) as caught:
        bench.run(box, "true", cwd="/work/nowhere")
    assert caught.value.code == "file_not_found"


@pytest.mark.parametrize("command", ["cat", "grep x", "read a || echo nothing", "python -c 'input()' 2>&1 | tail -1"])
def test_stdin_is_empty_unless_given(bench, box, command):
    started_at = time.monotonic()
    bench.bash(box, command, timeout_s=20)
    assert time.monotonic() - started_at < 10


def test_stdin_reaches_the_command_whole(bench, box):
    data = bytes(range(256)) * (20 * KB)
    assert bench.run(box, "sha256sum", stdin=data).text[:64] == hashlib.sha256(data).hexdigest()


def test_stdin_that_nobody_reads_harms_nothing(bench, box):
    assert bench.run(box, "true", stdin=b"x" * (4 * MB)).code == 0


def test_heredoc_keeps_exact_bytes(bench, box):
    ran = bench.bash(box, "cat <<'EOF' > /tmp/t\none $HOME\n\ttwo\nEOF\ncat /tmp/t")
    assert (ran.code, ran.out) == (0, b"one $HOME\n\ttwo\n")


@pytest.mark.parametrize("size", [90 * KB, 200 * KB, 1 * MB])
def test_long_script_runs_like_a_short_one(bench, box, size):
    script = "x=1\nset -- a b\n" + "# padding\n" * (size // 10) + 'echo "$x $# $0"; cat; exit 7'
    ran = bench.bash(box, script)
    assert (ran.code, ran.out, ran.err) == (7, b"1 2 bash\n", b"")


def test_a_long_script_leaves_no_file_open_in_its_children(bench, box):
    ran = bench.bash(
        box, "# padding\n" * (20 * KB) + "python -c 'import os; print(sorted(os.listdir(\"/proc/self/fd\")))'"
    )
    assert "9" not in ran.text


@pytest.mark.parametrize(
    "request_",
    [
        RunRequest(argv=[], timeout_s=1),
        RunRequest(argv=["echo", "a\0b"], timeout_s=1),
        RunRequest(argv=["echo", "x" * 200_000], timeout_s=1),
        RunRequest(argv=["true"], timeout_s=0),
        RunRequest(argv=["true"], timeout_s=-1),
        RunRequest(argv=["true"], timeout_s=float("nan")),
        RunRequest(argv=["true"], timeout_s=1e12),
        RunRequest(argv=["true"], timeout_s=1, env={"A=B": "x"}),
        RunRequest(argv=["true"], timeout_s=1, env={"": "x"}),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(bench, box, request_):
    with pytest.raises(BadCommand):
        bench.do(box.run(OnePass(box.sandbox_id, "run"), request_, Collected()))


def test_a_pass_runs_once_and_for_its_own_sandbox_and_tool(bench, box):
    request = RunRequest(argv=["true"], timeout_s=5)
    spent = OnePass(box.sandbox_id, "run")
    bench.do(box.run(spent, request, Collected()))
    for pass_ in (spent, OnePass(new_id(), "run"), OnePass(box.sandbox_id, "write")):
        with pytest.raises(PassSpent):
            bench.do(box.run(pass_, request, Collected()))


def test_sent_twice_it_runs_once(bench, box):
    first = bench.bash(box, "echo ran >> /work/once; echo said", action_id="act_twice")
    again = bench.bash(box, "echo ran >> /work/once; echo said", action_id="act_twice")
    assert first.result == again.result
    assert first.out == again.out == b"said\n"
    assert bench.bash(box, "cat /work/once").text == "ran\n"


def test_a_second_call_for_the_same_command_takes_over_from_the_first(bench, box):
    async def scene():
        first = asyncio.ensure_future(bench.bashing(box, "sleep 1; echo once | tee -a /work/o", action_id="act_both"))
        await asyncio.sleep(0.3)
        second = await bench.bashing(box, "sleep 1; echo once | tee -a /work/o", action_id="act_both")
        return second, (await asyncio.gather(first, return_exceptions=True))[0]

    second, first = bench.do(scene())
    assert second.out == b"once\n"
    assert isinstance(first, Refusal)
    assert first.code == "busy"
    assert bench.bash(box, "cat /work/o").text == "once\n"


def test_timeout_kills_the_tree_and_keeps_what_was_printed(bench, box):
    deaf = "(setsid bash -c 'trap \"\" TERM; sleep 702; sleep 702' &)"
    command = f"echo A; echo B >&2; (setsid sleep 701 &); {deaf}; sleep 703"
    started_at = time.monotonic()
    ran = bench.bash(box, command, timeout_s=1)
    assert time.monotonic() - started_at < 4
    assert (ran.result.timed_out, ran.code, ran.out, ran.err) == (True, 124, b"A\n", b"B\n")
    assert bench.bash(box, "pgrep -f 'sleep 70[123]'").out == b""


def test_tree_that_forks_while_it_is_killed_is_killed(bench, box):
    command = "f() { while :; do (sleep 0.01; f) & sleep 0.005; done; }; f & f & sleep 60"
    assert bench.bash(box, command, timeout_s=1.5).result.timed_out
    assert bench.bash(box, "pgrep -cx sleep").text.strip() == "0"


def test_one_commands_end_leaves_the_others_alone(bench, box):
    async def both():
        other = asyncio.ensure_future(bench.bashing(box, "sleep 3; echo whole"))
        await bench.bashing(box, "sleep 60", timeout_s=0.5)
        return await other

    assert bench.do(both()).out == b"whole\n"


def test_background_child_does_not_hold_the_call_open_and_lives_on(bench, box):
    started_at = time.monotonic()
    ran = bench.bash(box, "sleep 711 & echo started")
    assert time.monotonic() - started_at < 3
    assert (ran.code, ran.out, ran.result.left_running) == (0, b"started\n", True)
    assert bench.bash(box, "pkill -fx 'sleep 711'").code == 0


def test_child_in_the_background_that_prints_is_never_blocked(bench, box):
    bench.bash(box, "(for i in $(seq 40); do head -c 100000 /dev/zero; done; echo end > /work/printed) &")
    for _ in range(50):
        if bench.bash(box, "cat /work/printed").out == b"end\n":
            return
        time.sleep(0.2)
    pytest.fail("the background child is stuck")


def test_output_of_the_last_moment_is_there(bench, box):
    for _ in range(30):
        ran = bench.bash(box, "echo first; echo second >&2; printf last")
        assert (ran.out, ran.err) == (b"first\nlast", b"second\n")


def test_100_mb_come_through_whole(bench, box):
    ran = bench.bash(box, "head -c 104857600 /dev/zero | tr '\\0' x")
    assert (len(ran.out), ran.result.stdout_bytes, ran.result.lost_bytes) == (100 * MB, 100 * MB, 0)
    assert ran.out.count(b"x") == 100 * MB


def test_sink_that_stops_neither_blocks_the_command_nor_the_server(bench, fresh_box):
    """It is waited for, then its output is lost, and counted; the command ends by itself."""
    go_on = asyncio.Event()

    class Stuck(Collected):
        async def put(self, stream, offset, data):
            await super().put(stream, offset, data)
            await go_on.wait()

    async def scene():
        sink = Stuck()
        request = RunRequest(argv=["bash", "-c", "head -c 20000000 /dev/zero; date +%s > /work/ended"], timeout_s=60)
        stuck = asyncio.ensure_future(fresh_box.run(OnePass(fresh_box.sandbox_id, "run"), request, sink))
        for _ in range(100):
            await asyncio.sleep(0.3)
            if (await bench.bashing(fresh_box, "cat /work/ended")).code == 0:
                break
        else:
            pytest.fail("the command is held by its reader")
        go_on.set()
        return await stuck, sink

    result, sink = bench.do(scene())
    assert result.exit_code == 0
    assert result.stdout_bytes == 20_000_000
    assert result.lost_bytes == result.stdout_bytes - len(sink.stdout) == sum(end - at for _, at, end in sink.gaps)
    assert result.lost_bytes > 15_000_000


def test_many_at_once(bench, box):
    async def all_of_them():
        return await asyncio.gather(*(bench.bashing(box, f"sleep 0.5; echo {n}") for n in range(12)))

    started_at = time.monotonic()
    assert [ran.text for ran in bench.do(all_of_them())] == [f"{n}\n" for n in range(12)]
    assert time.monotonic() - started_at < 12


def test_100_short_ones_leave_nothing_behind(bench, box):
    for n in range(100):
        ran = bench.run(box, "bash", "-c", f"(sleep 0.05 &) ; exit {n % 100}")
        assert ran.code == n % 100
    time.sleep(1)
    stats = bench.bash(box, "ps -eo stat,comm").text.splitlines()[1:]
    assert [line for line in stats if line.startswith("Z")] == []
    assert sum("keeper" in line for line in stats) <= 4


def test_stop_ends_the_whole_tree_and_says_when_it_is_empty(bench, box):
    async def scene():
        running = asyncio.ensure_future(
            bench.bashing(box, "sleep 721 & sleep 722 | cat; wait", action_id="act_stop", timeout_s=60)
        )
        await asyncio.sleep(0.7)
        await box.stop("act_stop")
        left = await bench.bashing(box, "pgrep -f 'sleep 72[12]'")
        return await running, left

    ran, left = bench.do(scene())
    assert (ran.result.stopped, ran.code, left.out) == (True, 143, b"")


def test_stop_kills_what_ignores_being_asked(bench, box):
    async def scene():
        command = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
        running = asyncio.ensure_future(bench.bashing(box, command, action_id="act_deaf"))
        await asyncio.sleep(0.7)
        started_at = time.monotonic()
        await box.stop("act_deaf")
        return await running, time.monotonic() - started_at

    ran, took_s = bench.do(scene())
    assert (ran.result.stopped, ran.code) == (True, 137)
    assert 1.5 < took_s < 4


@pytest.mark.parametrize(
    ("command", "ended"),
    [
        ("exec sleep 731", 1),
        ("(setsid sleep 732 &); sleep 733 & sleep 734; true", 4),  # the shell, its children, what left its session
        ("trap '' TERM; sleep 735; true", 2),  # TERM met them, and KILL met them again
        ("(trap '' TERM; sleep 736; true) & exec sleep 737", 3),
        ("trap 'exit 0' USR1; sleep 738 & wait", 2),
    ],
)
def test_stop_says_how_many_processes_it_ended_each_once_and_by_whichever_signal(bench, fresh_box, command, ended):
    async def scene():
        running = asyncio.ensure_future(bench.bashing(fresh_box, f"echo ready; {command}", action_id="act_count"))
        await asyncio.sleep(1)
        count = await fresh_box.stop("act_count", signal.SIGUSR1 if "USR1" in command else signal.SIGTERM)
        await running
        return count

    assert bench.do(scene()) == ended


def test_stop_of_what_never_ran_is_quiet(bench, box):
    assert bench.do(box.stop("act_nothing")) is None


def test_removing_the_working_directory_leaves_the_sandbox_usable(bench, box):
    bench.bash(box, "mkdir -p /work/a; rm -rf /work/* /work")
    assert bench.bash(box, "pwd").text == "/work\n"


def kill_as_root(bench, box, what):
    """What only the kernel could do: the test goes in by Docker, as root."""
    bench.docker().containers.get(box.container_id).exec_run(["sh", "-c", what], user="0:0")


def test_nursery_and_spare_keeper_that_are_killed_are_replaced(bench, fresh_box):
    bench.bash(fresh_box, "true")
    kill_as_root(bench, fresh_box, "pkill -9 -x keeper")
    for n in range(5):
        assert bench.bash(fresh_box, f"echo {n}").text == f"{n}\n"


def test_command_whose_keeper_is_killed_ends_and_leaves_nothing(bench, fresh_box):
    async def scene():
        command = "echo began; (setsid sleep 741 &); sleep 742 | sleep 743"
        running = asyncio.ensure_future(bench.bashing(fresh_box, command))
        await asyncio.sleep(0.7)
        await asyncio.to_thread(kill_as_root, bench, fresh_box, "pkill -9 -x keeper")
        return await running

    ran = bench.do(scene())
    assert (ran.code, ran.out) == (137, b"began\n")
    assert bench.bash(fresh_box, "pgrep -f 'sleep 74[123]'").out == b""
