"""Where this machine gets its packages from, read from its own configuration when a test runs, and what a sandbox needs
to get them there: which addresses to open in the jail, whose certificates to trust, which settings its tools take."""

import ipaddress
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, urlopen

CERTIFICATES = "/home/agent/ca.pem"


@dataclass(frozen=True)
class Mirror:
    """`urls` are all that a client calls: the index, and where it sends for files."""

    urls: tuple[str, ...]
    env: dict[str, str]

    def private(self) -> set[tuple[str, int]]:
        """Address and port of what a sandbox does not reach by itself."""
        found = set()
        for url in [getproxies().get("https", "")] if "https" in getproxies() else self.urls:
            parts = urlsplit(url)
            port = parts.port or {"https": 443, "http": 80}[parts.scheme]
            found |= {(address, port) for address in _addresses(str(parts.hostname), port)}
        assert not [
            each for each in found if ipaddress.ip_address(each[0]).is_loopback
        ], "the mirror is on this machine itself, which no exception opens to a sandbox"
        return {each for each in found if not ipaddress.ip_address(each[0]).is_global}


def _addresses(host: str, port: int) -> set[str]:
    return {str(found[4][0]) for found in socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)}


def certificates() -> bytes:
    """What this machine trusts, which may be more than an image does."""
    named = [os.environ.get(name, "") for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")]
    paths = [*named, ssl.get_default_verify_paths().cafile or "", "/etc/ssl/certs/ca-certificates.crt"]
    return next(Path(path).read_bytes() for path in paths if path and Path(path).is_file())


def _proxies() -> dict[str, str]:
    return {f"{scheme}_proxy": url for scheme, url in getproxies().items() if scheme in ("http", "https")}


def pip() -> Mirror:
    asked = subprocess.run(["python3", "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    said = re.search(r"^(?:global|install|:env:)\.index-url='?([^'\n]+)", asked.stdout, re.MULTILINE)
    index = (os.environ.get("PIP_INDEX_URL") or (said[1] if said else "") or _of_pip_itself()).rstrip("/")
    with urlopen(f"{index}/openpyxl/", timeout=30) as answer:
        files = re.findall(r'href="(https?://[^"]+)"', answer.read().decode())
    env = {"PIP_INDEX_URL": index, "PIP_CERT": CERTIFICATES, "PIP_DEFAULT_TIMEOUT": "60", **_proxies()}
    return Mirror((index, *files[:1]), env)


def _of_pip_itself() -> str:
    code = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def npm(of_npm_itself: str) -> Mirror:
    """`of_npm_itself`: where npm goes when nothing tells it where."""
    registry = ""
    if shutil.which("npm"):
        asked = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True, check=False)
        registry = asked.stdout.strip()
    registry = registry or of_npm_itself
    env = {"npm_config_registry": registry, "npm_config_cafile": CERTIFICATES, **_proxies()}
    return Mirror((registry,), {**env, "NODE_EXTRA_CA_CERTS": CERTIFICATES})


def apt(sources: str) -> Mirror:
    """Of an image: its sources were this machine's when it was built."""
    return Mirror(tuple(dict.fromkeys(re.findall(r"https?://[^/ ]+", sources))), {})
