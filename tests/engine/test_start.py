"""What a sandbox loads before it answers, and from where: the kit as it is packed, unpacked on this machine, started by
its own START, and greeted. Only the mounts and the keepers are left out, which are a sandbox's."""

import io
import json
import marshal
import os
import subprocess
import sys
import tarfile

import pytest

from sandboxes.engine import kit
from sandboxes.runner import frames, start

FLAGS = ("-I", "-S", "-B")
HEAVY = {
    "ast", "base64", "copy", "dataclasses", "difflib", "dis", "hashlib", "inspect", "linecache", "platform", "random",
    "shutil", "subprocess", "tempfile", "tokenize", "traceback", "typing", "unicodedata", "warnings",
}  # fmt: skip
LATER = {f"runner.{name}" for name in ("batches", "copying", "editing", "edits", "finding", "listing", "searching")}
GREETED = """
import os, sys
start.take_bundle()
from runner import guarding, runner
def tell(code):
    files = {name: str(getattr(module, "__file__", None)) for name, module in sys.modules.items()}
    os.write(2, runner.frames.json.dumps(files).encode())
    leave(code)
leave, os._exit = os._exit, tell
runner.Runner("keeper", "boot", {"processes": "1", "open_files": "1"}, guarding.Guard()).loop.run()
"""
ALL = """
import json, sys
start.take_bundle()
kinds = {}
for name in json.loads(sys.argv[1]):
    module = __import__(name, fromlist=["_"])
    kinds[name] = sorted(each for each in vars(module) if each not in ("__file__", "__cached__"))
print(json.dumps(kinds))
"""


@pytest.fixture
def unpacked(tmp_path):
    (tmp_path / "binary").write_bytes(b"no keeper")
    with tarfile.open(fileobj=io.BytesIO(kit.pack(tmp_path / "binary"))) as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path


def started(folder, code, *words, **more):
    begins = kit.START[kit.START.index("-c") + 1].replace(kit.MOUNTED_AT, str(folder))
    command = [sys.executable, *FLAGS, "-c", begins.removesuffix("start.main()") + code, *words]
    return subprocess.run(command, capture_output=True, check=True, timeout=60, **more)


def greeted(folder):
    """What it answers to a hello, and the files of the modules it had loaded by then."""
    tag, marker = os.urandom(frames.TAG_BYTES), os.urandom(frames.MARKER_BYTES)
    done = started(folder, GREETED, input=frames.pack_hello(tag, marker, {"version": frames.VERSION}))
    (welcome,) = frames.Parser(limit_bytes=frames.FROM_RUNNER_LIMIT, tag=tag).feed(done.stdout)
    return welcome, json.loads(done.stderr)


def bundled(folder):
    return marshal.loads((folder / start.bundle_name()).read_bytes())


def test_a_sandbox_answers_before_it_has_loaded_what_answering_does_not_need(unpacked):
    welcome, loaded = greeted(unpacked)
    assert (welcome.kind, welcome.message()["boot"]) == (frames.WELCOME, "boot")
    assert HEAVY & loaded.keys() == set()
    assert LATER & loaded.keys() == set()


def test_its_modules_come_out_of_the_bundle_and_not_out_of_files(unpacked):
    for path in (unpacked / "runner").glob("*.py"):
        path.unlink()
    welcome, loaded = greeted(unpacked)
    assert welcome.kind == frames.WELCOME
    assert {name: file for name, file in loaded.items() if name.startswith("runner") and file != "None"} == {}


def test_another_python_goes_by_the_sources(unpacked):
    (unpacked / start.bundle_name()).rename(unpacked / "runner.cpython-399")
    welcome, loaded = greeted(unpacked)
    assert welcome.kind == frames.WELCOME
    assert loaded["runner.runner"] == str(unpacked / "runner" / "runner.py")


def test_bundle_and_sources_define_the_same(unpacked):
    names = sorted(bundled(unpacked))
    files = {path.stem for path in (unpacked / "runner").glob("*.py")} - {"__init__"}
    assert set(names) == {"runner"} | {f"runner.{name}" for name in files}
    by_bundle = json.loads(started(unpacked, ALL, json.dumps(names)).stdout)
    (unpacked / start.bundle_name()).unlink()
    assert json.loads(started(unpacked, ALL, json.dumps(names)).stdout) == by_bundle


def test_a_fault_names_the_source_that_lies_in_the_sandbox(unpacked):
    for name, code in bundled(unpacked).items():
        path = name.replace(".", "/") + ("/__init__.py" if name == start.PACKAGE else ".py")
        assert marshal.loads(code).co_filename == f"{kit.MOUNTED_AT}/{path}"
        assert (unpacked / path).is_file()
