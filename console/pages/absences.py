"""What pages say of who is away: who else can approve, and that nobody who can is there. Facts of `workspaces.away`."""

from collections.abc import Iterable
from datetime import datetime

from approvals import selves, votes
from approvals.models import Action
from console.workspaces.models import Member

from .words import listed


def moment(at: datetime) -> str:
    """`4 Dec 2026, 08:00 UTC`: of days that may be far off, and for whoever reads it anywhere."""
    return at.strftime("%-d %b %Y, %H:%M UTC")


def others_can(action: Action, viewer: Member) -> str:
    """Who approves it instead of the viewer."""
    able = [each for each in selves.able(action) if each.pk != viewer.pk]
    here, gone = [str(each) for each in able if not each.is_away], [each for each in able if each.is_away]
    if not able:
        return "No other reviewer is there."
    return " ".join(filter(None, (f"{listed(here)} can." if here else "", _gone(gone))))


def too_few_here(action: Action, viewer: Member) -> str:
    """Empty while enough of those who can, and have not yet, are there."""
    given = {vote.by_id for vote in votes.given(action)}
    able = [each for each in selves.able(action) if each.pk not in given]
    gone, missing = [each for each in able if each.is_away], action.approvals_needed - len(given)
    if len(able) - len(gone) >= missing or not gone:
        return ""
    here = [_name(each, viewer) for each in able if not each.is_away]
    if not here:
        return f"All who can approve this are away. {_gone(gone, viewer)}"
    return f"It needs {missing} more, and of those who can only {listed(here)} {_is(here)} here. {_gone(gone, viewer)}"


def _gone(members: Iterable[Member], viewer: Member | None = None) -> str:
    """`Bob is away until 4 Dec 2026, 08:00 UTC.` for each."""
    said = []
    for each in members:
        assert each.away_until
        name = _name(each, viewer)
        said.append(f"{name[:1].upper()}{name[1:]} {_is([name])} away until {moment(each.away_until)}.")
    return " ".join(said)


def _name(member: Member, viewer: Member | None) -> str:
    return "you" if viewer is not None and member.pk == viewer.pk else str(member)


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 and names != ["you"] else "are"
