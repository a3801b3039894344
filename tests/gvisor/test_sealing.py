"""Protected files against commands: what a person puts there is sealed, what a command makes is found after it."""

import pytest

from sandboxes.engine import WriteRequest
from sandboxes.errors import FileError
from tests.gvisor.engines import OnePass

KEY = "-----BEGIN " + "PRIVATE KEY-----\nabc\n"
ATTEMPTS = (
    "echo x >> {f}", "echo x > {f}", ": > {f}", "truncate -s 0 {f}", "rm -f {f}; cat {f}; false", "mv {f} {f}.x",
    "mv -f {f} /tmp/k", "ln {f} /work/hard && echo y >> /work/hard", "ln -s {f} /work/soft && echo y >> /work/soft",
    "chmod 666 {f}", "chown 1000 {f}; touch {f}", "touch {f}", "python3 -c 'import os; os.truncate(\"{f}\", 0)'",
    "cp {f} /work/copy && echo z > /work/copy && mv -f /work/copy {f}", "umount {f}", "mount -o remount,rw {f}",
    "echo q > /proc/1/root{f}", "echo q > /proc/self/root{f}", "sed -i s/S/T/ {f}", "dd if=/dev/zero of={f} count=1",
    "python3 -c 'import os; os.open(\"{f}\", os.O_RDWR)'", "tar cf /tmp/t.tar -C / {r} && echo 1 > /tmp/e && tar xf"
    " /tmp/t.tar -C / --overwrite", "python3 -c 'import os; os.rename(\"/work/copy2\", \"{f}\")'",
    "install -m 600 /dev/null {f}", "perl -e 'open F, \">{f}\" or exit 1'", "setfattr -n user.x -v 1 {f}",
)  # fmt: skip


def put(bench, box, path, content=b"S=1\n", seal=True):
    async def blocks():
        yield content

    asked = WriteRequest(path=path, size=len(content), seal=seal)
    return bench.do(box.write(OnePass(box.sandbox_id, "write"), asked, blocks()))


def unseal(bench, box, path):
    return bench.do(box.unseal(OnePass(box.sandbox_id, "unseal"), path))


def found(ran):
    return {each.path: each.sealed for each in ran.result.protected}


@pytest.mark.parametrize("path", ["/work/.env", "/work/deep/a/b/id_rsa", "/home/agent/.aws/credentials"])
def test_nothing_a_command_does_changes_a_sealed_file(bench, box, path):
    assert put(bench, box, path).sealed
    for attempt in ATTEMPTS:
        bench.bash(box, attempt.format(f=path, r=path.lstrip("/")))
        assert bench.bash(box, f"cat {path}").text == "S=1\n", attempt
    assert unseal(bench, box, path) == (path, True)
    assert bench.bash(box, f"echo T >> {path} && cat {path} && rm {path}").text == "S=1\nT\n"


def test_what_lies_above_a_sealed_file_stays_where_it_is(bench, box):
    put(bench, box, "/work/p/q/r/key.pem")
    moved = "cd /work; mv p pp; mv p/q p/qq; mv p/q/r x; rm -rf p; cat p/q/r/key.pem"
    assert bench.bash(box, moved).text == "S=1\n"
    around = (
        "cd /work/p/q && echo n > r/new && mv r/new r/new2 && mkdir d && mv d e && mv r/new2 /work/out && cat /work/out"
    )
    assert bench.bash(box, around).text == "n\n"
    unseal(bench, box, "/work/p/q/r/key.pem")
    assert bench.bash(box, "cd /work; mv p/q/r s && mv p pp && rm -rf pp s out").code == 0


