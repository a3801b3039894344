"""Protected paths: which names, folders and contents are, and that no way of writing a name gets round it."""

import json
import posixpath
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals import paths
from approvals.paths import BUILT_IN, Content, Folder, Protection, check_name, fold, holds_key, protected

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "data" / "file-tools.jsonl"
WORK = "/work"
PROTECTED = """
.env .ENV .env.production deep/er/.env.local .env.example.local .env~ .env-x .env_x prod.env .envrc .envrc.local
id_rsa id_ed25519 id_ecdsa_sk id_rsa_work id_rsa.bak id_dsa~ deploy_rsa deploy_ed25519 ssh_host_rsa_key
server.pem privkey.pem replica.pem tls/server.key master.key store.p12 a.pfx a.jks a.jceks a.bks a.keystore a.ppk a.p8
a.pkcs8 a.kdb a.kdbx a.keytab a.agekey secring.gpg .netrc _netrc .pgpass pgpass.conf .my.cnf .mylogin.cnf
.git-credentials .pypirc .htpasswd .vault-token .dockercfg .s3cfg .boto .terraformrc secret secrets credential
credentials .secrets .credentials secrets.yml secret.json credentials.csv .secrets.toml app.secrets.yaml
my-service-account-1.json client_secret_9.json application_default_credentials.json prod.tfvars prod.tfvars.json
terraform.tfstate terraform.tfstate.backup kubeconfig prod.kubeconfig prod.secret.exs http-client.private.env.json
.ssh/config .ssh/known_hosts .gnupg/pubring.kbx .password-store/a.gpg .config/gcloud/x .config/sops/age/keys.txt
.aws/credentials .aws/sso/cache/a.json .aws/cli/cache/b .envs/.production/.django .kube/config .docker/config.json
.config/gh/hosts.yml .cargo/credentials .cargo/credentials.toml .gem/credentials /work/d/../.env /home/agent/.ssh
""".split()
ORDINARY = """
env.py example.env .env.example .env.local.example .env-sample .env_template .env.dist .env.production.example
environment.ts .environment .env/bin/activate id_rsa.pub id_rsa_work.pub id_rsa.py rsa.py public.pem fullchain.pem
cert.pem server-certs.pem ca.pem my-ca.pem ca-bundle.pem cacert.pem chain.pem dhparam.pem x_pub.pem server.crt a.cer
a.csr a.asc a.gpg public.key server-pub.key secrets.py secrets.md docs/secrets.md secret_test.go credentials.ts
credentials.yml.enc my-service-account-example.json client_secret.example.json terraform.tfvars.example main.tf .npmrc
pip.conf .gitconfig tokenizer.json .aws/task-definition.json .docker/Dockerfile .config/gh/config.yml .ssh/../x / .
""".split()
HEADER = "-----BEGIN RSA " + "PRIVATE KEY-----"
names = st.sampled_from([path for path in PROTECTED if "/" not in path])
odd = st.sampled_from("\u200b\u200d\u2060\u00ad\ufeff\x01\x7f\u202e")


@pytest.mark.parametrize("path", PROTECTED)
def test_protected(path: str) -> None:
    assert BUILT_IN.check(path)


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary(path: str) -> None:
    assert BUILT_IN.check(path) is None


@given(names, odd, st.integers(0, 40))
def test_what_cannot_be_seen_changes_nothing(name: str, invisible: str, at: int) -> None:
    assert check_name(name[:at] + invisible + name[at:])


@given(names, st.sampled_from(["", ".", " ", "...", " . ", "\xa0"]), st.booleans())
def test_case_width_and_what_trails_change_nothing(name: str, trail: str, wide: bool) -> None:
    written = "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in name) if wide else name
    assert BUILT_IN.check(f"/work/x/{written.upper()}{trail}")


@given(st.text(max_size=30))
def test_folding_again_changes_nothing(name: str) -> None:
    assert fold(fold(name)) == fold(name)


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_name_and_any_path_has_an_answer(first: str, second: str) -> None:
    path = f"/work/{first}/{second}"
    Protection(more=("*.own", "conf/**/x?")).check(path)
    assert holds_key(path, first.encode("utf-8", "replace")) in (True, False)


@given(st.lists(st.sampled_from(["a", ".ssh", ".aws", ".kube", "x.py", ".config", "gcloud", ".env"]), max_size=4),
       st.sampled_from(["config", "credentials", ".env", "a.py", ".ssh", "sso", "k.pem", "credentials.toml"]),
       st.sampled_from([(), ("*.py",)]))  # fmt: skip
def test_a_folder_answers_as_its_paths_do(parts: list[str], name: str, more: tuple[str, ...]) -> None:
    folder, protection = posixpath.join("/work", *parts), Protection(more=more)
    assert Folder(folder, protection).check(name) == protection.check(f"{folder}/{name}")


def test_the_quick_look_misses_no_name() -> None:
    for name in (posixpath.basename(path) for path in PROTECTED):
        if any(yes.match(fold(name)) and not no.match(fold(name)) for _, yes, no in paths._patterns()):
            assert check_name(name), name


