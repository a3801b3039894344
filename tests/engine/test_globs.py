"""Patterns for names of files: what they mean, and that none of them takes long."""

import fnmatch
import re
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.runner.globs import ALTERNATIVES, BadPattern, Globs, alternatives, translated


@given(st.text("ab.*?[]!-", max_size=10), st.text("ab.[]!-", min_size=1, max_size=10))
def test_within_a_name_a_pattern_means_what_a_shell_takes_it_for(pattern, name):
    assert bool(re.fullmatch(translated(pattern), name)) == fnmatch.fnmatchcase(name, pattern)


@given(st.text("ab*?[]!^-\\{},/", min_size=1, max_size=30), st.text("ab/", min_size=1, max_size=12))
def test_any_text_is_a_pattern_or_is_refused(pattern, path):
    with suppress(BadPattern):
        assert Globs(pattern).matches(path) in (True, False)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "deep/in/a.py", True), ("a?c", "x/abc", True), ("*", ".hidden", True),
        ("./*.py", "a.py", True), ("./*.py", "d/a.py", False),
        ("s/*.py", "s/t/a.py", False), ("s/**", "s", False), ("s/**", "s/t/u", True), ("**", "s/t/u", True),
        ("**/a", "a", True), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True), ("a/**/b", "ab", False),
        ("**/a/**/b/c", "a/b/a/x/b/c", True), ("**/a/*/c", "a/b/a/x/b/c", False),
        ("{src,lib}/**/*.{py,pyi}", "lib/x/a.pyi", True), ("{src,lib}/**/*.{py,pyi}", "bin/a.py", False),
        ("*.{t{s,sx},js}", "a.tsx", True), ("a{,.bak}", "a", True), ("[a,b]{c,d}", ",d", True),
        ("\\{a\\}", "{a}", True), ("\\*", "x", False), ("\\*", "*", True), ("[!a]*", "bc", True),
        ("[^a]*", "ab", False), ("[a-c]x", "bx", True), ("[c-a]x", "bx", False), ("[]]", "]", True), ("[a", "[a", True),
        ("a\\", "a\\", True),        ("ü?", "üß", True), ("a\n*", "a\nb", True), ("*", "two\nlines", True),
    ],
)  # fmt: skip
def test_what_matches(pattern, path, matches):
    assert Globs(pattern).matches(path) is matches


@pytest.mark.parametrize(
    "pattern", ["", "/", "/work/*.py", "../*.py", "a/../b", "{a", "{a,{b}", "a\0", "x" * 1001, "a/b/", "{a,b/}"]
)
def test_what_is_no_pattern_here_is_refused_and_never_silently_empty(pattern):
    with pytest.raises(BadPattern):
        Globs(pattern)


def test_braces_that_stand_for_too_many_patterns_are_refused_at_once():
    with pytest.raises(BadPattern, match=str(ALTERNATIVES)):
        alternatives("{a,b}" * 60)
    assert len(alternatives("{a,b}" * 7)) == 128


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("a*" * 300 + "b", "a" * 4000),
        ("*a" * 300 + "b", "a" * 4000),
        ("?*" * 300 + "b", "a" * 4000),
        ("**/a/" * 150 + "b", "a/" * 1500 + "a"),
        ("**/*a*/" * 100 + "b", "aa/" * 1300 + "a"),
    ],
)
def test_no_pattern_takes_longer_than_its_length_times_the_paths(pattern, path):
    began = time.monotonic()
    assert not Globs(pattern).matches(path)
    assert time.monotonic() - began < 20  # a tenth of a second; any backtracking would take years