def test_who_stood_in_the_folder_before_gains_nothing(bench, box):
    script = (
        "mkdir -p /work/old/a/b; cd /work/old/a; touch ../there; while [ ! -e ../go ]; do sleep 0.05; done;"
        "echo evil >> b/key.pem; echo evil > ../a/b/key.pem; rm -f b/key.pem; mv b c; cat b/key.pem"
    )
    running = bench.begin(bench.bashing(box, script))
    assert bench.bash(box, "while [ ! -e /work/old/there ]; do sleep 0.05; done").code == 0
    assert put(bench, box, "/work/old/a/b/key.pem").sealed
    bench.bash(box, "touch /work/old/go")
    assert running.result(60).text == "S=1\n"


def test_a_new_protected_file_is_told_and_sealed(bench, box):
    ran = bench.bash(
        box, "mkdir -p /work/made/sub && cd /work/made && echo A=1 > .env && echo k > sub/server.key && touch x"
    )
    assert found(ran) == {"/work/made/.env": True, "/work/made/sub/server.key": True}
    again = bench.bash(box, "cd /work/made; echo B >> .env; mv sub other; cat .env; ls")
    assert (again.text, found(again)) == ("A=1\nsub\nx\n", {})


def test_what_is_moved_there_is_found(bench, box):
    ran = bench.bash(
        box, "mkdir -p /tmp/in/d && echo 1 > /tmp/in/d/prod.tfvars && mv /tmp/in /work/in && mv /work/in /work/in2"
    )
    assert found(ran) == {"/work/in2/d/prod.tfvars": True}
    assert found(bench.bash(box, "cd /work; echo A > plain; mv plain .envrc")) == {"/work/.envrc": True}


def test_a_file_with_a_second_name_is_told_and_not_called_sealed(bench, box):
    assert found(bench.bash(box, "cd /work; echo A > other; ln other linked.key")) == {"/work/linked.key": False}
    bench.bash(box, "rm /work/linked.key")


def test_folders_are_no_protected_files_and_links_and_pipes_are_only_told(bench, box):
    ran = bench.bash(
        box, "mkdir -p /work/odd/.env/bin; cd /work/odd; touch .env/bin/activate; ln -s /etc/passwd a.pem; mkfifo b.pem"
    )
    assert found(ran) == {"/work/odd/a.pem": False, "/work/odd/b.pem": False}


@pytest.mark.parametrize("mode", ["300", "000", "200", "600"])
def test_a_folder_that_its_owner_is_shut_out_of_hides_nothing(bench, box, mode):
    """Before it was watched, and after."""
    old, new = f"/work/shut/{mode}/old", f"/work/shut/{mode}/new"
    bench.bash(box, f"mkdir -p {old}/in")
    made = f"mkdir -p {new}/in; for f in {old} {old}/in {new} {new}/in; do echo S > $f/.env; done"
    ran = bench.bash(box, f"{made}; chmod {mode} {old}/in {new}/in {old} {new}")
    assert found(ran) == dict.fromkeys((f"{f}/.env" for f in (old, f"{old}/in", new, f"{new}/in")), True)


def test_packages_keys_are_only_told(bench, box):
    made = "cd /work; mkdir -p app/node_modules/a/t app/.venv/lib; touch app/node_modules/a/t/k.pem app/.venv/lib/x.key"
    assert found(bench.bash(box, made)) == {
        "/work/app/node_modules/a/t/k.pem": False,
        "/work/app/.venv/lib/x.key": False,
    }
    later = bench.bash(box, "mkdir -p /work/app/node_modules/b; touch /work/app/node_modules/b/k.pem")
    assert found(later) == {"/work/app/node_modules/b/k.pem": False}
    assert bench.bash(box, "rm -rf /work/app && ls /work/app").code == 2


def test_a_background_command_is_swept_at_its_end(bench, box):
    ran = bench.bash(box, "touch /work/now.key", background=False)
    assert found(ran) == {"/work/now.key": True}


