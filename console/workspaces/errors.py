"""What can go wrong on the ground floor. A message names the thing and the next step; doors map `code` to HTTP."""


class SandgateError(Exception):
    """The root of every error that a caller is told about. `fields` are added to the answer."""

    code = "error"

    def __init__(self, detail: str, **fields: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fields = fields


class NotFound(SandgateError):
    """Not there, or not the caller's: never says which."""

    code = "not_found"

    def __init__(self, what: str, id: str) -> None:
        super().__init__(f"There is no {what} {id} here, or it is not yours. Check the id and the key.")


class PermissionDenied(SandgateError):
    code = "permission_denied"


class Invalid(SandgateError):
    """Well-formed, but not acceptable; `field` names what."""

    code = "validation"

    def __init__(self, detail: str, *, field: str) -> None:
        super().__init__(detail, field=field)


class Conflict(SandgateError):
    code = "conflict"


class Halted(SandgateError):
    """A person stopped this agent or workspace; nothing of it runs until another lifts that."""

    code = "halted"


class IdempotencyMismatch(Conflict):
    code = "idempotency_mismatch"


class OutcomeUnknown(Conflict):
    """It began, and its end was lost: it may have been done."""

    code = "outcome_unknown"
