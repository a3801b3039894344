"""A database as a first start finds it after migrating, with nobody in it: migrating takes longer than the rest of a
start, and tests make dozens of consoles. The first of them that migrates by itself is in tests/server/test_up.py."""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


@cache
def _state() -> tempfile.TemporaryDirectory[str]:
    """Gone with this process: a bench is run again and again on the same SANDGATE_VAR."""
    made = tempfile.TemporaryDirectory(prefix="migrated-", dir=os.environ["SANDGATE_VAR"])
    env = {**os.environ, "SANDGATE_VAR": made.name}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0", "--no-input"], cwd=CHECKOUT, env=env, check=True)
    return made


def copy(var: Path) -> None:
    """Into a state directory that has no database yet."""
    if not (var / "db.sqlite3").exists():
        shutil.copy(Path(_state().name, "db.sqlite3"), var)
