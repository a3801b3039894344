"""Editing a waiting call: a form with its text, a preview of what would run instead, and putting that up for approval.

What is put up is what the preview showed: its digest comes back with the form. GET shows; nothing here approves.
"""

import copy
from typing import Any

from asgiref.sync import async_to_sync
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from approvals import edits, gate
from approvals.models import Action
from console.workspaces.errors import SandgateError
from sandboxes import call_edits

from . import cards, edited
from .queue import find
from .shell import LOOK, member_page

CHANGED = "What would run is not what this page showed. Look at it again; nothing was edited."
LEAST_ROWS, MOST_ROWS = 4, 24


@member_page("queue", *LOOK, methods=("GET", "HEAD", "POST"))
def edit(request: Any, action_id: str) -> HttpResponseBase:
    action, by = find(request, action_id), request.here.member
    shown: dict[str, Any] = {"action": action, "path": call_edits.path(action), "digest_before": action.digest}
    try:
        edits.check_may_edit(action, by=by)
        shown["text"] = call_edits.text(action)
        if request.method != "POST":
            return _form(request, shown)
        shown |= _typed(request.POST)
        if request.POST.get("step") == "again":
            return _form(request, shown)
        proposal = async_to_sync(call_edits.edited)(action, text=shown["text"], path=shown["path"], by=by)
        if request.POST.get("step") != "put":
            return render(request, "queue/edited.html", {**shown, **_preview(action, proposal)})
        if proposal.digest() != request.POST.get("digest"):
            return _form(request, {**shown, "error": CHANGED}, status=409)
        edits.put(action, proposal, by=by, digest_before=shown["digest_before"])
    except SandgateError as error:
        return _form(request, {**shown, "error": error.detail}, status=409)
    return redirect("card", request.here.workspace.pk, action.pk)


def _form(request: Any, shown: dict[str, Any], status: int = 200) -> HttpResponseBase:
    lines = str(shown.get("text") or "").count("\n") + 2
    rows = min(max(LEAST_ROWS, lines), MOST_ROWS)
    return render(request, "queue/edit.html", {**shown, "rows": rows}, status=status)


def _typed(post: Any) -> dict[str, Any]:
    """A form sends each line end as two characters; texts that hold such themselves are never in one."""
    text, path = post.get("text", "").replace("\r\n", "\n"), post.get("path", "").strip()
    return {"text": text, "path": path, "digest_before": post.get("digest_before", "")}


def _preview(action: Action, proposal: gate.Proposal) -> dict[str, Any]:
    """The card as it would be: drawn by the same functions."""
    would_be = copy.copy(action)
    would_be.arguments, would_be.bases = dict(proposal.arguments), dict(proposal.bases)
    would_be.script = proposal.script
    would_be.flags, would_be.digest = list(proposal.flags), proposal.digest()
    return {
        "would_be": would_be,
        "matter": cards.matter(would_be),
        "changes": edited.difference(action, proposal.arguments),
    }
