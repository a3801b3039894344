"""Which files are protected: they may be read, and no tool writes, replaces, moves or deletes them.

Owns the patterns and the one way to compare names. Pure, standard library only: the runner inside a sandbox carries the
same bytes as `sandboxes/runner/paths.py`. Must never touch a disk; links are resolved by whoever asks, who asks for the
path as given and for the real one.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

PATTERN_BYTES = 200
PLACES = ("/work", "/home/agent", "/tmp", "/var/tmp")
ORDINARY = (
    "README.md", "main.py", "package.json", "index.html", "Makefile", "data.csv", "notes.txt", "app.js", "go.mod",
    "Dockerfile", "src", "tests",
)  # fmt: skip
ORDINARY_MOST = 3
"""A pattern of an agent's own matches none of PLACES, and fewer of these names there than that."""
HEAD_BYTES = 64 << 10
"""Of a file's beginning: a key whose header comes later, behind nothing but comments, is not found."""
_TAIL_BYTES = 160
_MODEL = r"(?:example|sample|template|dist)"
_DATA = r"\.(?:ya?ml|json|toml|ini|cfg|conf|properties|env|txt|csv|xml)"
_BACKUP = r"(?:~|\.(?:bak|backup|old|orig|save|copy|tmp|swp|[0-9]+))*"
_KIND = r"(?:rsa|dsa|ecdsa|ed25519|[a-z0-9]+_sk)"
_PUBLIC_STEM = r"(?:.*(?:public|certs?|certificate|cacert|ca-bundle|chain|dhparam)|(?:.*[^a-z0-9])?(?:pub|ca))"
_STORES = "p12|pfx|jks|jceks|bks|keystore|ppk|p8|pkcs8|kdb|kdbx|keytab|agekey"
_LOGINS = (
    r"\.netrc|_netrc|\.pgpass|pgpass\.conf|\.my\.cnf|\.mylogin\.cnf|\.git-credentials|\.pypirc|\.htpasswd"
    r"|\.vault-token|\.dockercfg|\.s3cfg|\.boto|\.terraformrc"
)
_NAMES = (
    ("environment file", r"\.env(?:[^a-z0-9].*)?|.*\.env|\.envrc.*", rf".*[._-]{_MODEL}|example\.env"),
    ("SSH key", rf"id_{_KIND}(?:[^a-z.][^.]*)?{_BACKUP}|.+_(?:rsa|ed25519){_BACKUP}", r".*\.pub"),
    ("SSH key", rf"ssh_host_.*_key{_BACKUP}", r".*\.pub"),
    ("private key", r".*\.pem", rf"{_PUBLIC_STEM}\.pem"),
    ("private key", r".*\.key", r"(?:.*[._-])?pub(?:lic)?\.key"),
    ("key store", rf".*\.(?:{_STORES})|secring\..*", r"\Z."),
    ("stored login", _LOGINS, r"\Z."),
    ("file of secrets", rf"\.?(?:secret|credential)s?(?:{_DATA})?|.+\.(?:secret|credential)s?{_DATA}", r"\Z."),
    ("file of secrets", r".*\.secret\.exs|http-client\.private\.env\.json", r"\Z."),
    ("cloud login", r".*service[-_]account.*\.json|client_secret.*\.json", rf".*[._-]{_MODEL}\.json"),
    ("cloud login", r"application_default_credentials\.json|kubeconfig|.*\.kubeconfig", r"\Z."),
    ("Terraform file of secrets", r".*\.tf(?:vars|state).*", rf".*[._-]{_MODEL}|.*\.tf"),
)
"""What it is, names that are it, and names of these that are not."""
_LIKELY = re.compile(
    r"env|rsa|dsa|ed25519|_sk|key|pem|secr|credential|netrc|pgpass|\.cnf|pypirc|htpasswd|vault|dockercfg|s3cfg|boto"
    rf"|terraformrc|service|kubeconfig|\.tf|\.(?:{_STORES})"
)
"""What each of them has somewhere in it. Asked first, since nearly no name has."""
_TREES = tuple(
    (tree, tuple(tree.split("/")))
    for tree in (
        ".ssh", ".gnupg", ".password-store", ".config/gcloud", ".config/sops/age", ".aws/credentials", ".aws/sso",
        ".aws/cli/cache", ".envs/.production", ".kube/config", ".docker/config.json", ".config/gh/hosts.yml",
        ".gem/credentials",
    )
)  # fmt: skip
_BEGINNINGS = frozenset([".cargo", *(tree[1][0] for tree in _TREES)])
_KEY_HEADER = (
    rb"(?:-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
    rb"|PuTTY-User-Key-File-[0-9]|AGE-SECRET-KEY-1)"
)
_FIRST = rb"(?:\xef\xbb\xbf)?(?:[ \t\f\v]*(?:(?:#|//|;)[^\r\n]*)?[\r\n])*[ \t\f\v]*" + _KEY_HEADER
_ANY_LINE = rb"[\r\n](?:\xef\xbb\xbf)?" + _KEY_HEADER
_CERTIFICATES = (".pem", ".crt", ".cer")


