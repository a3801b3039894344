"""The queue and its cards. One URL serves the page and, with `?part=`, its fragments; all through `visible_to`.

GET shows, POST decides, and approving takes the digest and the token that came with the whole text.
"""

from functools import partial
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from approvals import decisions, lineage, payloads, selves, showing, twins, votes
from approvals.errors import AlreadyDecided, NotSeen
from approvals.models import Action, Suspension, View
from console.workspaces.errors import SandgateError
from sandboxes import outputs
from sandboxes.models import Command, Sandbox
from sandboxes.toolsets.two import edit

from . import absences, cards, denials, downloads, edited, fates, fragments, granting, looking, plan_cards, rows, voting
from .reasons import REASONS
from .shell import LOOK, member_page

LATELY = 20
MOST_ROWS = 100  # of what waits: each card's page has the list beside it
BEFORE = 3
NOT_SHOWN = "This page did not show you the whole text, so it cannot approve. Open the action again and read it."


@member_page("queue", *LOOK)
def queue(request: Any, action_id: str = "") -> HttpResponseBase:
    part, opened = request.GET.get("part", ""), request.GET.get("open", "")
    if part == "list":
        return render(request, "partials/_list.html", {**listing(request), "open_id": opened})
    action = find(request, action_id) if action_id else None
    if action and part in fragments.PARTS:
        return render(request, *fragments.PARTS[part](request, action))
    shown = {"card": _card(request, action)} if action else {}
    if action and part == "card":
        return render(request, shown["card"].get("template", "partials/_card.html"), shown)
    beside = {"suspended": _suspended(request, action), "grants": granting.in_force(request)}
    return render(request, "queue/queue.html", {**listing(request), **shown, **beside, "open_id": action_id})


def _suspended(request: Any, action: Action | None) -> Any:
    """Beside a card only its own agent's: what is to be read begins on the first screen."""
    found = Suspension.objects.open_in(request.here.workspace)
    return found.filter(agent_id=action.agent_id) if action else found


@member_page("queue", *LOOK, methods=("POST",))
def decide(request: Any, action_id: str) -> HttpResponseBase:
    action, verdict = find(request, action_id), request.POST.get("verdict", "")
    digest = request.POST.get("digest", "")
    reason, refusal = written(request.POST), ""
    try:
        if verdict == granting.VERDICT:
            granting.give(request, action, digest=digest, view=_seen(request, action))
        else:
            view, by = _seen(request, action) if verdict == "approve" else None, request.here.member
            decisions.decide(action, verdict, by=by, digest=digest, reason=reason, via="page", view=view)
    except NotSeen:
        refusal = NOT_SHOWN
    except AlreadyDecided:
        action.refresh_from_db()
        refusal = fates.lost_race(
            action, mine=request.here.member, mine_at=timezone.now(), decision=votes.deciding(action)
        )
    except SandgateError as error:
        refusal = error.detail
    return _answer(request, action, refusal, unsent=reason if refusal and verdict == "deny" else "")


def _answer(request: Any, action: Action, refusal: str, *, unsent: str) -> HttpResponseBase:
    """What was written and did not get through is on the page that says so: a missing reason beside its field, all
    else above the text."""
    if not refusal and not request.htmx:
        return redirect(reverse("card", args=[request.here.workspace.pk, action.pk]) + "#outcome")
    shown = _card(request, find(request, action.pk))
    of_reason = shown["may_decide"] and request.POST.get("verdict") == "deny" and not unsent
    said = {"unsent": unsent, "reason_error" if of_reason else "refusal": refusal}
    if request.htmx:
        return render(request, "partials/_card.html", {"card": {**shown, **said}})
    page = {**listing(request), "card": {**shown, **said}, "open_id": action.pk}
    return render(request, "queue/queue.html", page, status=409)


def written(post: Any) -> str:
    """The chip and the words, as one sentence after the other."""
    parts = [str(post.get("quick", "")).strip(), str(post.get("reason", "")).strip()]
    return ". ".join(part.rstrip(".") if at == 0 and parts[1] else part for at, part in enumerate(parts) if part)


