"""The collected cases of `glob`, on this machine's files: the walk and the patterns are the runner's own."""

import io
import tarfile
import time

import pytest

from sandboxes.runner.globs import Globs
from sandboxes.runner.walking import Tree
from tests import search_cases


@pytest.mark.parametrize("case", search_cases.cases("glob"), ids=lambda case: case["id"])
def test_case(tmp_path, case):
    with tarfile.open(fileobj=io.BytesIO(search_cases.packed([case]))) as tar:
        tar.extractall(tmp_path, filter="fully_trusted")
    top, until = str(tmp_path / case["id"]), time.monotonic() + case["expect"].get("max_seconds", 60)
    tree = Tree(
        top, Globs(case["call"]["pattern"]).matches, base=top, ignores=True, until=until, wanted=lambda: True
    )  # fmt: skip
    search_cases.check_paths(case["expect"], [found.path for found in tree.files()], truncated=tree.is_cut)
