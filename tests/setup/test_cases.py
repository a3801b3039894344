"""The table of known faults cannot rot: each case names tests that exist, or says why it cannot occur here."""

import ast
from functools import cache

import pytest

from lib.place import CHECKOUT
from tests.cases import Case, cases

CASES = list(cases())
IDS = {
    "A": (2, 3, 5, 6, 10, 11, 12, 14, 17, 18, 19),
    "B": (1, 3, 4, 5, 7, 8, 9, 10, 11, 12),
    "C": (1, 2, 3, 5, 6, 8, 9, 10, 11, 13, 17, 19),
    "D": (1, 2, 3, 6, 7, 10, 12, 13, 16, 18, 19, 23, 24, 25, 26, 27),
    "E": (2, 3, 4, 6, 7, 8, 10, 11, 12, 13, 14, 16, 18, 21),
    "F": (1, 2, 4, 6, 8, 9, 10, 12, 13, 14, 17),
    "G": (1, 2, 4, 7),
}


@cache
def written_in(file: str) -> frozenset[str]:
    """Names of the tests that stand in a file; none when there is no such file."""
    path = CHECKOUT / "tests" / f"{file}.py"
    if not path.exists():
        return frozenset()
    found = ast.walk(ast.parse(path.read_text()))
    return frozenset(each.name for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_case_is_there_once_in_order() -> None:
    assert [case.id for case in CASES] == [f"{letter}{number}" for letter, numbers in IDS.items() for number in numbers]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_each_has_tests_that_exist_or_a_reason(case: Case) -> None:
    assert bool(case.tests) is not bool(case.not_here), "either tests or a reason"
    assert case.holds
    for named in case.tests:
        file, _, name = named.partition("::")
        assert name.startswith("test_"), named
        assert name in written_in(file), f"{named} is not there"


def test_a_test_that_is_not_there_would_be_found() -> None:
    assert written_in("setup/test_cases") >= {"test_every_case_is_there_once_in_order"}
    assert written_in("setup/no_such_file") == frozenset()