@member_page("queue", *LOOK)
def raw(request: Any, action_id: str) -> HttpResponseBase:
    """The exact bytes of the command or the file, as a download: never as a page of this origin. Of an edit, of what it
    makes of its file."""
    action = find(request, action_id)
    value = action.arguments.get("command", action.arguments.get("content"))
    if becomes := action.bases.get(edit.BECOMES):
        value = {"sha256": becomes}
    if value is None or (isinstance(value, dict) and "sha256" not in value):
        raise Http404
    downloads.record(request, "payload.downloaded", action.pk, digest=action.digest)
    return downloads.answer(payloads.content(value), f"{action.pk}.bin")


@member_page("queue", *LOOK)
def output(request: Any, action_id: str, stream: str) -> HttpResponseBase:
    """What is kept of one stream: all of it, or its first and last part."""
    command = Command.objects.filter(action_id=find(request, action_id).pk).first()
    if command is None or stream not in ("stdout", "stderr"):
        raise Http404
    downloads.record(request, "output.downloaded", command.action_id, stream=stream)
    content = outputs.read(command.action_id, stream).content  # type: ignore[arg-type]
    return downloads.answer(content, f"{command.action_id}.{stream}")


def find(request: Any, action_id: str) -> Action:
    with_it = ("agent__owner__user", "workspace", "plan__agent")
    visible = Action.objects.visible_to(request.here.member).select_related(*with_it)
    action = visible.filter(pk=action_id).first()
    if action is None:
        raise Http404
    return action


def listing(request: Any) -> dict[str, Any]:
    """Those that wait longest; with `?all=1` all."""
    asked = Action.objects.visible_to(request.here.member).filter(asked=True).select_related("agent", "plan")
    all_ = "all" in request.GET
    groups, is_cut = rows.groups(asked.pending().cards(), most=None if all_ else MOST_ROWS)
    listed = fragments.marked(request, [row for group in groups for row in group.rows])
    stand_for = {pk for row in listed for pk in (row.action.pk, *row.twins, *row.items)}
    return {
        "groups": groups,
        "more": request.here.waiting - len(stand_for) if is_cut else 0,
        "all": all_,
        "lately": rows.of(asked.lately()[:LATELY]),
        **fragments.read(request),
    }


def _card(request: Any, action: Action) -> dict[str, Any]:
    """All of a card. `may_approve` is the page's; deciding checks again."""
    if action.plan_id:
        return plan_cards.card(request, action)
    member, matter = request.here.member, cards.matter(action)
    matter.sheets += edited.sheets(action) + denials.sheets(action) if matter.sheets else []
    voted, became = voting.shown(action, member), fragments.became(action, member)
    why_not = selves.why_not(action, member)
    open_ = action.status == "pending" and (action.expires_at or timezone.now()) > timezone.now()
    may_approve = open_ and request.here.may_review and not (why_not or matter.undrawable or voted["voted"])
    return {
        "matter": matter,
        "sandbox": Sandbox.objects.filter(pk=action.sandbox_id).first(),
        "before": _before(request, action),
        "twins": twins.of(action) if open_ else [],
        "parents": rows.of(lineage.chain(action)),
        "may_decide": (open_ or became["late"]) and request.here.may_review,
        "may_approve": may_approve,
        "grant": granting.offered(action) if may_approve else [],
        "grant_minutes": granting.MINUTES,
        "own": f"{why_not} {absences.others_can(action, member)} You can deny it." if why_not else "",
        "seen": partial(_token, request, action) if open_ and not matter.undrawable else "",
        **voted,
        "reasons": REASONS,
        "looking": looking.names(member).get(action.pk, "") if open_ else "",
        "editable": open_ and request.here.may_review and edited.editable(action),
        "digest": f"{action.digest[:8]} {action.digest[8:16]}",
        "overtaken": "" if open_ else fates.overtaken(action, mine=member, decision=became["decision"]),
        **became,
    }


def _before(request: Any, action: Action) -> list[rows.Row]:
    earlier = Action.objects.visible_to(request.here.member).filter(
        agent_id=action.agent_id, sandbox_id=action.sandbox_id, created_at__lt=action.created_at
    )
    return rows.of(earlier.select_related("agent").order_by("-created_at")[:BEFORE])


def _token(request: Any, action: Action) -> str:
    """Asked for by the template where it is written, after the whole text, so that a card that broke off was shown to
    nobody. Worth something only to this session and this digest."""
    if request.method == "HEAD":
        return ""
    return showing.show(action, to=request.here.member, session=request.session.session_key)


def _seen(request: Any, action: Action) -> View:
    token = request.POST.get("seen", "")
    return showing.seen(action, by=request.here.member, session=request.session.session_key, token=token)