@pytest.mark.parametrize(
    "path", ["/work/.env.local", "/work/via/config", "/work/via2", "/work/x/../.netrc", "/tmp/a.key", "/work/.env "]
)
def test_a_tool_writes_to_no_protected_path(bench, box, path):
    bench.bash(box, "cd /work; mkdir -p real/.ssh; ln -sfn real/.ssh via; echo A > real.env; ln -sfn real.env via2")
    with pytest.raises(FileError) as refused:
        put(bench, box, path, seal=False)
    assert refused.value.code == "protected_path"
    assert "protected" in refused.value.detail


def test_a_private_key_is_written_nowhere_by_a_tool(bench, box):
    for path in ("/work/notes.txt", "/work/new-cert.pem"):
        with pytest.raises(FileError) as refused:
            put(bench, box, path, (KEY if "notes" in path else f"x\n{KEY}").encode(), seal=False)
        assert refused.value.code == "protected_path"
    assert bench.bash(box, "ls /work/notes.txt /work/new-cert.pem; ls -A /work | grep part").text == ""
    bench.bash(box, f"printf 'x\\n{KEY}' > /work/has-cert.pem")
    with pytest.raises(FileError) as refused:
        put(bench, box, "/work/has-cert.pem", b"other", seal=False)
    assert refused.value.code == "protected_path"


def test_a_person_replaces_a_sealed_file(bench, box):
    put(bench, box, "/work/rep/.env", b"one")
    assert put(bench, box, "/work/rep/.env", b"two").sealed
    assert bench.bash(box, "echo x >> /work/rep/.env; cat /work/rep/.env").text == "two"


def test_what_was_there_is_sealed_again_after_a_stop(bench):
    box = bench.create()
    bench.bash(box, "cd /work; mkdir -p a/node_modules; echo A > a/.env; touch a/node_modules/k.pem; echo B > a/plain")
    unseal(bench, box, "/work/a/.env")
    bench.bash(box, "chmod 644 /work/a/.env; echo A2 > /work/a/.env")
    bench.do(bench.engine.set_down(box.sandbox_id, reason="idle"))
    box = bench.do(bench.engine.create(bench.spec(sandbox_id=box.sandbox_id), kept=True))
    ran = bench.bash(
        box, "cd /work; echo C > a/.env; mv a b; rm a/node_modules/k.pem; echo C > a/plain; cat a/.env a/plain"
    )
    assert (ran.text, found(ran)) == ("A2\nC\n", {})
    bench.do(bench.engine.remove(box.container_id))


def test_what_developers_do_still_works(bench, box):
    """Clone, install, upgrade, clean: with keys in packages, and a sealed file of the project's own."""
    script = """
        set -e; cd /work; rm -rf day; mkdir day; cd day
        git init -q --bare up.git; git clone -q up.git one 2>/dev/null; cd one
        git config user.email a@b.c; git config user.name a
        printf 'node_modules/\\n.env\\n' > .gitignore; echo 1 > a.py; mkdir -p tests; echo k > tests/server.pem
        git add -A; git commit -qm one; git push -q origin HEAD; cd ..
        git clone -q up.git two; cd two; git log --oneline | wc -l; cat tests/server.pem
        mkdir -p node_modules/p/test; for i in 1 2 3; do echo k > node_modules/p/test/$i.pem; done; rm -rf node_modules
        mkdir -p node_modules/p/test; echo k > node_modules/p/test/1.pem; git clean -qfdx; ls -A | tr '\\n' ' '
    """
    ran = bench.bash(box, script)
    assert (ran.code, ran.text) == (0, "1\nk\n.git .gitignore a.py tests "), ran.err
    assert found(ran) == {"/work/day/one/tests/server.pem": True, "/work/day/two/tests/server.pem": True}
    put(bench, box, "/work/day/two/.env")
    after = """
        set -e; cd /work/day/two; mkdir -p node_modules/q; echo k > node_modules/q/1.key; rm -rf node_modules
        echo 2 >> a.py; git commit -qam two; git pull -q --no-rebase; git checkout -q -b other
        git status --short; git clean -fdx 2>&1 | grep -c warning || true; cat .env
    """
    ran = bench.bash(box, "git config --global user.email a@b.c; git config --global user.name a;" + after)
    assert ran.code == 0, ran.err
    assert ran.text.endswith("S=1\n")


