"""Packages that bring protected names are installed, renewed and removed, wherever pip puts them."""

import pytest

from tests.gvisor.test_sealing import PIP, PROJECT, found, put

BACK = r"""
import os, zipfile
def build_wheel(folder, *more):
    version = open("version").read().strip()
    name, info = f"carry-{version}-py3-none-any.whl", f"carry-{version}.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        files = {
            "carry/__init__.py": "", "carry/.env": version, "carry/data/server.key": version,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: carry\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        if os.environ.get("DATA"):
            files[f"carry-{version}.data/data/etc/.env"] = version
        files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
        for file, content in files.items():
            wheel.writestr(file, content)
    return name
"""


@pytest.fixture(scope="module")
def package(bench, box):
    bench.bash(box, "mkdir -p /work/pkg2")
    put(bench, box, "/work/pkg2/back.py", BACK.encode(), seal=False)
    put(bench, box, "/work/pkg2/pyproject.toml", PROJECT.encode(), seal=False)
    return "/work/pkg2"


@pytest.mark.parametrize(
    ("how", "top"),
    [
        ("install --target /work/vendor", "/work/vendor"),
        ("install --user", "/home/agent/.local"),
        ("--python /work/env2/bin/python install", "/work/env2"),
    ],
)
def test_pip_renews_a_package_that_brings_protected_names(bench, box, package, how, top):
    """Beside its code, and as data files in the environment itself."""
    data = "" if "target" in how else "DATA=1"  # pip's own record is wrong about these
    if "env2" in how:
        assert bench.bash(box, f"python3 -m venv --without-pip {top}").code == 0
    install = f"{data} {PIP.format(how)} --no-index --no-build-isolation -U ."
    for version in ("1.0", "2.0", "3.0"):
        ran = bench.bash(box, f"cd {package} && echo {version} > version && {install}")
        assert ran.code == 0, ran.err
        assert not any(found(ran).values()), "sealed, so that the next one cannot replace it"
        kept = bench.bash(box, f"cd {top}; find . -name .env -o -name server.key | xargs cat; find . -name '*~*'")
        assert kept.text == version * (3 if data else 2)
    assert bench.bash(box, f"rm -rf {top} && ls {top}").code == 2


def test_a_record_written_later_takes_no_seal(bench):
    """Nor after a stop: what lay there is sealed at the start, whatever is written beside it."""
    box = bench.create()
    assert found(bench.bash(box, "cd /work; mkdir app; echo S=1 > app/.env")) == {"/work/app/.env": True}
    forge = "cd /work/app; mkdir -p a.dist-info; echo '.env,,' > a.dist-info/RECORD; echo x >> .env || rm .env; true"
    bench.bash(box, forge)
    bench.do(box.protect(more=["*.x"], exempt={}))
    assert bench.bash(box, "cd /work/app; echo x >> .env; cat .env").text == "S=1\n"
    bench.do(bench.engine.set_down(box.sandbox_id, reason="idle"))
    box = bench.do(bench.engine.create(bench.spec(sandbox_id=box.sandbox_id), kept=True))
    assert bench.bash(box, "cd /work/app; echo x >> .env; rm -f .env; cat .env").text == "S=1\n"
    bench.do(box.protect(more=[], exempt={"/work/app/.env": 600.0}))
    bench.do(box.protect(more=[], exempt={}))
    assert bench.bash(box, "cd /work/app; echo x >> .env; cat .env").text == "S=1\n"
    bench.do(bench.engine.remove(box.container_id))
