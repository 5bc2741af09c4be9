"""The fewest victims: all candidates are gone, and those come back that can be spared.

    gone ─► a part comes back ─► does it still fit? ─yes─► they stay
                                        └─no─► they leave again, and each half of them is tried

So the answer is that of one candidate at a time, as long as what fits also fits with more of them gone. The question
may take long: of many candidates that can be spared, it is asked few times.

The same for many nodes at once, in columns: `runtime/preemption/reprieve.py`.
"""

from collections.abc import Generator, Iterable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class WithoutSome(Protocol[T_contra]):
    """The state of things without some candidates."""

    def put_back(self, some: Sequence[T_contra]) -> None:
        """Let these come back."""

    def remove(self, some: Sequence[T_contra]) -> None:
        """Let these be gone again."""

    def fits(self) -> bool:
        """Say whether there is enough space as it is now."""


def needed(parts: Iterable[Sequence[T]], without: WithoutSome[T]) -> Generator[None, None, list[T]]:
    """Let come back what can be spared, in the order of `parts`; return the others. Yields after each question."""
    found: list[T] = []
    left = list(parts)[::-1]
    while left:
        part = left.pop()
        without.put_back(part)
        if not without.fits():
            without.remove(part)
            half = len(part) // 2
            if half:
                left += part[half:], part[:half]
            else:
                found += part
        yield
    return found
