"""A plugin that pytest loads before Django's settings are read: tests have a state directory of their own. The engine
that `bin/` brought up for SANDGATE_VAR is only used by tests that ask for it (tests/gvisor/engines.py)."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

given = os.environ.get("SANDGATE_VAR")
if given and (Path(given) / "engine.json").exists():
    os.environ.setdefault("SANDGATE_ENGINE_VAR", given)
os.environ["SANDGATE_VAR"] = tempfile.mkdtemp(prefix="sandgate-test-")
atexit.register(shutil.rmtree, os.environ["SANDGATE_VAR"], ignore_errors=True)
