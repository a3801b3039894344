"""Any module of the engine may be the first that a process imports: a circle fails in some orders only."""

import subprocess
import sys

from lib.place import CHECKOUT

EACH_BY_ITSELF = """
import os, sys, django
django.setup()
for name in sys.argv[1:]:
    if os.fork() == 0:
        try:
            __import__(name)
        except BaseException as error:
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
        os._exit(0)
    os.wait()
"""


def test_every_module_can_be_the_first_one_imported():
    names = [f"sandboxes.{path.stem}" for path in sorted((CHECKOUT / "sandboxes").glob("[a-z]*.py"))]
    assert len(names) > 40
    command = [sys.executable, "-c", EACH_BY_ITSELF, *names]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=170)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