def test_own_patterns_and_exemptions() -> None:
    mine = Protection(more=("*.crypt", "conf/*.ini", "/work/vault"), exempt=frozenset({"/work/.env"}))
    for path in ("/work/a.CRYPT", "/work/x/conf/a.ini", "conf/b.ini", "/work/vault/deep/x", "/work/sub/.env"):
        assert mine.check(path), path
    for path in ("/work/.env", "/work/./x/../.env", "/work/conf/deep/a.ini", "/home/agent/work/vault", "/work/a.ini"):
        assert mine.check(path) is None, path
    assert mine.finds("/work/.env")
    assert protected(["/work/a", "/work/sub/.env"], mine) == ("/work/sub/.env", "environment file")


@pytest.mark.parametrize("pattern", ["", "*", "**", "*.*", "/", "??", "a/../b", "x" * 201, "a\nb", " "])
def test_a_pattern_that_means_nothing_or_everything_is_none(pattern: str) -> None:
    assert paths.check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["/work", "work", "WORK", "w*", "/work/", "/work/*", "/work/**", "*/*.*", "home", "a*", "/var/tmp", "tmp"],
)
def test_a_pattern_that_closes_the_places_where_work_is_done_is_none(pattern: str) -> None:
    """What lies below a folder that matches is protected too: nothing at all could be written there."""
    assert paths.check_pattern(pattern)


@pytest.mark.parametrize("pattern", ["*e*", "*a*", "*t*", "work/*", "*/*"])
def test_a_pattern_that_matches_a_good_part_of_all_names_is_none_and_says_which(pattern: str) -> None:
    assert paths.check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["*.py", "*.md", "src", "conf?", "deploy/*.json", "*.crypt", "/work/src/**", "**/prod", "*.js*", "Makefile"],
)
def test_a_pattern_of_some_names_is_one(pattern: str) -> None:
    assert paths.check_pattern(pattern) is None


@pytest.mark.parametrize("content", [
    HEADER, f"\n\n# mine\n// of 2026\n{HEADER}\nabc", f"\ufeff  {HEADER}", "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n",
    "-----BEGIN " + "PRIVATE KEY-----", "-----BEGIN ENCRYPTED " + "PRIVATE KEY-----", "PuTTY-User-Key-File-3: ssh-rsa",
    "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----", "AGE-SECRET-KEY-1QQQ", f"\r\n\r\n{HEADER}",
])  # fmt: skip
def test_a_private_key_is_known_by_what_it_says(content: str) -> None:
    assert holds_key("notes.txt", content.encode())


@pytest.mark.parametrize("content", [
    f'KEY = "{HEADER}"', f"def f():\n{HEADER}", "-----BEGIN CERTIFICATE-----", f"x {HEADER}", "", "# only a comment\n",
    "-----BEGIN PUBLIC KEY-----\n",
])  # fmt: skip
def test_what_only_speaks_of_a_key_is_none(content: str) -> None:
    assert not holds_key("notes.py", content.encode())


@pytest.mark.parametrize("name", ["cert.pem", "a.CRT", "a.cer", "cert.pem. "])
def test_a_certificate_may_carry_its_key_anywhere(name: str) -> None:
    assert holds_key(name, f"-----BEGIN CERTIFICATE-----\nx\n{HEADER}\ny".encode())
    assert not holds_key(name, f'-----BEGIN CERTIFICATE-----\nx = "{HEADER}"'.encode())


@given(st.binary(max_size=300), st.lists(st.integers(0, 400), max_size=6), st.sampled_from(["cert.pem", "a.txt"]))
def test_in_pieces_it_is_found_as_it_is_whole(before: bytes, cuts: list[int], name: str) -> None:
    content = before + b"\n" + HEADER.encode() + b"\nabc"
    watch, start = Content(name), 0
    for cut in [*sorted(cuts), len(content)]:
        watch.feed(content[start:cut])
        start = max(start, cut)
    assert watch.found == holds_key(name, content)


def test_the_runner_carries_the_same_bytes() -> None:
    theirs = ROOT / "sandboxes" / "runner" / "paths.py"
    assert theirs.read_bytes() == (ROOT / "approvals" / "paths.py").read_bytes(), "copy approvals/paths.py there"


def protected_cases() -> list[dict[str, Any]]:
    """Those that names, real paths and contents decide; the others are commands' and links', in gvisor/test_sealing."""
    cases = [json.loads(line) for line in CASES.read_text().splitlines()]
    return [
        case
        for case in cases
        if case["kind"] == "protected" and case["call"]["op"] in ("edit", "create") and "hardlinks" not in case["setup"]
    ]


def links_of(case: dict[str, Any]) -> dict[str, str]:
    found = dict(case["setup"].get("symlinks", {}))
    for step in case["call"].get("between", ()):
        found.update(step.get("symlink", {}))
    return found


def real_path(path: str, links: dict[str, str]) -> str:
    for link, target in links.items():
        at = f"{WORK}/{link}"
        if path == at or path.startswith(at + "/"):
            return posixpath.normpath(f"{WORK}/{target}{path[len(at) :]}")
    return path


@pytest.mark.parametrize("case", protected_cases(), ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    call, files = case["call"], case["setup"]["files"]
    asked = posixpath.normpath(posixpath.join(WORK, call["path"].replace("{root}", WORK)))
    real = real_path(asked, links_of(case))
    texts = (files.get(real.removeprefix(WORK + "/"), ""), call.get("content", ""))
    refused = bool(protected([asked, real])) or any(holds_key(real, text.encode()) for text in texts)
    assert refused == (case["expect"]["result"] == "refused")