@lru_cache(maxsize=4096)
def fold(name: str) -> str:
    """One part of a path as names are compared: what looks the same or a careless tool takes for the same."""
    if name.isascii():
        return "".join(filter(str.isprintable, name)).casefold().rstrip(". ")
    from unicodedata import category, normalize  # a sandbox that starts does not wait for it

    name = normalize("NFKC", name)
    name = "".join(each for each in name if each.isprintable() or category(each) not in ("Cc", "Cf"))
    return normalize("NFKC", name.casefold()).rstrip(". \t\xa0")


def _parts(path: str) -> list[str]:
    """`..` is taken out as text: what it does behind a link, the real path tells. A part may fold into several."""
    normal = posixpath.normpath(path.replace("\0", ""))
    return [part for each in normal.split("/") if each for part in fold(each).split("/") if part]


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[str, re.Pattern[str], re.Pattern[str]]]:
    """Made when first asked for: a sandbox that starts does not wait for it."""
    return [(what, re.compile(rf"(?s:{yes})\Z"), re.compile(rf"(?s:{no})\Z")) for what, yes, no in _NAMES]


def check_name(name: str) -> str | None:
    """What a file of that name is, wherever it lies; None when it is not protected."""
    if name.isascii() and name.isprintable() and not _LIKELY.search(name.lower()):
        return None
    folded = fold(name)
    for what, yes, no in _patterns():
        if yes.match(folded) and not no.match(folded):
            return what
    return None


def tree_of(parts: Sequence[str]) -> str | None:
    """The protected tree or file that these folded parts lead to or into."""
    for tree, wanted in _TREES:
        if wanted[0] in parts:
            for at in range(len(parts) - len(wanted) + 1):
                if tuple(parts[at : at + len(wanted)]) == wanted:
                    return tree
    for parent, name in zip(parts, parts[1:], strict=False):
        if parent == ".cargo" and name.startswith("credentials"):
            return ".cargo/credentials"
    return None


class Protection:
    """The built-in patterns, `more` of an agent's own, and full paths that are `exempt` from all of them.

    A pattern without `/` is a name at any depth; with one it is the end of a path, or, beginning with `/`, a whole one.
    `*` and `?` stop at `/`, `**` does not. What lies below a folder that matches is protected too."""

    def __init__(self, more: tuple[str, ...] = (), exempt: frozenset[str] = frozenset()) -> None:
        self.more = more
        self.exempt = exempt
        self._compiled = tuple((pattern, _compile(pattern)) for pattern in more)

    def check(self, path: str) -> str | None:
        """What the file at `path` is, in words for a refusal; None when it may be written."""
        return None if self.exempts(path) else self.finds(path)

    def finds(self, path: str) -> str | None:
        """As `check`, whatever is exempt."""
        parts = _parts(path)
        if not parts:
            return None
        if what := check_name(parts[-1]):
            return what
        if tree := tree_of(parts):
            return f"file of {tree}"
        return self._own(parts)

    def exempts(self, path: str) -> bool:
        return bool(self.exempt) and posixpath.normpath(path) in self.exempt

    def matches(self, path: str) -> bool:
        """By the patterns of an agent's own."""
        return self._own(_parts(path)) is not None

    def _own(self, parts: Sequence[str]) -> str | None:
        for pattern, compiled in self._compiled:
            for upto in range(1, len(parts) + 1):
                if compiled.match("/" + "/".join(parts[:upto])):
                    return f"file that the agent's settings protect (`{pattern}`)"
        return None


