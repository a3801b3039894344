"""Opaque ids: a prefix that says what it is, then time-ordered base32. Sorting by id is sorting by age."""

import secrets
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u to misread


def new_id(prefix: str) -> str:
    """48 bits of milliseconds and 80 random bits, as 26 characters after `prefix_`."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return f"{prefix}_" + "".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))
