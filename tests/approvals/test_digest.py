"""docs/digest.md and its vectors: what they say is what is computed, by their own words and by this program."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals import digest, payloads
from approvals.gate import Proposal
from console.workspaces.errors import Invalid
from console.workspaces.keys import Caller
from console.workspaces.models import Agent
from sandboxes.toolsets import named
from tests.approvals import digests

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "digest.md").read_text()
VECTORS = json.loads((DOCS / "digest-vectors.json").read_text())
ACTIONS = {vector["name"]: vector for vector in VECTORS["actions"]}
PARTS = ("workspace", "agent", "profile", "tool", "tool_version", "arguments", "bases", "script")
BYTES = {"write": "content", "stdin": "data"}  # what doors hand on as bytes

each = pytest.mark.parametrize("vector", VECTORS["actions"], ids=list(ACTIONS))


@each
def test_a_vector_follows_from_the_page_alone(vector) -> None:
    document = digests.document(vector)
    assert document["arguments"] == vector["arguments"]
    assert digests.canonical(document) == vector["canonical"]
    assert digests.sha256(vector["canonical"]) == vector["digest"]
    assert json.loads(vector["canonical"]) == document


@each
def test_this_program_computes_a_vector(vector) -> None:
    found = digest.canonical(**{part: vector[part] for part in PARTS})
    assert found.decode() == vector["canonical"]
    assert digest.digest(**{part: vector[part] for part in PARTS}) == vector["digest"]


@each
def test_a_call_of_a_vector_is_proposed_under_its_digest(vector) -> None:
    """From what is sent: each tool's own checks fill in what the page says."""
    module = named(vector["tool"], vector["tool_version"])
    agent = Agent(pk=vector["agent"]) if vector["agent"] else None
    caller = Caller("key_1", vector["workspace"], vector["agent"], member_id=None, permissions=frozenset())
    proposal = Proposal(
        caller=caller, sandbox_id="sbx_1", tool=vector["tool"], tool_version=module.VERSION, kind=module.KIND,
        arguments=module.validate(sent(vector), agent), profile=vector["profile"], bases=vector["bases"],
        script=vector["script"],
    )  # fmt: skip
    assert proposal.digest() == vector["digest"]


def sent(vector: dict[str, Any]) -> dict[str, Any]:
    found = dict(vector["sent"])
    if name := BYTES.get(vector["tool"]):
        content = found[name]
        found[name] = content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
    return found


@pytest.mark.parametrize("plan", VECTORS["plans"], ids=[plan["name"] for plan in VECTORS["plans"]])
def test_the_digest_of_a_plan_is_over_those_of_its_items(plan) -> None:
    items = [ACTIONS[name]["digest"] for name in plan["items"]]
    assert digests.sha256(plan["canonical"]) == plan["digest"] == digests.of_plan(items)
    assert digest.of_digests("sandgate-plan-v1", items) == plan["digest"]


def test_no_two_vectors_are_the_same() -> None:
    found = [vector["digest"] for vector in (*VECTORS["actions"], *VECTORS["plans"])]
    assert len(set(found)) == len(found)


def test_each_kind_of_change_gives_another_digest() -> None:
    """Every part is bound: with any of them otherwise it is another call."""
    base = {part: ACTIONS["write-over"][part] for part in PARTS}
    other: dict[str, Any] = {"agent": None, "tool_version": 2, "script": {"path": "/work/a", "sha256": "0" * 64}}
    for part in PARTS:
        changed = {**base, part: other.get(part, f"{base[part]} " if isinstance(base[part], str) else {"x": "y"})}
        assert digest.digest(**changed) != digest.digest(**base), part


def test_the_page_names_each_part_and_each_tool_that_can_wait() -> None:
    document = json.loads(ACTIONS["line"]["canonical"])
    for name in (*document, *document["profile"]):
        assert f"| `{name}` |" in PAGE, name
    for tool in digests.DEFAULTS:
        assert f"| `{tool}` |" in PAGE, tool
    assert {vector["tool"] for vector in VECTORS["actions"]} <= set(digests.DEFAULTS)


def test_the_program_on_the_page_does_as_it_says() -> None:
    """It is run as a reader would."""
    (code,) = re.findall(r"\n\n((?:    .*\n|\n)+)", PAGE.partition("## Check the vectors")[2])
    told: list[str] = []
    program = "\n".join(line.removeprefix("    ") for line in code.splitlines())
    exec(program.replace("docs/", f"{DOCS}/"), {"print": told.append})
    assert told == [f"{len(ACTIONS) + len(VECTORS['plans'])} digests are as they should be"]


texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts | st.sampled_from([0.5, 1.25, 120.0]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(texts, values, max_size=4))
def test_any_arguments_are_written_as_the_page_says(arguments) -> None:
    vector = {**ACTIONS["line"], "arguments": arguments}
    found = digest.canonical(**{part: vector[part] for part in PARTS})
    assert found.decode() == digests.canonical({"scheme": digest.SCHEME, **{part: vector[part] for part in PARTS}})


@pytest.mark.parametrize("value", [2**53, float("nan"), float("inf"), "\ud800", {"\udfff": 1}])
def test_what_has_no_such_form_is_refused(value) -> None:
    vector = {**ACTIONS["line"], "arguments": {"x": value}}
    with pytest.raises(Invalid, match="RFC 8785"):
        digest.canonical(**{part: vector[part] for part in PARTS})


def test_a_text_is_packed_from_one_byte_over_4_kib() -> None:
    assert payloads.pack("x" * 4096) == "x" * 4096
    assert payloads.pack("x" * 4097) == {"sha256": digests.sha256("x" * 4097), "size": 4097}
