"""Answers that are kept only when they would be the same the next time: a line can have been unreadable this once."""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Unsure(Exception):
    """Raised through the cache, which keeps nothing then."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


def kept_if_sure(most: int) -> Callable[[Callable[[K], tuple[V, bool]]], Callable[[K], V]]:
    """For a function that answers and says whether it is sure: the answers to the last `most` questions are kept."""

    def keeping(work: Callable[[K], tuple[V, bool]]) -> Callable[[K], V]:
        @lru_cache(maxsize=most)
        def sure(asked: K) -> V:
            answer, is_sure = work(asked)
            if not is_sure:
                raise _Unsure(answer)
            return answer

        @wraps(work)
        def answered(asked: K) -> V:
            try:
                return sure(asked)
            except _Unsure as unsure:
                answer: V = unsure.answer
                return answer

        return answered

    return keeping
