"""Which database an instance uses: a SQLite file in its state directory, or the PostgreSQL that SANDGATE_DATABASE_URL
names. Standard library only; read by settings alone.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from console.state import Unusable

URL = "SANDGATE_DATABASE_URL"
EXAMPLE = "postgresql://user:password@host:5432/name?sslmode=require"
SCHEMES = ("postgresql", "postgres")


def of(var: Path, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Django's settings of the one database."""
    url = environ.get(URL, "").strip()
    return _postgresql(url) if url else _sqlite(var)


def _sqlite(var: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": var / "db.sqlite3",
        "CONN_MAX_AGE": None,  # one handle per database thread, kept: opening one costs more than most queries
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        # A file, never memory: the database threads each have a handle of their own.
        "TEST": {"NAME": var / "test.sqlite3"},
    }


def _postgresql(url: str) -> dict[str, Any]:
    """What stands after `?` goes to libpq as it is: `sslmode`, `host` for a socket's folder, and so on."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _unusable() from error
    name = unquote(parts.path.lstrip("/"))
    if parts.scheme not in SCHEMES or not name:
        raise _unusable()
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": str(port or ""),
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,  # its server may have been started anew
        "OPTIONS": options,
    }


def _unusable() -> Unusable:
    """Without the address itself: there is a password in it, and this is printed."""
    return Unusable(f"{URL} is no address of a PostgreSQL database; it is like {EXAMPLE}. Leave it out for SQLite.")


def writers(settings: Mapping[str, Any]) -> int:
    """SQLite has one writer, and its own queue is unfair. PostgreSQL's wait for each other by workspace only."""
    return 1 if settings["ENGINE"].endswith("sqlite3") else 4
