"""/etc/resolv.conf of the sandbox: the DNS servers that its jail lets through, or none. Owns that file and its mount.

Docker's own list names a server that cannot be reached from gVisor's network, or shows a sandbox without a network
those of the host. An unreachable server is given up after two seconds, not thirty.
"""

import os

from . import rights

PATH = "/etc/resolv.conf"
OPTIONS = "options timeout:2 attempts:2\n"


def lay(volume: str, resolvers: str) -> None:
    """`resolvers`: addresses with commas between, or "". The file lies where only root gets at it."""
    source = os.path.join(volume, "resolv.conf")
    with open(source, "w") as out:
        out.writelines(f"nameserver {address}\n" for address in resolvers.split(",") if address)
        out.write(OPTIONS if resolvers else "")
    os.chmod(source, 0o644)
    rights.bind(source, PATH)
