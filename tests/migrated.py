"""A database as a first start finds it after migrating, with nobody in it: migrating takes longer than the rest of a
start, and tests make dozens of consoles. The first of them that migrates by itself is in tests/server/test_up.py."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


@cache
def _file() -> Path:
    var = Path(os.environ["SANDGATE_VAR"], "migrated")  # of this test process alone (tests/own_state.py)
    var.mkdir(mode=0o700)
    env = {**os.environ, "SANDGATE_VAR": str(var)}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0", "--no-input"], cwd=CHECKOUT, env=env, check=True)
    return var / "db.sqlite3"


def copy(var: Path) -> None:
    """Into a state directory that has no database yet."""
    if not (var / "db.sqlite3").exists():
        shutil.copy(_file(), var)
