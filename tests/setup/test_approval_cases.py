"""The table of a reviewer's faults cannot rot either."""

import pytest

from tests import approval_cases
from tests.cases import Case, cases
from tests.setup.test_cases import written_in

CASES = list(cases(approval_cases.TABLE))
IDS = (1, 2, 4, 5, 6, 7, 8, 10, 12, 13, 15, 16, 18, 31, 39, 40, 42, 47, 52, 55, 70, 72, 73, 82, 84)


def test_every_case_is_there_once_in_order() -> None:
    assert [case.id for case in CASES] == [f"P{number}" for number in IDS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_each_has_tests_that_exist(case: Case) -> None:
    assert case.tests
    for named in case.tests:
        file, _, name = named.partition("::")
        assert name in written_in(file), f"{named} is not there"
