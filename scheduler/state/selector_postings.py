"""An inverted index of selectors by label: which of thousands may select a pod, found through the pod's labels."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

from scheduler.api.label_selectors import EXISTS, IN, Selector

ItemT = TypeVar("ItemT", bound=Hashable)

_PostingKey: TypeAlias = tuple[str | None, str | None, str | None]
"""Namespace (None: all), label key (None: any labels) and label value (None: any value)."""

_ANY_LABELS: Final = (None, None)
_LISTED_NAMESPACES: Final = 16
"""An item with more namespaces than this is a candidate for pods of all namespaces."""
_LISTED_VALUES: Final = 64
"""An item that asks for more values of a label than this is a candidate for pods with any value of it."""


class SelectorPostings(Generic[ItemT]):
    """Items with a selector and namespaces (None: all), found by the labels of a pod.

    Each item is listed under one of its requirements: the `In` with the fewest values, else an `Exists`; without any,
    under no label.
    """

    def __init__(self) -> None:
        self._items: dict[_PostingKey, dict[ItemT, None]] = {}
        self._any_value = 0
        """Entries of `_items` for any value of a label: mostly there are none, and they are not looked up."""

    def add(self, item: ItemT, namespaces: frozenset[str] | None, selector: Selector) -> None:
        for key in _posting_keys(namespaces, selector):
            self._items.setdefault(key, {})[item] = None
            self._any_value += key[2] is None and key[1] is not None

    def remove(self, item: ItemT, namespaces: frozenset[str] | None, selector: Selector) -> None:
        """Remove an item, given the same namespaces and selector as in `add`."""
        for key in _posting_keys(namespaces, selector):
            items = self._items[key]
            del items[item]
            self._any_value -= key[2] is None and key[1] is not None
            if not items:
                del self._items[key]

    def __contains__(self, item: ItemT) -> bool:
        return any(item in items for items in self._items.values())

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[ItemT]:
        """Yield once each item that may select such a pod; the caller must still evaluate it."""
        if not self._items:
            return
        for key, value in (_ANY_LABELS, *labels.items()):
            yield from self._items.get((namespace, key, value), ())
            yield from self._items.get((None, key, value), ())
        if self._any_value:
            for key in labels:
                yield from self._items.get((namespace, key, None), ())
                yield from self._items.get((None, key, None), ())


def _posting_keys(namespaces: frozenset[str] | None, selector: Selector) -> Iterator[_PostingKey]:
    if selector.is_nothing:
        return
    lists = [requirement for requirement in selector.requirements if requirement.operator == IN]
    rarest = min(lists, key=lambda requirement: len(requirement.values), default=None)
    labels: Iterable[tuple[str | None, str | None]] = (_ANY_LABELS,)
    if rarest is not None and len(rarest.values) <= _LISTED_VALUES:
        labels = [(rarest.key, value) for value in rarest.values]
    elif rarest is not None:
        labels = ((rarest.key, None),)
    elif present := [requirement.key for requirement in selector.requirements if requirement.operator == EXISTS]:
        labels = ((present[0], None),)
    listed: Iterable[str | None] = (None,)
    if namespaces is not None and len(namespaces) <= _LISTED_NAMESPACES:
        listed = namespaces
    for namespace in listed:
        for key, value in labels:
            yield namespace, key, value