BUILT_IN = Protection()


def check_pattern(pattern: str) -> str | None:
    """Why it cannot be one; None when it can. What matches the places where all work is done, or a good part of all
    names, would make a sandbox useless."""
    if not pattern or len(pattern.encode("utf-8", "replace")) > PATTERN_BYTES:
        return f"is a name such as *.secret, of at most {PATTERN_BYTES} bytes"
    from unicodedata import category

    if any(category(each) in ("Cc", "Cf", "Cs") for each in pattern):
        return "holds a control character"
    if ".." in pattern.split("/"):
        return "holds `..`"
    if not re.sub(r"[*?/.\s]", "", pattern):
        return "matches every name"
    own = Protection((pattern,))
    for place in PLACES:
        if own.matches(place):
            return f"matches {place} itself, so that nothing could be written in there: name what lies below it"
        if len(met := [name for name in ORDINARY if own.matches(f"{place}/{name}")]) >= ORDINARY_MOST:
            return f"matches too many ordinary names, such as {', '.join(met[:ORDINARY_MOST])}: say more of the name"
    return None


def _compile(pattern: str) -> re.Pattern[str]:
    words = [fold(word) for word in pattern.strip("/").split("/")]
    body = "/".join(_word(word) for word in words if word)
    return re.compile(rf"(?s:{'/' if pattern.startswith('/') else '(?:.*/)?'}{body})\Z")


def _word(word: str) -> str:
    if word == "**":
        return ".*"
    wild = {"*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(each) or re.escape(each) for each in re.sub(r"\*+", "*", word))


class Content:
    """Watches what a file holds, in pieces from its beginning: whether that is a private key, whatever its name."""

    def __init__(self, path: str) -> None:
        self.found = False
        self._any_line = fold(posixpath.basename(path)).endswith(_CERTIFICATES)
        self._head = bytearray()
        self._tail = b"\n"

    @property
    def is_decided(self) -> bool:
        """More of it could change nothing."""
        return self.found or (not self._any_line and len(self._head) >= HEAD_BYTES)

    def feed(self, data: bytes) -> bool:
        """Whether it is one, by what has come so far."""
        if not self.found and self._any_line:
            searched = self._tail + data
            self.found = bool(re.search(_ANY_LINE, searched))
            self._tail = searched[-_TAIL_BYTES:]
        if not self.found and len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
            self.found = bool(re.match(_FIRST, self._head))
        return self.found


def holds_key(path: str, content: bytes) -> bool:
    return Content(path).feed(content)


class Folder:
    """What is asked of each name in one folder, the folder's own part of it answered once."""

    def __init__(self, path: str, protection: Protection) -> None:
        self._path, self._protection = path, protection
        parts = _parts(path)
        special = protection.more or protection.exempt or any(each in _BEGINNINGS for each in parts)
        self._by_name = not special and tree_of(parts) is None

    def check(self, name: str) -> str | None:
        """As `Protection.check` of that name in this folder."""
        if not self._by_name:
            return self._protection.check(f"{self._path}/{name}")
        if name.startswith(".") and fold(name) in _BEGINNINGS:
            return self._protection.check(name)
        return check_name(name)


def protected(paths: Iterable[str], protection: Protection = BUILT_IN) -> tuple[str, str] | None:
    """The first of `paths` that is protected, and what it is."""
    for path in paths:
        if what := protection.check(path):
            return path, what
    return None
