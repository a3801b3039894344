"""What the runner's annotations are made of, without `typing`, whose import would cost each sandbox 8 ms of its start.

Owns nothing at run time: there every hint is `object`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")
else:
    Any = T = object

__all__ = ["TYPE_CHECKING", "Any", "T"]
