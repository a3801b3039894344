"""Plans as a door would record them."""

from approvals.models import Action, Plan
from approvals.plans import deciding, proposing
from tests.approvals.proposals import run


def planned(caller, *commands: str, **more) -> Plan:
    items = [run(caller, command, conversation="march") for command in commands or ("one", "two", "three")]
    answer = proposing.submit(proposing.PlanProposal(items, **more))
    assert isinstance(answer, proposing.Recorded), answer
    return Plan.objects.get(pk=answer.plan_id)


def items(plan) -> list[Action]:
    return list(plan.in_order())


def states(plan) -> list[str]:
    return [item.status for item in items(plan)]


def approve(plan, by, *left_out, reason="Not that one."):
    ids = [items(plan)[at].pk for at in left_out]
    said = {"left_out": ids, "reason": reason} if ids else {}
    return deciding.decide(plan, "approve", by=by, digest=deciding.digest_of(plan), **said)
