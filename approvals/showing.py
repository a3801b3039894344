"""Which texts were shown to whom: approving on a page takes the token that came with the whole text.

The token is bound to session, member, action and digest, and the row says when. Must never make one for a text that was
not drawn whole; that is its caller's to know.
"""

import hashlib
import hmac

from django.db.models import F
from django.utils import timezone
from django.utils.crypto import salted_hmac

from console.workspaces.models import Member

from .errors import NotSeen
from .models import Action, View


def show(action: Action, *, to: Member, session: str, digest: str = "") -> str:
    """The token to send after the last line. The same session is given the same one again. `digest`: of all that was
    shown, where that is more than the action; as below."""
    digest = digest or action.digest
    view, _ = View.objects.get_or_create(action=action, member=to, digest=digest, session=_named(session))
    return _token(view)


def seen(action: Action, *, by: Member, session: str, token: str, digest: str = "") -> View:
    """The view that `token` came with, of what the action is now. Raises NotSeen."""
    view = of(action, by=by, session=session, digest=digest)
    if view is None or not hmac.compare_digest(_token(view).encode(), token.encode()):
        raise NotSeen(action.pk)
    return view


def of(action: Action, *, by: Member, session: str, digest: str = "") -> View | None:
    bound = {"digest": digest or action.digest, "session": _named(session)}
    return View.objects.filter(action=action, member=by, **bound).first()


def read_to_end(*, by: Member, session: str) -> set[str]:
    """Ids of what waits and this session has read to its end, as it is now."""
    views = View.objects.filter(member=by, session=_named(session), action__status="pending", read_at__isnull=False)
    return set(views.filter(digest=F("action__digest")).values_list("action_id", flat=True))


def read(view: View) -> None:
    """Its end was on screen; the first time counts."""
    View.objects.filter(pk=view.pk, read_at=None).update(read_at=timezone.now())


def _token(view: View) -> str:
    bound = f"{view.pk}:{view.action_id}:{view.member_id}:{view.session}:{view.digest}"
    return salted_hmac("approvals.showing", bound, algorithm="sha256").hexdigest()


def _named(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()
