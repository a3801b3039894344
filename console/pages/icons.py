"""Icons: lucide, 16 px, drawn inline. Always beside a word, or with a label of their own."""

from functools import lru_cache
from xml.etree import ElementTree

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from lucide import _load_icon as load


@lru_cache(maxsize=512)
def icon(name: str, label: str = "") -> SafeString:
    shapes = "".join(ElementTree.tostring(shape, encoding="unicode").strip() for shape in load(name))
    said = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    return mark_safe(
        f'<svg {said} width="16" height="16" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" '
        f'stroke-linecap="round" stroke-linejoin="round" class="icon">{shapes}</svg>'
    )
