"""What .gitignore leaves out of a search is what git itself leaves out; and the walk is in order and bounded."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxes.runner import walking
from sandboxes.runner.globs import Globs
from sandboxes.runner.ignoring import RULES_BYTES, Rules
from sandboxes.runner.walking import Tree

NAMES = st.sampled_from(["a", "b", "ab", "a.py", "b.py", ".x", "build", "a b", "#a", "!b"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(["a", "b", "*", "?", "**", "/", "/", "[ab]", ".py", ".x", "build", "\\", " ", "#", "!", "x"])
RULE = st.lists(PIECES, min_size=1, max_size=5).map("".join)
RULES = st.lists(st.tuples(st.sampled_from(["", "", "!"]), RULE, st.sampled_from(["", "", "/"])), max_size=5).map(
    lambda rules: "\n".join("".join(rule) for rule in rules) + "\n"
)


def tree(top, *, pattern: str = "*", base=None, ignores: bool = True, wanted=lambda: True) -> Tree:
    until = time.monotonic() + 20
    return Tree(str(top), Globs(pattern).matches, base=str(base or top), ignores=ignores, until=until, wanted=wanted)


def names(top, **how) -> list[str]:
    return [found.path for found in tree(top, **how).files()]


def put(top: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = top / name
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def git(*words: str, top: Path, repository: Path) -> bytes:
    env = {"PATH": os.environ["PATH"], "HOME": str(repository), "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": str(repository)}
    return subprocess.run(["git", *words], cwd=top, env=env, check=True, capture_output=True).stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    place = tmp_path_factory.mktemp("repository")
    git("init", "-q", top=place, repository=place / "git")
    return place / "git"


@settings(max_examples=100, deadline=None)
@given(st.lists(PATHS, min_size=1, max_size=12), RULES, st.sampled_from(["a", "build", "b"]), RULES)
def test_git_leaves_out_the_same(repository, paths, rules, folder, deeper):
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        put(top, dict.fromkeys(paths, "") | {".gitignore": rules, f"{folder}/.gitignore": deeper})
        seen = git("--work-tree=.", "ls-files", "--others", "--exclude-standard", "-z", top=top, repository=repository)
        assert set(names(top)) == {os.fsdecode(name) for name in seen.split(b"\0") if name}


@pytest.mark.parametrize(
    ("rules", "path", "is_dir", "verdict"),
    [
        ("dist/", "dist", True, True), ("dist/", "dist", False, None), ("/dist", "a/dist", False, None),
        ("*.log\n!keep.log", "keep.log", False, False), ("!keep.log\n*.log", "keep.log", False, True),
        ("a/**", "a", True, None), ("a/**", "a/b", False, True), ("**/x", "a/b/x", False, True),
        ("# a comment", "# a comment", False, None), ("\\#a", "#a", False, True), ("a \r\n", "a", False, True),
        ("a\\ ", "a ", False, True), ("{a,b}", "a", False, None), ("\udcff", "\udcff", False, True),
    ],
)  # fmt: skip
def test_rules(rules, path, is_dir, verdict):
    assert Rules(rules).verdict(path.split("/"), is_dir=is_dir) is verdict


def test_what_is_left_out_is_counted_a_directory_once(tmp_path):
    files = {".gitignore": "node_modules/\n*.log\n", "a.py": "", "x.log": "", "y.log": "", "node_modules/m/i.py": ""}
    put(tmp_path, files)
    walk = tree(tmp_path, pattern="*.py")
    assert [found.path for found in walk.files()] == ["a.py"]
    assert (walk.left_out, walk.left_out_first) == (1, ["node_modules/"])
    walk = tree(tmp_path)
    assert len(list(walk.files())) == 2
    assert (walk.left_out, walk.left_out_first) == (3, ["node_modules/", "x.log", "y.log"])
    assert "node_modules/m/i.py" in names(tmp_path, ignores=False)


def test_rules_from_above_count_and_a_directory_that_is_named_is_searched(tmp_path):
    put(tmp_path, {".gitignore": "dist/\n/src/gen\n", "dist/a.js": "", "src/gen/a": "", "src/b": "", "src/dist/c": ""})
    assert names(tmp_path / "src", base=tmp_path) == ["b"]
    assert names(tmp_path / "dist", base=tmp_path) == ["a.js"]
    assert names(tmp_path / "src") == ["b", "dist/c", "gen/a"]


def test_the_order_is_of_names_part_by_part_and_git_is_never_seen(tmp_path):
    put(tmp_path, dict.fromkeys(["b", "a/z", "a-b", "a.b", "B", ".git/x", "s/.git", "é", "a/.h"], ""))
    assert names(tmp_path, ignores=False) == ["B", "a/.h", "a/z", "a-b", "a.b", "b", "é"]


def test_links_are_named_and_not_followed_pipes_are_not_named(tmp_path):
    put(tmp_path, {"d/a.py": ""})
    (tmp_path / "d/up").symlink_to("..")
    (tmp_path / "broken").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    found = [(found.path, found.is_file) for found in tree(tmp_path).files()]
    assert found == [("broken", False), ("d/a.py", True), ("d/up", False)]


def test_a_gitignore_that_is_no_file_or_far_too_long_breaks_nothing(tmp_path):
    put(tmp_path, {"a": "", "d/b": ""})
    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / "d/.gitignore").write_text("x\n" * RULES_BYTES + "b\n")
    assert names(tmp_path) == ["a", "d/.gitignore", "d/b"]


def test_a_tree_deeper_than_pythons_stack_is_walked(tmp_path):
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    try:
        assert [len(name) for name in names(tmp_path)] == [2401]
    finally:
        subprocess.run(["rm", "-r", tmp_path / "d"], check=True)  # pytest's own cleaning is not made for this


def test_who_leaves_is_not_walked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(walking, "LOOK_EACH", 8)
    put(tmp_path, {f"d{n}/f": "" for n in range(40)})
    asked: list[int] = []
    walk = tree(tmp_path, wanted=lambda: asked.append(1) or len(asked) < 3)
    assert len(list(walk.files())) < 20
    assert walk.is_cut


def test_a_directory_with_more_names_than_are_looked_at_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(walking, "NAMES", 10)
    put(tmp_path, {f"f{n}": "" for n in range(11)})
    walk = tree(tmp_path)
    assert len(list(walk.files())) == 10
    assert walk.is_cut
