"""A card says that approving it makes known what nobody has seen."""

from django.urls import reverse

from approvals import gate
from approvals.rules import acts
from tests.approvals.proposals import pending, run


def test_a_card_that_would_trust_unseen_changes_says_so(cast, browser):
    acts.make(by=cast.alice, effect="allow", tool="write", pattern="/work/**")
    scout = cast.caller(cast.scout)
    arguments = {"path": "/work/conftest.py", "content": "x", "mode": None}
    gate.finish(gate.submit(run(scout, tool="write", kind="write", arguments=arguments)), status="succeeded", result={})
    client, said = browser(cast.bob), "approving this trusts them"
    for line, says in (("git --version", True), ("echo hi", False)):
        action = pending(scout, line)
        page = client.get(reverse("card", args=[cast.workspace.pk, action.pk])).content.decode()
        assert ("Unseen changes" in page, said in page) == (says, says), line
