"""What sandboxes are made of, over REST: images, limits, and packages installed through the jail and the gate."""

import base64
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import docker
import httpx
import pytest

from console import state
from sandboxes.engine import EngineConfig

from . import mirrors
from .mirrors import Mirror
from .served import CHECKOUT, Served, until

pytestmark = pytest.mark.gvisor
MANAGES = """
from console.workspaces import keys, permissions
from console.workspaces.models import Member
may = [permissions.AGENTS_MANAGE, permissions.WORKSPACE_MANAGE]
print(keys.make_member_key(Member.objects.get(), name="manages", may=may, by=None)[1])
"""
PROGRAMS = (
    "python python3 pip git rg curl wget jq ps top file diff patch xz bzip2 zstd zip unzip tar tree make sqlite3 "
    "ssh bc awk sed grep find xargs less sort od base64 sha256sum timeout env"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    console = Served(tmp_path_factory.mktemp("images") / "var").up()
    yield console
    console.close()


@pytest.fixture(scope="module")
def agent(served: Served) -> Iterator[httpx.Client]:
    with served.api("agent") as client:
        yield client


@pytest.fixture(scope="module")
def api(served: Served) -> Iterator[httpx.Client]:
    """A member's key: sees the agent's sandboxes, and is not asked."""
    with served.api("workspace", timeout_s=320) as client:
        yield client


@pytest.fixture(scope="module")
def manager(served: Served) -> Iterator[httpx.Client]:
    command = [sys.executable, "manage.py", "shell", "-c", MANAGES]
    done = subprocess.run(command, cwd=CHECKOUT, env=served.environment, capture_output=True, text=True, check=True)
    key = {"X-API-Key": done.stdout.split()[-1]}
    with httpx.Client(base_url=f"{served.url}/v1", headers=key, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture(scope="module")
def agents_id(manager: httpx.Client) -> str:
    return str(manager.get("/agents").json()["items"][0]["id"])


def make(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post("/sandboxes", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def run(api: httpx.Client, sandbox: dict[str, Any], command: str) -> str:
    """What it printed; it must succeed."""
    body = {"command": command, "timeout": 300, "env": sandbox.get("env", {})}
    answer = api.post(f"/sandboxes/{sandbox['id']}/commands", json=body).json()
    assert answer["exit_code"] == 0, answer["stdout"] + answer["stderr"]
    return str(answer["stdout"])


def test_the_default_image_holds_what_real_work_needs(api: httpx.Client) -> None:
    sandbox = make(api)
    assert sandbox["image"] == "default"
    assert run(api, sandbox, f"for p in {PROGRAMS}; do command -v $p > /dev/null || echo $p; done") == ""
    about = run(
        api, sandbox, "id -un; pwd; python -c 'import sys, pandas, openpyxl; print(sys.version_info >= (3, 11))'"
    )
    assert about.split() == ["agent", "/work", "True"]
    assert (
        run(api, sandbox, "python -m venv --system-site-packages v && v/bin/python -c 'import numpy; print(1)'")
        == "1\n"
    )
    assert run(api, sandbox, "find / -xdev -type f -perm /6000 2> /dev/null; true") == ""
    api.delete(f"/sandboxes/{sandbox['id']}")


def test_what_was_asked_for_within_the_limits_is_what_the_sandbox_has(api: httpx.Client) -> None:
    sandbox = make(api, output_mb=1, processes=50, open_files=100, memory_mb=300, disk_mb=100, cpus=0.5)
    assert run(api, sandbox, "ulimit -u; ulimit -n").split() == ["50", "100"]
    memory_kb, disk_kb = run(
        api, sandbox, "free -k | awk '/^Mem/ {print $2}'; df -k --output=size /work | tail -1"
    ).split()
    assert (int(memory_kb), 80 << 10 < int(disk_kb) <= 100 << 10) == (300 << 10, True)
    body = {"command": "seq 1 1000000"}
    answer = api.post(f"/sandboxes/{sandbox['id']}/commands", json=body).json()
    assert (answer["truncated"], answer["stdout_bytes"], len(answer["stdout"])) == (True, 6888896, 1 << 20)
    assert answer["stdout"].startswith("1\n2\n")
    assert answer["stdout"].endswith("\n1000000\n")
    api.delete(f"/sandboxes/{sandbox['id']}")


def test_what_the_user_installs_does_not_stand_before_the_image(api: httpx.Client) -> None:
    sandbox = make(api)
    fake = "printf '#!/bin/sh\\necho fake\\n' > ~/.local/bin/$p; chmod +x ~/.local/bin/$p"
    run(api, sandbox, f"mkdir -p ~/.local/bin; for p in git mine; do {fake}; done")
    assert run(api, sandbox, "mine; git --version").startswith("fake\ngit version")
    api.delete(f"/sandboxes/{sandbox['id']}")


@pytest.mark.parametrize(
    ("body", "field", "limit"),
    [
        ({"image": "team/tools:2"}, "image", ["default", "node"]),
        ({"memory_mb": 8192}, "memory_mb", 4096),
        ({"persistent": True}, "persistent", False),
        ({"writable_root": True}, "writable_root", False),
    ],
)
def test_what_the_settings_do_not_allow_is_told_with_the_field_and_the_limit(
    agent: httpx.Client, body: dict[str, Any], field: str, limit: object
) -> None:
    answer = agent.post("/sandboxes", json=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed_by_settings")
    assert (answer.json()["field"], answer.json()["limit"]) == (field, limit)


def test_an_image_of_the_operators_own_is_had_when_it_is_allowed_and_in_docker(
    agent: httpx.Client, manager: httpx.Client, served: Served
) -> None:
    config = EngineConfig.load(served.var, state.instance(served.var))
    name = f"team/tools-{config.instance}:2"
    manager.put("/workspace", json={"images": [name]}).raise_for_status()
    answer = agent.post("/sandboxes", json={"image": name})
    assert (answer.status_code, answer.json()["code"]) == (503, "no_runtime")
    assert f"There is no image {name} in Docker. Pull or build it there" in answer.json()["detail"]
    assert agent.get("/sandboxes").json() == []
    with closing(docker.DockerClient(config.docker_host)) as client:
        client.images.get(config.image).tag(name)
        try:
            sandbox = make(agent, image=name)
            assert sandbox["image"] == name
            agent.delete(f"/sandboxes/{sandbox['id']}")
        finally:
            client.images.remove(name)


def test_an_agent_without_a_network_gets_none_and_is_told(
    agent: httpx.Client, manager: httpx.Client, agents_id: str
) -> None:
    tools = f"/agents/{agents_id}/tools/sandbox"
    manager.put(tools, json={"network": "none"}).raise_for_status()
    try:
        sandbox = make(agent)
        assert sandbox["network"] == "none"
        refused = agent.post("/sandboxes", json={"network": "public"})
        assert (refused.status_code, refused.json()["field"]) == (403, "network")
        agent.delete(f"/sandboxes/{sandbox['id']}")
    finally:
        manager.put(tools, json={"network": "public"}).raise_for_status()


@pytest.fixture
def reaching(agent: httpx.Client, api: httpx.Client, manager: httpx.Client, agents_id: str) -> Iterator[Any]:
    """`reaching(mirror, image=…)`: a fresh sandbox of the agent's that trusts what this machine does, with the jail
    opened for the mirror where that is at a private address."""
    made: list[str] = []

    def opened(mirror: Mirror, **body: Any) -> dict[str, Any]:
        for address, port in mirror.private():
            exception = {"address": address, "protocol": "tcp", "port": port}
            answer = manager.post(f"/agents/{agents_id}/network-exceptions", json=exception)
            made.append(answer.raise_for_status().json()["id"])
        sandbox = make(agent, **body) | {"env": mirror.env}  # with each command: an agent may not set such variables
        assert sandbox["network"] == "public"
        content = base64.b64encode(mirrors.certificates()).decode()
        file = {"path": mirrors.CERTIFICATES, "content": content, "encoding": "base64"}
        api.post(f"/sandboxes/{sandbox['id']}/files", json=file).raise_for_status()
        return sandbox

    yield opened
    for exception in made:
        manager.delete(f"/agents/{agents_id}/network-exceptions/{exception}").raise_for_status()
    for sandbox in agent.get("/sandboxes").json():
        agent.delete(f"/sandboxes/{sandbox['id']}")


def test_pip_installs_for_the_user_through_the_jail(api: httpx.Client, reaching: Any) -> None:
    sandbox = reaching(mirrors.pip(), disk_mb=2048)
    run(api, sandbox, "pip install --upgrade openpyxl pandas")
    where = run(api, sandbox, "python -c 'import openpyxl, pandas; print(openpyxl.__file__, pandas.__file__)'")
    assert all(path.startswith("/home/agent/.local/lib/python3") for path in where.split()), where
    run(api, sandbox, "python -c \"import pandas; pandas.DataFrame({'a': [1, 2]}).to_excel('/work/made.xlsx')\"")
    assert run(api, sandbox, "python -c \"import pandas; print(pandas.read_excel('made.xlsx').a.sum())\"") == "3\n"
    run(api, sandbox, "pip install cowsay && cowsay -t moo")


def test_npm_installs_for_the_user_through_the_jail(api: httpx.Client, reaching: Any) -> None:
    look = make(api, image="node")
    of_npm_itself = run(api, look, "npm config get registry").strip()
    api.delete(f"/sandboxes/{look['id']}")
    sandbox = reaching(mirrors.npm(of_npm_itself), image="node", memory_mb=1024)
    assert sandbox["image"] == "node"
    run(api, sandbox, "npm init -y && npm install express")
    assert run(api, sandbox, "node -e \"console.log(typeof require('express')())\"") == "function\n"
    run(api, sandbox, "npm install -g semver")
    assert run(api, sandbox, "semver 1.2.3") == "1.2.3\n"


def test_without_a_writable_root_nothing_of_the_system_is_installed(api: httpx.Client) -> None:
    sandbox = make(api)
    answer = api.post(f"/sandboxes/{sandbox['id']}/install", json={"packages": ["gawk"]})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed_by_settings")
    assert answer.json()["field"] == "writable_root"
    api.delete(f"/sandboxes/{sandbox['id']}")


@pytest.fixture
def own_system(manager: httpx.Client, agents_id: str) -> Iterator[None]:
    tools = f"/agents/{agents_id}/tools/sandbox"
    manager.put(tools, json={"writable_root_allowed": True, "command_mode": "rules"}).raise_for_status()
    yield
    manager.put(tools, json={"writable_root_allowed": False}).raise_for_status()


def test_a_gated_install_brings_system_packages_as_root_without_a_capability(
    served: Served, agent: httpx.Client, api: httpx.Client, manager: httpx.Client, reaching: Any, own_system: None
) -> None:
    look = make(api)
    sources = run(api, look, "cat /etc/apt/sources.list")
    api.delete(f"/sandboxes/{look['id']}")
    sandbox = reaching(mirrors.apt(sources), writable_root=True)
    at = f"/sandboxes/{sandbox['id']}"
    assert "Permission denied" in run(api, sandbox, "touch /usr/x 2>&1 || true")  # a command is the user's as ever
    with ThreadPoolExecutor(1) as pool, served.api("review") as reviewer:
        asked = pool.submit(agent.post, f"{at}/install", json={"packages": ["hello"], "reason": "greet"})
        action = until(lambda: agent.get("/actions", params={"status": "pending"}).json()["items"])[0]
        assert (action["tool"], action["arguments"]["packages"]) == ("install", ["hello"])
        assert run(api, sandbox, "command -v hello || echo none") == "none\n"
        verdict = {"verdict": "approve", "digest": action["digest"]}
        reviewer.post(f"/actions/{action['id']}/decision", json=verdict).raise_for_status()
        answer = asked.result().json()
    assert answer["exit_code"] == 0, answer["stdout"] + answer["stderr"]
    assert "Setting up hello" in answer["stdout"]
    assert run(api, sandbox, "hello") == "Hello, world!\n"
    failed = api.post(f"{at}/install", json={"packages": ["no-such-package"]}).json()
    assert failed["exit_code"] == 100
    assert "Unable to locate package no-such-package" in failed["stderr"]


def test_what_the_user_sets_or_writes_is_no_part_of_an_install(api: httpx.Client) -> None:
    env = {"APT_CONFIG": "/work/apt.conf", "DPKG_ROOT": "/work"}
    sandbox = make(api, network="none", writable_root=True, env=env)
    evil = 'APT::Update::Pre-Invoke {"touch /owned";};\nDPkg::Pre-Invoke {"touch /owned";};'
    run(api, sandbox, f"printf '%s' '{evil}' > /work/apt.conf; cp /work/apt.conf ~/.aptrc; mkdir -p ~/.local/bin")
    program = "printf '#!/bin/sh\\ntouch /owned\\n' > ~/.local/bin/dpkg-preconfigure; chmod +x ~/.local/bin/*"
    run(api, sandbox, program)
    answer = api.post(f"/sandboxes/{sandbox['id']}/install", json={"packages": ["hello"]}).json()
    assert answer["exit_code"] == 100, answer  # there is nothing to fetch from
    assert run(api, sandbox, "ls /owned 2>&1 || true").startswith("ls: cannot access")
    for packages in (["-oDebug=1"], ["a b"], ["./x.deb"], ["x;id"], [], ["UPPER"]):
        refused = api.post(f"/sandboxes/{sandbox['id']}/install", json={"packages": packages})
        assert (refused.status_code, refused.json()["field"]) == (422, "packages"), packages
    api.delete(f"/sandboxes/{sandbox['id']}")
