"""How an operation is declared: which keys, which permission, which gate, what it answers.

What is declared is what is checked before a body is looked at, and what the OpenAPI document says: they cannot differ.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Literal, TypeVar

from django.http import HttpRequest
from ninja import Router

from console.workspaces import permissions
from console.workspaces.errors import PermissionDenied
from console.workspaces.keys import Caller

from . import body, once, schemas
from .errors import Refused, status_of

Keys = Literal["any", "workspace", "agent"]
Gate = Literal["approval", "recorded", "none"]
GATES: Mapping[Gate, str] = {
    "approval": "`approval`, so by an agent's key this is an action that may wait for a person",
    "recorded": "`recorded`, so this is an action, and one that never asks",
    "none": "`none`",
}
BYTES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
View = TypeVar("View", bound=Callable[..., Any])
SEES = (permissions.SANDBOXES_READ, permissions.SANDBOXES_RUN)
SEES_ACTIONS = (*SEES, permissions.APPROVALS_REVIEW)


@dataclass(frozen=True)
class Door:
    """Runs before ninja parses anything: who calls, may they, and is the body JSON."""

    may: tuple[str, ...]
    keys: Keys
    has_body: bool

    async def __call__(self, request: Any) -> Caller:
        who = request.scope.get("caller")
        if not isinstance(who, Caller):  # the doorman lets nobody in without one; if he was left out, nobody comes in
            raise Refused("no_key", "Send a key, as `X-API-Key: …` or `Authorization: Bearer …`.")
        if "\0" in request.path or "%00" in request.META["QUERY_STRING"]:
            raise Refused("malformed", "The address holds a NUL byte.")
        self._check(who)
        once.scope_of(request)  # refuses a bad one before the body is read
        if self.has_body:
            await body.read(request)
        return who

    def _check(self, who: Caller) -> None:
        if self.keys == "workspace" and who.is_agent:
            raise PermissionDenied("An agent's key cannot do this. Use a workspace key of a member who may.")
        if self.keys == "agent" and not who.is_agent:
            raise PermissionDenied("Only the agent whose call this is can do this, with its own key.")
        if self.may and not who.permissions & set(self.may):
            who.need(self.may[0])


def caller(request: HttpRequest) -> Caller:
    found: Caller = request.auth  # type: ignore[attr-defined]
    return found


def door(
    router: Router,
    method: str,
    path: str,
    *,
    may: tuple[str, ...] = (),
    keys: Keys = "any",
    gate: Gate = "none",
    answers: Mapping[int, Any],
    fails: Iterable[str] = (),
    shown_once: tuple[str, ...] = (),
    streams: Mapping[str, Any] | None = None,
    takes_bytes: bool = False,
    headers: Iterable[Mapping[str, Any]] = (),
) -> Callable[[View], View]:
    """`may`: any one of these permissions opens it; none: every key. `fails`: the codes it can refuse with, beyond
    those that every call can. `shown_once`: fields of the answer that no repeated call is given. `streams`: media types
    of an answer 200 that is no JSON, and `headers` that it looks at, as the document has them. `takes_bytes`: its body
    too is no JSON, and the view reads it as it comes (`console.streamed`)."""
    rules = Door(may, keys, has_body=method in ("POST", "PUT") and not takes_bytes)
    always = _always(rules, path, once=_takes_a_key(method, gate))
    refusals = _by_status({*fails, *always, *(["too_large"] if takes_bytes else [])})

    def declare(view: View) -> View:
        summary, _, description = cleandoc(view.__doc__ or "").partition(".")
        acting = once.acting_once(view, shown_once) if method == "POST" and gate != "approval" else view
        router.api_operation(
            [method],
            path,
            auth=rules,
            response={**answers, **dict.fromkeys(refusals, schemas.Problem)},
            operation_id=view.__name__,
            summary=summary,
            description=f"{description.strip()}\n\n{_in_words(rules, gate)}".strip(),
            openapi_extra=_extra(rules, method, gate, refusals, streams, headers) | (BYTES if takes_bytes else {}),
            include_in_schema=method != "HEAD",  # it is what GET is, without its body
        )(acting)
        return view

    return declare


def _in_words(rules: Door, gate: Gate) -> str:
    """For people, who read no `x-…`."""
    permission = " or ".join(f"`{name}`" for name in rules.may) or "none"
    return f"**Permission:** {permission}. **Keys:** {rules.keys}. **Gate:** {GATES[gate]}."


def _extra(
    rules: Door,
    method: str,
    gate: Gate,
    refusals: Mapping[int, set[str]],
    streams: Mapping[str, Any] | None,
    headers: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    described: dict[int, dict[str, Any]] = {
        status: {"description": " · ".join(f"`{code}`" for code in sorted(codes))} for status, codes in refusals.items()
    }
    described |= {200: {"content": dict(streams)}} if streams else {}
    found = {"x-permission": list(rules.may), "x-keys": rules.keys, "x-gate": gate, "responses": described}
    parameters = [*([once.PARAMETER] if _takes_a_key(method, gate) else []), *headers]
    return found | ({"parameters": parameters} if parameters else {})


def _takes_a_key(method: str, gate: Gate) -> bool:
    """An Idempotency-Key: what acts once, or is an action."""
    return method == "POST" or gate == "approval"


def _always(rules: Door, path: str, *, once: bool) -> set[str]:
    found = {"malformed", "no_key", "bad_key", "validation", "internal"}
    found |= {"permission_denied"} if rules.may or rules.keys != "any" else set()
    found |= {"not_found"} if "{" in path else set()
    found |= {"too_large"} if rules.has_body else set()
    return found | ({"idempotency_mismatch", "outcome_unknown"} if once else set())


def _by_status(codes: Iterable[str]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for code in codes:
        found.setdefault(status_of(code), set()).add(code)
    return dict(sorted(found.items()))
