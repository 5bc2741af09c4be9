"""Selectors by the labels that they ask for: which of thousands may select a pod, found through its own labels."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

from scheduler.api.label_selectors import IN, Selector

ItemT = TypeVar("ItemT", bound=Hashable)

_Place: TypeAlias = tuple[str | None, str | None, str]
"""Namespace (None: all), label key (None: any labels) and label value."""

_ANY_LABELS: Final = (None, "")
_LISTED_NAMESPACES: Final = 16
"""An item with more namespaces is looked at for pods of all namespaces."""


class SelectorPostings(Generic[ItemT]):
    """Items that have a selector and namespaces (None: all), to be found by the labels of a pod.

    Each item is listed under one of its requirements, the `In` with the fewest values; what has none, under no label.
    """

    def __init__(self) -> None:
        self._items: dict[_Place, dict[ItemT, None]] = {}

    def add(self, item: ItemT, namespaces: frozenset[str] | None, selector: Selector) -> None:
        for place in _places(namespaces, selector):
            self._items.setdefault(place, {})[item] = None

    def remove(self, item: ItemT, namespaces: frozenset[str] | None, selector: Selector) -> None:
        """Remove an item, with the very namespaces and selector of `add`."""
        for place in _places(namespaces, selector):
            items = self._items[place]
            del items[item]
            if not items:
                del self._items[place]

    def __contains__(self, item: ItemT) -> bool:
        return any(item in items for items in self._items.values())

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[ItemT]:
        """Yield, each once, all items that may select such a pod: they must still be asked."""
        if not self._items:
            return
        for key, value in (_ANY_LABELS, *labels.items()):
            yield from self._items.get((namespace, key, value), ())
            yield from self._items.get((None, key, value), ())


def _places(namespaces: frozenset[str] | None, selector: Selector) -> Iterator[_Place]:
    if selector.is_nothing:
        return
    lists = [requirement for requirement in selector.requirements if requirement.operator == IN]
    rarest = min(lists, key=lambda requirement: len(requirement.values), default=None)
    labels: Iterable[tuple[str | None, str]] = (_ANY_LABELS,)
    if rarest is not None:
        labels = [(rarest.key, value) for value in rarest.values]
    listed: Iterable[str | None] = (None,)
    if namespaces is not None and len(namespaces) <= _LISTED_NAMESPACES:
        listed = namespaces
    for namespace in listed:
        for key, value in labels:
            yield namespace, key, value
