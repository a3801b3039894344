"""Only allowed names are answered, and who meets a refusal learns how to allow one."""

import json
import subprocess
import sys

import pytest
from django.test import Client

from console.pages.throttle import client_of


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["192.168.1.5:8000", "sandgate.lan", "[fd00::5]:8000", "127.0.0.1.evil.example"])
def test_another_name_is_refused_with_the_way_to_allow_it(host, caplog) -> None:
    answer = Client(headers={"host": host}).get("/sign-in")
    assert answer.status_code == 400
    assert f"SANDGATE_ORIGINS=http://{host}" in answer.content.decode()
    assert answer.headers["content-security-policy"]
    said = [record for record in caplog.records if "SANDGATE_ORIGINS" in record.getMessage()]
    assert len(said) == 1
    assert f"http://{host}" in said[0].getMessage()


@pytest.mark.django_db
def test_a_name_that_is_none_is_not_repeated(caplog) -> None:
    answer = Client(headers={"host": "<script>x\x1b[2J"}).get("/")
    assert answer.status_code == 400
    assert "<script>" not in answer.content.decode()
    assert "\x1b" not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("console"))


@pytest.mark.django_db
def test_behind_tls_the_https_name_is_what_to_allow() -> None:
    answer = Client(headers={"host": "gate.example", "x-forwarded-proto": "https"}).get("/sign-in")
    assert "SANDGATE_ORIGINS=https://gate.example" in answer.content.decode()


SHOW = """
import json
from console import settings as s
print(json.dumps([s.ALLOWED_HOSTS, s.CSRF_TRUSTED_ORIGINS, s.HTTPS]))
"""


@pytest.mark.parametrize(
    ("host", "origins", "allowed", "trusted", "https"),
    [
        ("127.0.0.1", "", [], [], False),
        ("0.0.0.0", "http://192.168.1.5:8000", ["192.168.1.5"], ["http://192.168.1.5:8000"], False),
        ("::", "http://[fd00::5]:8000", ["[fd00::5]"], ["http://[fd00::5]:8000"], False),
        ("fd00::5", "", ["[fd00::5]"], [], False),
        (
            "127.0.0.1", "https://a.example/, http://b.lan ", ["a.example", "b.lan"],
            ["https://a.example", "http://b.lan"], True,
        ),
    ],
)  # fmt: skip
def test_what_people_type_is_allowed(tmp_path, host, origins, allowed, trusted, https) -> None:
    env = {"SANDGATE_VAR": str(tmp_path), "SANDGATE_HOST": host, "SANDGATE_ORIGINS": origins, "PATH": "/usr/bin"}
    shown = subprocess.run([sys.executable, "-c", SHOW], env=env, capture_output=True, text=True, check=True)
    hosts, csrf, secure = json.loads(shown.stdout)
    assert set(hosts) == {"127.0.0.1", "localhost", "[::1]", *allowed}
    assert (csrf, secure) == (trusted, https)


def test_a_plain_address_is_no_proxy_so_nobody_names_their_own_client(settings, rf) -> None:
    settings.PUBLIC_ORIGINS, settings.HTTPS = ["http://192.168.1.5:8000"], False
    request = rf.get("/", headers={"x-forwarded-for": "198.51.100.7"}, REMOTE_ADDR="192.168.1.9")
    assert client_of(request) == "192.168.1.9"
