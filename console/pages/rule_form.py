"""Making and changing a rule: a form whose tests run before it is saved, and that can be tried on the last calls first.

Must never save what is only tried; what was typed is in the page that comes back.
"""

from datetime import timedelta
from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone

from approvals.models import Rule
from approvals.rules import acts, proving
from console.workspaces import permissions
from console.workspaces.errors import Invalid, SandgateError

from .rules import agents_in, replayed, rule_in
from .shell import member_page, say

ENDS = (("", "No end"), ("1", "In 1 day"), ("7", "In 7 days"), ("30", "In 30 days"), ("90", "In 90 days"))
LISTS = {"must_match": "matches", "must_not_match": "does_not_match"}
"""By the field of the form. One named `matches` would hide the form's own function of that name from scripts."""
METHODS = ("GET", "HEAD", "POST")
BLANK = {"effect": "allow", "tool": "run", "ends": "", "agent": "", "must_match": "", "must_not_match": ""}


@member_page("rules", permissions.RULES_MANAGE, methods=METHODS)
def new(request: Any) -> HttpResponseBase:
    """`?pattern=…&agent=…` fill it in, as a suggestion does."""
    return _form(request, None, {**BLANK, **_given(request.GET)})


@member_page("rules", permissions.RULES_MANAGE, methods=METHODS)
def change(request: Any, rule_id: str) -> HttpResponseBase:
    rule = rule_in(request, rule_id)
    return _form(request, rule, {**_kept(rule), **_given(request.GET)})


def _given(sent: Any) -> dict[str, str]:
    names = ("effect", "tool", "pattern", "note", "agent", "conversation", "ends", "version", *LISTS)
    return {name: sent[name] for name in names if name in sent}


def _kept(rule: Rule) -> dict[str, str]:
    lists = {sent: "\n".join(getattr(rule, name)) for sent, name in LISTS.items()}
    plain = {name: getattr(rule, name) for name in ("effect", "tool", "pattern", "note", "conversation")}
    return {**plain, **lists, "agent": rule.agent_id or "", "ends": "keep", "version": str(rule.version)}


def _form(request: Any, rule: Rule | None, sent: dict[str, str]) -> HttpResponseBase:
    error: SandgateError | None = None
    found: dict[str, Any] = {}
    if request.method == "POST":
        sent = {**sent, **_given(request.POST)}
    try:
        if request.POST.get("act") == "try":
            found = _tried(request, rule, sent)
        elif request.method == "POST":
            return _saved(request, rule, sent)
        elif rule:
            found = {"tests": proving.run(rule)}
    except SandgateError as caught:
        error = caught
    ends = [("keep", "As it is"), *ENDS] if rule else ENDS
    shown = {
        "rule": rule,
        "sent": sent,
        "ends": ends,
        "agents": agents_in(request),
        "effects": ("allow", "ask", "deny"),
    }
    shown |= {
        "error": error,
        "field": (error.fields.get("field", "") if error else ""),
        "tools": ("run", "write", "edit"),
    }
    return render(request, "rules/form.html", shown | found, status=400 if error else 200)


def _saved(request: Any, rule: Rule | None, sent: dict[str, str]) -> HttpResponseBase:
    fields, by = _fields(request, sent), request.here.member
    if rule is None:
        made = acts.make(by=by, **fields)
        say(request, f"The rule `{made}` holds from the next call on.")
    else:
        version = int(sent["version"]) if sent.get("version", "").isdecimal() else rule.version
        made = acts.change(rule, by=by, version=version, **fields)
        say(request, f"The rule `{made}` holds from the next call on, as version {made.version}.")
    return redirect("rules", request.here.workspace.pk)


def _tried(request: Any, rule: Rule | None, sent: dict[str, str]) -> dict[str, Any]:
    draft = acts.drafted(by=request.here.member, untested=True, **_fields(request, sent))
    if rule:
        draft.pk = rule.pk
    return {"tests": proving.run(draft), **replayed(request, draft)}


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _fields(request: Any, sent: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {name: sent.get(name, "") for name in ("effect", "tool", "note", "conversation")}
    found["pattern"] = sent.get("pattern", "").strip()
    found |= {name: _lines(sent.get(each, "")) for each, name in LISTS.items()}
    found["agent"] = None
    if sent.get("agent"):
        found["agent"] = agents_in(request).filter(pk=sent["agent"]).first()
        if found["agent"] is None:
            raise Invalid("There is no such agent here. Choose one of the list.", field="agent")
    if sent.get("ends") != "keep":
        days = dict(ENDS).keys() & {sent.get("ends", "")}
        if not days:
            raise Invalid("Choose when it ends.", field="ends")
        found["expires_at"] = timezone.now() + timedelta(days=int(sent["ends"])) if sent["ends"] else None
    return found
