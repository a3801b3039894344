"""One page of what was found: exactly at its caps it is whole, and the next begins where it ends."""

from hypothesis import given
from hypothesis import strategies as st

from sandboxes.runner.searches import ENTRY_BYTES, OFFSET_MOST, PAGE_BYTES, Page, shown


def page(names, offset: int = 0, limit: int = 100) -> tuple[list[str], dict]:
    found = Page(offset, limit)
    for name in names:
        found.put(name, name)
    return found.entries, found.told(at_least=False)


def test_exactly_at_the_cap_nothing_is_cut():
    assert page("abc", limit=3)[1] == {"found": 3, "at_least": False, "truncated": False, "next": None}
    assert page("abcd", limit=3)[1] == {"found": 4, "at_least": False, "truncated": True, "next": 3}


def test_exactly_at_the_bytes_nothing_is_cut():
    name = "x" * (PAGE_BYTES // 4 - ENTRY_BYTES)
    assert page([name] * 4)[1]["truncated"] is False
    entries, told = page([name] * 3 + [name + "y"])
    assert (len(entries), told["truncated"], told["next"]) == (3, True, 3)


def test_one_entry_larger_than_a_page_is_shown_all_the_same():
    entries, told = page(["x" * 2 * PAGE_BYTES, "y"])
    assert (len(entries), told["next"]) == (1, 1)


@given(st.lists(st.integers(1, PAGE_BYTES // 2), max_size=40), st.integers(1, 10))
def test_page_by_page_everything_comes_once(sizes, limit):
    names = [str(number).ljust(size, "x") for number, size in enumerate(sizes)]
    got, offset = [], 0
    while True:
        entries, told = page(names, offset, limit)
        got += entries
        if told["next"] is None:
            break
        offset = told["next"]
    assert got == names


def test_what_goes_on_beyond_the_last_offset_is_truncated_and_has_no_next():
    names = ["x"] * (OFFSET_MOST + 500)
    entries, told = page(names, OFFSET_MOST - 100, limit=100)
    assert (len(entries), told["truncated"], told["next"]) == (100, True, OFFSET_MOST)
    entries, told = page(names, OFFSET_MOST, limit=100)
    assert (len(entries), told["truncated"], told["next"]) == (100, True, None)


def test_an_offset_beyond_the_end_is_an_empty_page():
    assert page("abc", offset=7)[1] == {"found": 3, "at_least": False, "truncated": False, "next": None}


def test_paths_are_told_from_the_workspace_on_or_absolute():
    assert shown("/work/src", "/work", "a.py") == "src/a.py"
    assert shown("/work", "/work", "a.py") == "a.py"
    assert shown("/workshop", "/work", "a.py") == "/workshop/a.py"
    assert shown("/", "/work", "etc/x") == "/etc/x"
