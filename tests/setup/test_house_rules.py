"""House rules that no linter knows: sizes, names, opening words, and what may go into a sandbox."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.place import CHECKOUT

AREAS = ("console", "approvals", "sandboxes", "bin", "tests", "examples")
FILE_LINES, FUNCTION_LINES = 400, 40
FORBIDDEN_NAMES = {"utils", "helpers", "common"}
RUNNER = CHECKOUT / "sandboxes/runner"


def modules(*areas: str) -> list[Path]:
    found = (path for area in areas for path in (CHECKOUT / area).rglob("*.py"))
    return sorted(path for path in found if "migrations" not in path.parts)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_there_is_something_to_judge() -> None:
    assert len(modules(*AREAS)) > 50


def test_no_file_is_too_long_to_read_at_once() -> None:
    lengths = {str(path): len(path.read_text().splitlines()) for path in modules(*AREAS)}
    assert {path: lines for path, lines in lengths.items() if lines > FILE_LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = {}
    for path in modules("console", "approvals", "sandboxes", "bin"):
        for function in functions(ast.parse(path.read_text())):
            lines = (function.end_lineno or 0) - function.lineno + 1
            if lines > FUNCTION_LINES:
                long[f"{path}:{function.lineno} {function.name}"] = lines
    assert long == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [path for path in modules(*AREAS) if FORBIDDEN_NAMES & set(path.with_suffix("").parts)] == []


def test_every_module_says_what_it_owns() -> None:
    silent = [
        path
        for path in modules("console", "approvals", "sandboxes", "bin", "examples")
        if path.name != "apps.py" and path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


@pytest.mark.parametrize("path", modules("sandboxes/runner"), ids=lambda path: path.name)
def test_what_goes_into_a_sandbox_imports_the_standard_library_only(path: Path) -> None:
    beside = {other.stem for other in RUNNER.glob("*.py")}  # the runner's own parts lie beside each other in there
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        for name in names:
            top = name.split(".")[0]
            assert top in sys.stdlib_module_names or top in beside, f"{path.name} imports {name}"
