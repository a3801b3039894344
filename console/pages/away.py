"""Being away, in the reviewer's own part of the page Notices: until when, who hears meanwhile, and being back. The acts
are in `workspaces.away`."""

from datetime import UTC, datetime
from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone

from console.workspaces import away, permissions
from console.workspaces.errors import Invalid, SandgateError
from console.workspaces.models import Member

from .absences import moment
from .shell import complain, member_page, say

TYPED = "%Y-%m-%dT%H:%M"


@member_page("notices", permissions.APPROVALS_REVIEW, methods=("POST",))
def change(request: Any) -> HttpResponseBase:
    """Away until the time sent, in UTC; or `back`."""
    by, post = request.here.member, request.POST
    try:
        if post.get("back"):
            away.come_back(by=by)
            say(request, "You are back. Notices come to you again.")
        else:
            until, deputy = _time(post.get("until", "")), _deputy(by, post.get("deputy", ""))
            away.leave(until=until, deputy=deputy, by=by)
            say(request, f"You are away until {moment(until)}. It ends by itself.")
    except SandgateError as wrong:
        complain(request, wrong.detail)
    return redirect("notices", request.here.workspace.pk)


def _time(typed: str) -> datetime:
    try:
        return datetime.strptime(typed, TYPED).replace(tzinfo=UTC)
    except ValueError:
        raise Invalid("Say until when you are away: a day and a time, in UTC.", field="until") from None


def _deputy(by: Member, member_id: str) -> Member | None:
    if not member_id:
        return None
    if (found := next((each for each in away.deputies(by) if each.pk == member_id), None)) is None:
        raise Invalid("A deputy is another member here with `approvals:review`.", field="deputy")
    return found


def shown(member: Member) -> dict[str, Any]:
    others = away.deputies(member)
    present = {each.pk for each in [member, *others] if not each.is_away}
    until = moment(member.away_until) if member.is_away and member.away_until else ""
    return {
        "away_until": until,
        "hears": _who_hears(member, present) if until else "",
        "deputies": [(each, f"{each}, away too" if each.is_away else str(each)) for each in others],
        "utc_now": timezone.now().astimezone(UTC),
        "stands_in_for": [
            (each, moment(each.away_until))
            for each in others
            if each.away_until and away.hearer(each, present) == member.pk
        ],
    }


def _who_hears(member: Member, present: set[str]) -> str:
    if member.deputy is None:
        return "Nobody is told in your place: what waits then is told when you are back."
    if away.hearer(member, present) == member.pk:
        return f"{member.deputy} is away too or reviews no more, so notices still come to you."
    return f"{member.deputy} is told in your place, and may approve what they could approve before."
