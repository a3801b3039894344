"""What tree-sitter's grammar of bash says a plain line runs.

An allow-list: a kind of node that is not named here means that the line is not plain. Must never see a line that
`plain` has not passed: the grammar's scanner is C, and agents write the lines.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from threading import local

import tree_sitter
import tree_sitter_bash

from .plain import Commands, NotPlain, value

_PARTS = frozenset("word number raw_string string concatenation".split())
_INSIDE = _PARTS | {"string_content", '"'}
_JOINS = frozenset(("&&", "||", "|", ";", "\n"))
_SEQUENCES = frozenset("program list pipeline".split())
_own = local()  # a parser is not to be used by two threads at once


@cache
def _language() -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_bash.language())


def _parser() -> tree_sitter.Parser:
    if not hasattr(_own, "parser"):
        _own.parser = tree_sitter.Parser(_language())
    parser: tree_sitter.Parser = _own.parser
    return parser


def commands(line: str, ends: Iterable[int] = (), blanks: Iterable[int] = ()) -> Commands:
    """`ends` and `blanks` as `plain` found them. They are set as `;` and as blanks, because the grammar (0.25.1) takes
    the end of `a | b | c` for a blank when the next line has `&&`. Raises NotPlain."""
    letters = list(line)
    for at in ends:
        letters[at] = ";"
    for at in blanks:
        letters[at] = " "
    line = "".join(letters)
    root = _parser().parse(line.encode("ascii")).root_node
    if root.has_error:
        raise NotPlain("It could not be read as a command line.")
    found, join = Commands(), ""
    for kind, node in _flat(root):
        if kind != "command":
            join = ";" if kind == "\n" else kind
            continue
        if found.argvs:
            found.joins.append(join or ";")
        found.argvs.append(_argv(node, line))
        join = ""
    return found


def _flat(node: tree_sitter.Node) -> Iterator[tuple[str, tree_sitter.Node]]:
    """Commands and what joins them, in the order of the text. Nesting is bounded by the number of operators."""
    for child in node.children:
        if child.type in _SEQUENCES:
            yield from _flat(child)
        elif child.type == "redirected_statement":
            yield from _redirected(child)
        elif child.type in _JOINS or child.type == "command":
            yield child.type, child
        else:
            raise _unknown(child)


def _redirected(node: tree_sitter.Node) -> Iterator[tuple[str, tree_sitter.Node]]:
    body = node.child_by_field_name("body")
    for child in node.children:
        if child == body:
            continue
        if child.type != "file_redirect" or [part.type for part in child.children if part.is_named] not in (
            ["file_descriptor", "number"],
            ["number"],
        ):
            raise _unknown(child)
    if body is None:
        raise _unknown(node)
    yield from [("command", body)] if body.type == "command" else _flat(body)


def _argv(node: tree_sitter.Node, line: str) -> tuple[str, ...]:
    words = []
    for child in node.children:
        word = child.children[0] if child.type == "command_name" and len(child.children) == 1 else child
        if word.type == "file_redirect":
            continue
        _check(word)
        words.append(value(line[word.start_byte : word.end_byte]))
    return tuple(words)


def _check(word: tree_sitter.Node) -> None:
    if word.type not in _PARTS:
        raise _unknown(word)
    inside = list(word.children)
    while inside:
        node = inside.pop()
        if node.type not in _INSIDE:
            raise _unknown(node)
        inside += node.children


def _unknown(node: tree_sitter.Node) -> NotPlain:
    return NotPlain(f"It uses more of the shell than plain commands ({node.type.replace('_', ' ')}).")
