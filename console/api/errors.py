"""What every refusal looks like: one table from `code` to HTTP status, one shape `{"detail", "code", …}`.

The only place that knows both. Nothing here adds to a message what the caller sent, and never a trace.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from console.workspaces.errors import SandgateError
from sandboxes import toolsets

STATUS: dict[str, int] = {
    "malformed": 400,
    "no_key": 401,
    "bad_key": 401,
    "permission_denied": 403,
    "sandbox_not_enabled": 403,
    "not_allowed_by_settings": 403,
    "protected_path": 403,
    "permission_denied_in_sandbox": 403,
    "denied": 403,
    "not_found": 404,
    "file_not_found": 404,
    "method_not_allowed": 405,
    "too_slow": 408,
    "conflict": 409,
    "pending_approval": 409,
    "still_running": 409,
    "already_decided": 409,
    "wrong_digest": 409,
    "not_seen": 409,
    "not_editable": 409,
    "expired": 409,
    "cancelled": 409,
    "superseded": 409,
    "stale_edit": 409,
    "script_changed": 409,
    "hard_link": 409,
    "no_ripgrep": 409,
    "outcome_unknown": 409,
    "failed": 409,
    "sandbox_gone": 409,
    "sandbox_error": 409,
    "busy": 409,
    "command_ended": 409,
    "stdin_closed": 409,
    "interrupted": 409,
    "no_space": 409,
    "no_reviewer": 409,
    "idempotency_mismatch": 409,
    "too_large": 413,
    "range_not_satisfiable": 416,
    "validation": 422,
    "bad_path": 422,
    "bad_request": 422,
    "is_a_directory": 422,
    "not_a_directory": 422,
    "not_a_file": 422,
    "not_utf8": 422,
    "bad_edit": 422,
    "bad_pattern": 422,
    "halted": 423,
    "too_many": 429,
    "too_many_commands": 429,
    "stdin_full": 429,
    "internal": 500,
    "not_stored": 500,
    "no_runtime": 503,
    "no_capacity": 503,
    "create_failed": 503,
    "channel_lost": 503,
    "sandbox_unresponsive": 503,
}
RETRY_AFTER_S = {"no_runtime": 60}

_log = logging.getLogger(__name__)


class Refused(SandgateError):
    """A refusal that only this door knows, with its code given by the place that raises it."""

    def __init__(self, code: str, detail: str, **fields: object) -> None:
        super().__init__(detail, **fields)
        self.code = code


def status_of(code: str) -> int:
    """409 for a word that is not in the table: a caller is told, and a test keeps the table whole."""
    return STATUS.get(code, 409)


def refusal(detail: str, code: str, fields: Mapping[str, object] | None = None, retry_after: int = 0) -> HttpResponse:
    body = {"detail": detail, "code": code, **(fields or {})}
    status = status_of(code)
    response = HttpResponse(json.dumps(body, default=str), status=status, content_type="application/json")
    if status in (429, 503):
        response.headers["Retry-After"] = str(retry_after or RETRY_AFTER_S.get(code, 10))
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def install(api: NinjaAPI) -> None:
    api.add_exception_handler(SandgateError, _ours)
    api.add_exception_handler(ValidationError, _invalid)
    api.add_exception_handler(HttpError, _http)
    api.add_exception_handler(Http404, _nothing)
    api.add_exception_handler(Exception, _fault)


def _ours(request: HttpRequest, error: Any) -> HttpResponse:
    fields = dict(error.fields)
    if error.code == "validation" and "example" not in fields:
        fields |= _right_call(request, fields)
    return refusal(error.detail, error.code, fields, getattr(error, "retry_after", 0))


def _invalid(request: HttpRequest, error: Any) -> HttpResponse:
    found = [{"field": _field(item["loc"]), "detail": _told(item)} for item in error.errors[:20]]
    detail = f"`{found[0]['field']}`: {found[0]['detail']}"
    return refusal(
        detail, "validation", {"field": found[0]["field"], "errors": found, **_right_call(request, found[0])}
    )


def _right_call(request: HttpRequest, fault: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's: its arguments where they are at fault, else the whole body."""
    match = request.resolver_match
    tool = toolsets.example(str(match.kwargs.get("tool"))) if match else {}
    if not tool:
        return {}
    is_inside = str(fault.get("field")).partition(".")[0] == "arguments"
    return {"example": tool if is_inside else {"conversation": "first", "arguments": tool}}


def _field(loc: tuple[str | int, ...]) -> str:
    """("body", "body", "env", "A") → env.A: first where it came in, then our own name for the body."""
    names = loc[2:] if loc[0] == "body" else loc[1:]
    return ".".join(str(name) for name in names) or "body"


# Where the library's own words say nothing to whoever made the call.
WORDS = {
    "extra_forbidden": "There is no such field here; /v1/docs names those there are.",
    "model_attributes_type": "The body is a JSON object, such as {}.",
    "dict_type": "The body is a JSON object, such as {}.",
    "missing": "This is missing.",
}


def _told(item: Mapping[str, Any]) -> str:
    whole_body = len(item["loc"]) <= 2
    if item["type"] == "dict_type" and not whole_body:
        return "This is a JSON object, such as {}."
    return WORDS.get(item["type"]) or _sentence(item["msg"])


def _sentence(message: str) -> str:
    message = message.removeprefix("Value error, ").rstrip(".")
    return f"{message[:1].upper()}{message[1:]}."


def _http(request: HttpRequest, error: Any) -> HttpResponse:
    code = {400: "malformed", 401: "no_key", 403: "permission_denied", 404: "not_found", 429: "too_many"}
    return refusal(str(error), code.get(error.status_code, "internal"))


def _nothing(request: HttpRequest, error: Any) -> HttpResponse:
    return refusal(f"There is nothing at {request.path}. The calls that exist are in /v1/openapi.json.", "not_found")


def _fault(request: HttpRequest, error: Any) -> HttpResponse:
    name = getattr(request, "scope", {}).get("request_id", "")
    _log.error("%s %s failed, request %s.", request.method, request.path, name, exc_info=error)
    return refusal(f"The server failed; its log tells why at {name or 'this time'}.", "internal")
