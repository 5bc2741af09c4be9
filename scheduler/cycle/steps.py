"""Long decisions in steps: between two of them, other tasks may run.

A generator that yields where nothing is half done is run either by `in_one_go`, where nothing may await, or in slices
of a few milliseconds by the scheduling loop.
"""

from collections.abc import Generator
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]

MAX_OVERTAKEN: Final = 3
"""How often a decision that others have made worthless is made again in steps; then it is made in one go."""


QUICK: Final = 16
"""Pods about which nothing is decided in a step, but something looked up or taken back: 0.2 ms."""


class Overtaken(Exception):
    """The state that a decision depends on changed between two steps: the decision is made again."""


def in_one_go(steps: Steps[T]) -> T:
    """Take all steps, with nothing between them, and return the outcome."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            outcome: T = end.value
            return outcome
