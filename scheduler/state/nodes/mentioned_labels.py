"""The labels that selectors mention: others make no difference between pods.

The pods of a StatefulSet have a label of their own each. As long as no selector asks for its values, all of them are of
one kind, and what was found for one serves the others.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from scheduler.api.label_selectors import Selector

OTHER: Final = "\0"
"""Stands for every value that is not mentioned. No valid label value, so no selector names it."""

KnownLabels: TypeAlias = tuple[tuple[str, str], ...]
"""The labels of a pod that are mentioned."""


class MentionedLabels:
    """Counts the keys and values in selectors that come and go."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[str, int]] = {}
        """Key → value → number of requirements that name it; OTHER counts the requirements of the key itself."""

    def known(self, labels: Mapping[str, str]) -> KnownLabels:
        """Return the labels that are mentioned, in their order, with OTHER for values that are not."""
        keys = self._keys
        if not keys:
            return ()
        return tuple([(key, value if value in keys[key] else OTHER) for key, value in labels.items() if key in keys])

    def add(self, selector: Selector) -> None:
        for key, _, values in selector.requirements:
            counts = self._keys.setdefault(key, {OTHER: 0})
            counts[OTHER] += 1
            for value in values:
                counts[value] = counts.get(value, 0) + 1

    def remove(self, selector: Selector) -> None:
        """Remove a selector that was added."""
        for key, _, values in selector.requirements:
            counts = self._keys[key]
            counts[OTHER] -= 1
            for value in values:
                counts[value] -= 1
                if not counts[value]:
                    del counts[value]
            if not counts[OTHER]:
                del self._keys[key]

    def check_invariants(self, selectors: Iterable[Selector]) -> None:
        """The counts are those of these selectors. For tests and debugging."""
        expected = MentionedLabels()
        for selector in selectors:
            expected.add(selector)
        assert self._keys == expected._keys
