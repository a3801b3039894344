"""Install packages of the system, as root without a capability, where an admin allowed a writable root.

Root's own files are root's to change, and nothing more: no other user's, no mount, no device, no signal to what is not
root's. What the sandbox's user can write or set is kept out of it: its variables, its home, its programs.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from console.workspaces.errors import Invalid
from console.workspaces.models import Agent

from . import arguments as check
from .run import TIMEOUT_MOST_S, result

if TYPE_CHECKING:
    from approvals.gate import Pass
    from sandboxes.engine import Box
    from sandboxes.outputs import Outputs

__all__ = ["KIND", "NAME", "VERSION", "execute", "result", "validate"]
NAME, VERSION, KIND = "install", 1, "command"
# apt takes a minus at the end for the wish to remove it.
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{1,99}(=[A-Za-z0-9][A-Za-z0-9.+:~-]{0,99})?(?<!-)\Z")
MOST_PACKAGES = 50
TIMEOUT_S = 600
# apt would become another user to fetch, which takes a capability, and has folders that belong to that user.
OWN = "/var/lib/sandgate-apt"
APT = (
    "apt-get -q -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=60 "
    f"-o Dir::State::Lists={OWN}/lists -o Dir::Cache::Archives={OWN}/archives"
)
SCRIPT = (
    f"mkdir -p {OWN}/lists/partial {OWN}/archives/partial && {APT} update"
    f' && exec {APT} -y --no-install-recommends install -- "$@"'
)
ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "TMPDIR": "/tmp",
    "DEBIAN_FRONTEND": "noninteractive",
}


def validate(arguments: Mapping[str, Any], agent: Agent | None) -> dict[str, Any]:
    """`packages` by name, or `name=version`."""
    check.only(arguments, "packages", "timeout_s")
    packages = arguments.get("packages")
    if not isinstance(packages, list | tuple) or not 1 <= len(packages) <= MOST_PACKAGES:
        raise Invalid(f"`packages` is a list of 1 to {MOST_PACKAGES} names.", field="packages")
    for name in packages:
        if not isinstance(name, str) or not PACKAGE.match(name):
            raise Invalid(f"{name!r} is no name of a Debian package, such as gawk or gawk=1:5.2.", field="packages")
    limit_s = check.seconds(arguments.get("timeout_s") or TIMEOUT_S, field="timeout", most=TIMEOUT_MOST_S)
    return {"packages": list(dict.fromkeys(packages)), "timeout_s": limit_s}


async def execute(pass_: "Pass", box: "Box", outputs: "Outputs") -> dict[str, Any]:
    from sandboxes.engine import RunRequest

    request = RunRequest(
        argv=["sh", "-c", SCRIPT, "install", *pass_.arguments["packages"]],
        cwd="/",
        env=ENV,
        timeout_s=pass_.arguments["timeout_s"],
        as_root=True,
    )
    return result(await box.run(pass_, request, outputs), outputs)