BACK = r"""
import os, zipfile
def build_wheel(folder, *more):
    version = open("version").read().strip()
    name, info = f"carry-{version}-py3-none-any.whl", f"carry-{version}.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("carry/__init__.py", "")
        wheel.writestr("carry/test.pem", version)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: carry\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        files = ("carry/__init__.py", "carry/test.pem", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD")
        wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in files))
    return name
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "back"\nbackend-path = ["."]\n'
PIP = "pip {} -q --disable-pip-version-check --break-system-packages"


def test_pip_upgrades_a_package_that_brings_keys(bench, box):
    bench.bash(box, "mkdir -p /work/pkg")
    put(bench, box, "/work/pkg/back.py", BACK.encode(), seal=False)
    put(bench, box, "/work/pkg/pyproject.toml", PROJECT.encode(), seal=False)
    for version in ("1.0", "2.0"):
        install = f"{PIP.format('install')} --no-index --no-build-isolation --user -U ."
        ran = bench.bash(box, f"cd /work/pkg && echo {version} > version && {install}")
        assert ran.code == 0, ran.err
        kept = bench.bash(box, "cat /home/agent/.local/lib/python3*/site-packages/carry/test.pem")
        assert kept.text == version
    assert bench.bash(box, f"{PIP.format('uninstall')} -y carry").code == 0
    assert bench.bash(box, "ls /home/agent/.local/lib/python3*/site-packages/carry").code != 0


def test_no_process_but_pid_1_holds_the_right_to_mount(bench, box):
    """Keepers, the nursery and commands; PID 1 shows nothing of itself."""
    seen = bench.bash(box, "grep -H '^Cap[PEI]' /proc/[0-9]*/status").text.splitlines()
    assert len({line.split("/")[2] for line in seen}) >= 3
    assert [line for line in seen if int(line.split()[-1], 16) & 1 << 21] == []


def test_settings_add_and_exempt(bench, box):
    bench.bash(box, "cd /work; echo 1 > a.crypt")
    put(bench, box, "/work/ex/.env", b"one")
    bench.do(box.protect(more=["*.crypt"], exempt=dict.fromkeys(["/work/ex/.env", "/work/ex/plain"], 600.0)))
    assert bench.bash(box, "cd /work; echo 2 >> a.crypt; echo 2 >> ex/.env; cat a.crypt ex/.env").text == "1\none2\n"
    assert put(bench, box, "/work/ex/.env", b"three", seal=False).size == 5
    bench.do(box.protect(more=[], exempt={}))
    assert bench.bash(box, "echo 4 >> /work/ex/.env; cat /work/ex/.env").text == "three"


def test_an_exemption_ends_in_time_also_for_what_runs_already(bench, box):
    """Of what commands may find by its name, and of what only its person knows to be a secret."""
    paths = ["/work/end/.env", "/work/end/plain"]
    for path in paths:
        put(bench, box, path)
    longer = put(bench, box, "/work/end/longer").path
    bench.do(box.protect(more=[], exempt={longer: 1.0, paths[0]: 600.0, paths[1]: 600.0}))
    bench.do(box.protect(more=[], exempt={paths[0]: 1.0, paths[1]: 2.5, longer: 600.0}))
    script = "cd /work/end; for f in .env plain; do until ! echo x >> $f; do sleep 0.1; done; done 2>/dev/null"
    assert bench.bash(box, script).code == 0
    for path in paths:
        assert bench.bash(box, f"echo x >> {path} || mv {path} /tmp || rm {path}").code != 0, path
    assert bench.bash(box, f"echo x >> {longer}").code == 0
    bench.do(box.protect(more=[], exempt={}))
