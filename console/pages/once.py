"""A form that may be sent once: reloading the page that answers it does nothing a second time.

For forms whose answer cannot be a redirect, because it shows a secret that must be kept nowhere.
"""

from typing import Any

from django.core.cache import cache
from django.utils.crypto import get_random_string

KNOWN_FOR_S = 24 * 3600


def token() -> str:
    """For the form's hidden field `once`."""
    return get_random_string(22)


def is_first(request: Any) -> bool:
    """Whether this person's form was not sent before. Kept in memory: one process serves all pages."""
    sent = request.POST.get("once", "")[:64]
    return not sent or cache.add(f"console.pages.once:{request.user.pk}:{sent}", True, KNOWN_FOR_S)
