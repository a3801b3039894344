"""What all bodies and answers share. Bodies are strict: an unknown field or another type is refused by name, since a
misspelled limit that is silently dropped is no limit."""

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal
from unicodedata import category

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

# What ends a line or a string or moves a cursor; and halves of characters, which no encoding takes.
CONTROLS = {"Cc", "Cs", "Zl", "Zp"}


def _z(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _on_one_line(value: str) -> str:
    if any(category(character) in CONTROLS for character in value):
        raise ValueError("Must be plain text on one line, without control characters")
    return value


OneLine = Annotated[str, AfterValidator(_on_one_line)]
Time = Annotated[
    datetime, PlainSerializer(_z, return_type=str), WithJsonSchema({"type": "string", "format": "date-time"})
]
Cursor = Annotated[str, Field(pattern=r"^[a-z]{3}_[0-9a-z]{26}$", description="`next_cursor` of the page before.")]
Limit = Annotated[int, Field(ge=1, le=200)]


class Body(BaseModel):
    """`MAY_HOLD_NUL`: fields that are bytes, or whose own check says more. No row of PostgreSQL takes a NUL."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    MAY_HOLD_NUL: ClassVar[frozenset[str]] = frozenset()

    @field_validator("*")
    @classmethod
    def _without_nul(cls, value: Any, info: ValidationInfo) -> Any:
        if info.field_name not in cls.MAY_HOLD_NUL and _holds_nul(value):
            raise ValueError("Must not hold a NUL")
        return value


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(map(_holds_nul, (*value, *value.values())))
    return isinstance(value, list) and any(map(_holds_nul, value))


class Answer(BaseModel):
    pass


class Problem(Answer):
    """Every refusal. `code` is stable; some codes bring fields of their own."""

    model_config = ConfigDict(extra="allow")
    detail: str
    code: str


class Done(Answer):
    success: Literal[True] = True


def shown(**example: Any) -> ConfigDict:
    """What the explorer fills in at first: a call that works as it stands."""
    return ConfigDict(json_schema_extra={"examples": [example]})
