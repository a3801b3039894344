"""The end of a search: it looks around matches in long lines only for somebody, and not long after its time."""

import time
from types import SimpleNamespace

import pytest

from sandboxes.runner import around, ripgrep
from sandboxes.runner.ripgrep import Hit
from sandboxes.runner.searching import LOOKS_S, Search
from tests.engine.on_host import OnHost

ASKED = {
    "path": "/", "base": "/", "glob": None, "offset": 0, "limit": 10, "include_ignored": True, "pattern": "x",
    "literal": True, "ignore_case": False, "context": 0, "mode": "lines",
}  # fmt: skip


@pytest.fixture
def search(monkeypatch):
    """With three matches in long lines; `looked`: around which of them."""
    monkeypatch.setattr(ripgrep, "found", lambda: None)
    made = Search(OnHost(), 1, ASKED)
    made._top, made._until, made.looked = "/", time.monotonic() + 60, []
    made._tree = SimpleNamespace(is_cut=False, left_out=0, left_out_first=[], unreadable=0)
    made._upcoming = []
    for number in range(3):
        hit = Hit(number, 1, "…x…")
        hit.place = (0, 0, 1)
        made._entries.append(("a", hit, 1))
    monkeypatch.setattr(around, "look", lambda _, hit: made.looked.append(hit.line))
    monkeypatch.setattr(made, "tell", lambda answer: setattr(made, "told", answer))
    return made


def test_all_are_looked_at_for_who_waits_in_time(search):
    search._finish()
    assert (search.looked, search.told["incomplete"], len(search.told["matches"])) == ([0, 1, 2], False, 3)


def test_none_is_looked_at_when_the_caller_has_left(search):
    search.ref = None
    search._finish()
    assert search.looked == []


def test_long_after_its_time_what_is_known_is_told_without_a_look(search):
    search._until = time.monotonic() - LOOKS_S
    search._finish()
    assert (search.looked, search.told["incomplete"], len(search.told["matches"])) == ([], True, 3)


def test_who_leaves_meanwhile_or_a_time_that_runs_out_ends_the_looking_and_not_the_answer(search, monkeypatch):
    def look(_, hit):
        search.looked.append(hit.line)
        search._until = time.monotonic() - LOOKS_S

    monkeypatch.setattr(around, "look", look)
    search._finish()
    assert (search.looked, search.told["incomplete"], len(search.told["matches"])) == ([0], False, 3)
