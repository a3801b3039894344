import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals import payloads
from console.workspaces.errors import Invalid
from sandboxes.errors import FileError, NotAllowed
from sandboxes.toolsets import arguments, install, named, read, run, write


def test_every_default_is_written_out():
    assert run.validate({"command": "ls"}, None) == {
        "command": "ls", "cwd": "/work", "env": {}, "stdin": "", "timeout_s": 120,
    }  # fmt: skip


@pytest.mark.parametrize("command", ["", "   ", "\n\t", None, 5, "a\0b", "\ud800", "x" * ((1 << 20) + 1)])
def test_a_command_that_cannot_be_one_is_refused(command):
    with pytest.raises(Invalid) as refusal:
        run.validate({"command": command}, None)
    assert refusal.value.fields["field"] == "command"


@pytest.mark.parametrize("timeout_s", [0, -1, 1e12, "5", True, float("nan"), float("inf"), 3601])
def test_a_timeout_that_means_nothing_is_refused(timeout_s):
    with pytest.raises(Invalid) as refusal:
        run.validate({"command": "ls", "timeout_s": timeout_s}, None)
    assert refusal.value.fields["field"] == "timeout"


@pytest.mark.parametrize(
    "name",
    [
        "PERL5LIB",
        "SHELLOPTS",
        "PATH",
        "LD_PRELOAD",
        "BASH_ENV",
        "ENV",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "GIT_SSH_COMMAND",
        "HOME",
        "XDG_CONFIG_HOME",
        "PERLLIB",
        "NODE_PATH",
        "PIP_CONFIG_FILE",
        "npm_config_script_shell",
        "MAKEFILES",
        "IFS",
        "PAGER",
    ],
)
def test_an_agent_cannot_set_what_steers_a_program(name):
    from console.workspaces.models import Agent

    with pytest.raises(NotAllowed, match=name):
        run.validate({"command": "ls", "env": {name: "x"}}, Agent())
    assert run.validate({"command": "ls", "env": {name: "x"}}, None)["env"] == {name: "x"}


@pytest.mark.parametrize("name", ["NODE_ENV", "MONTH", "GOAL", "MANIFEST", "LANG", "TZ", "DEBUG"])
def test_an_agent_sets_what_only_its_programs_mean(name):
    from console.workspaces.models import Agent

    assert run.validate({"command": "ls", "env": {name: "x"}}, Agent())["env"] == {name: "x"}


@pytest.mark.parametrize("env", [{"A=B": "1"}, {"": "1"}, {"a b": "1"}, {"A": "x\0"}, {"A": 1}, [], {"1A": "x"}])
def test_an_environment_that_cannot_be_one_is_refused(env):
    with pytest.raises(Invalid):
        run.validate({"command": "ls", "env": env or {"": ""}}, None)


def test_command_and_argv_exclude_each_other():
    for both in ({}, {"command": "ls", "argv": ["ls"]}):
        with pytest.raises(Invalid):
            run.validate(both, None)
    checked = run.validate({"argv": ["ls", "-l", ""]}, None)
    assert run.command_line(checked) == ["ls", "-l", ""]


@pytest.mark.parametrize(
    "argv", [[], [""], ["a", 1], ["a\0"], "ls", ["true", "x" * (96 * 1024 + 1)], ["x" * 90_000] * 6]
)
def test_an_argv_that_cannot_be_one_is_refused(argv):
    with pytest.raises(Invalid):
        run.validate({"argv": argv}, None)


def test_an_unknown_argument_is_named():
    with pytest.raises(Invalid, match="`comand`"):
        run.validate({"comand": "ls"}, None)


def test_a_long_command_is_kept_whole_and_bound_by_its_hash():
    line = "# ünï\n" + "x" * 5000
    checked = run.validate({"command": line}, None)
    assert checked["command"] == {"sha256": hashlib.sha256(line.encode()).hexdigest(), "size": len(line.encode())}
    assert run.command_line(checked)[-1] == line


@given(content=st.binary(max_size=10_000))
def test_any_content_comes_back_byte_for_byte(content):
    checked = write.validate({"path": "a", "content": content}, None)
    assert payloads.content(checked["content"]) == content


@pytest.mark.parametrize(
    ("given_path", "absolute"),
    [
        ("a", "/work/a"),
        ("/etc/x", "/etc/x"),
        ("..foo", "/work/..foo"),
        ("a%2Fb", "/work/a%2Fb"),
        ("a b\n#", "/work/a b\n#"),
    ],
)
def test_relative_paths_start_at_work_and_odd_names_stay(given_path, absolute):
    assert read.validate({"path": given_path}, None)["path"] == absolute


@pytest.mark.parametrize("path", ["", None, "a\0b", "\udfff", "x" * 5000])
def test_a_path_that_cannot_be_one_is_refused(path):
    for tool in (read, write):
        with pytest.raises(Invalid) as refusal:
            tool.validate({"path": path, **({"content": b""} if tool is write else {})}, None)
        assert refusal.value.fields["field"] == "path"


@pytest.mark.parametrize("mode", [-1, 0o1000, True, "644"])
def test_a_mode_is_nine_bits(mode):
    with pytest.raises(Invalid, match="mode"):
        write.validate({"path": "a", "content": b"", "mode": mode}, None)


def test_a_tool_that_is_not_there_is_named():
    with pytest.raises(Invalid, match="'fly'"):
        named("fly")


def test_whole_seconds_are_whole_numbers_in_the_digest():
    assert repr(arguments.seconds(5.0, field="timeout", most=10)) == "5"
    assert arguments.seconds(0.5, field="timeout", most=10) == 0.5


def test_an_environment_that_could_not_be_handed_over_is_refused_before_anybody_is_asked():
    with pytest.raises(Invalid, match="in all") as refusal:
        run.validate({"command": "ls", "env": {f"V{n}": "x" * 60_000 for n in range(5)}}, None)
    assert refusal.value.fields["field"] == "env"


@pytest.mark.parametrize("path", ["n5/.", "/work/n5/.", ".", "n5/./.", "/."])
def test_a_file_is_not_made_out_of_a_name_for_a_folder(path):
    """Its last dot would be taken away, and a file `n5` be written, which nobody named."""
    with pytest.raises(FileError, match="names no file") as refusal:
        write.validate({"path": path, "content": b"x"}, None)
    assert refusal.value.code == "bad_path"
    assert write.validate({"path": "n5/.x", "content": b"x"}, None)["path"] == "/work/n5/.x"


def test_an_install_names_packages_and_nothing_else():
    assert install.validate({"packages": ["gawk", "g++", "gawk", "python3-pandas=1.5.3+dfsg-2"]}, None) == {
        "packages": ["gawk", "g++", "python3-pandas=1.5.3+dfsg-2"], "timeout_s": 600,
    }  # fmt: skip
    bad = [
        [],
        None,
        "gawk",
        ["-oDebug"],
        ["./x.deb"],
        ["a b"],
        ["gawk\n"],
        ["Gawk"],
        ["gawk:amd64;id"],
        [5],
        ["gawk"] * 51,
    ]
    bad += [["git-"], ["gawk", "jq-"], ["git=1:2-"]]  # apt would remove these
    for packages in bad:
        with pytest.raises(Invalid) as refusal:
            install.validate({"packages": packages}, None)
        assert refusal.value.fields["field"] == "packages"
    with pytest.raises(Invalid, match="env"):
        install.validate({"packages": ["gawk"], "env": {"APT_CONFIG": "/work/x"}}, None)
