"""The usage of the pods with a node, for each selector of the cluster.

    (unknown) ──add──► COUNTED ──replace──► COUNTED, of the same selector ──remove──► (unknown)

A pod's selector is the part of it that says to which share it belongs: its namespace, and what the adapters read of it.
It is read when the pod is assumed, or first seen with a node, and kept: editing the labels of a running pod changes
nothing. Which share a selector has is not known here, as that may change while the pods run.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, KeysView, Mapping
from typing import NamedTuple, Protocol

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import requests_of
from scheduler.api.quota.quota_amounts import MAX
from scheduler.state.cache import CountListener
from scheduler.state.eviction_order import EvictionOrder


class ShareSelector(NamedTuple):
    """The fields of a pod that decide its share."""

    namespace: str
    said: tuple[Hashable, ...] = ()
    """The things that each adapter reads of a pod, in their order."""


class Usage:
    """The usage of the pods of one selector."""

    __slots__ = ("amounts", "pods", "selector")

    def __init__(self, selector: ShareSelector) -> None:
        self.selector = selector
        self.amounts: dict[str, int] = {}
        """Resource → amount, as `Pod.requests` has them."""

        self.pods = 0

    def add(self, amounts: Mapping[str, int], pods: int, sign: int) -> None:
        """Add what pods ask for together, or take it off: 1 or -1."""
        self.pods += sign * pods
        mine = self.amounts
        for name, amount in amounts.items():
            mine[name] = mine.get(name, 0) + sign * amount
            if not mine[name]:
                del mine[name]  # anyone who creates pods chooses the names


def amounts_of(pod: Pod) -> Mapping[str, int]:
    """Return what a pod counts with: its requests. One that overflows counts as much as there can be."""
    resources = pod.resources
    requests: Mapping[str, int] = requests_of(resources)
    if resources.overflown:
        return {**requests, **dict.fromkeys(resources.overflown, MAX)}
    return requests


class Counting(Protocol):
    """Counts more of a pod with a node than its requests."""

    def count(self, pod: Pod) -> Mapping[str, int]:
        """Return what a pod counts with from now on."""

    def forget(self, uid: str) -> None:
        """A pod counts no longer."""


class ShareUsage(CountListener):
    """The usage of all selectors. Listens to the cache."""

    def __init__(
        self,
        selector_of: Callable[[Pod], ShareSelector],
        changed: Callable[[str, ShareSelector, Mapping[str, int], int, bool], None],
    ) -> None:
        """`changed(uid, selector, amounts, sign, is_what_if)` is called for each pod that is added or removed: ±1."""
        self._selector_of = selector_of
        self._changed = changed
        self._usages: dict[ShareSelector, Usage] = {}
        self._counting: Counting | None = None
        """None: pods count with their requests."""
        self._pods: dict[str, tuple[Usage, Mapping[str, int]]] = {}
        """UID → the usage that it is part of, and its amounts there."""
        self.leaving: set[str] = set()
        """The UIDs of those of them that are being deleted."""
        self.order: EvictionOrder | None = None
        """The same pods, without those that are only assumed for a decision, in the order in which they would be
        evicted; None if no policy evicts any."""

    def add(self, pod: Pod, *, is_what_if: bool = False) -> None:
        """Count a pod that has a node, or is assumed to."""
        selector = self._selector_of(pod)
        self._add(pod.uid, selector, self._count(pod), is_what_if=is_what_if)
        self._note_leaving(pod)
        if self.order is not None and not is_what_if:
            self.order.put(pod, selector)

    def replace(self, pod: Pod) -> None:
        """Take over a new version of a pod, of which only the amounts count."""
        counted = self._pods.get(pod.uid)
        if counted is None:
            self.add(pod)
            return
        self._note_leaving(pod)
        usage, before = counted
        amounts = self._count(pod)
        if amounts != before:
            # In this order: what it has is not free in between.
            self._add(pod.uid, usage.selector, amounts, is_what_if=False)
            self._take_off(pod.uid, usage, before, is_what_if=False)
        if self.order is not None:
            self.order.put(pod, usage.selector)

    def remove(self, uid: str, *, is_what_if: bool = False) -> None:
        """Count a pod no longer."""
        counted = self._pods.pop(uid, None)
        if counted is None:
            return
        self.leaving.discard(uid)
        if self._counting is not None:
            self._counting.forget(uid)
        self._take_off(uid, *counted, is_what_if=is_what_if)
        if self.order is not None:
            self.order.remove(uid)

    # The cache's listener.

    def pod_counted(self, pod: Pod, *, is_assumed: bool, is_what_if: bool) -> None:
        self.add(pod, is_what_if=is_what_if)

    def pod_confirmed(self, pod: Pod) -> None:
        self.replace(pod)

    def pod_uncounted(self, pod: Pod, *, is_what_if: bool) -> None:
        self.remove(pod.metadata.uid, is_what_if=is_what_if)

    def check_counted(self, uids: Collection[str]) -> None:
        assert self.uids() == uids

    def count_with(self, counting: Counting | None) -> None:
        """Count pods in another way from now on: `restart` is next."""
        self._counting = counting

    def keep_order(self, pods: Callable[[], Iterable[Pod]] | None) -> None:
        """Keep the `order` from now on, or none; `pods` returns those that are counted."""
        if pods is None:
            self.order = None
        elif self.order is None:
            counted = ((pod, self.selector_of(pod.uid)) for pod in pods())
            self.order = EvictionOrder((pod, selector) for pod, selector in counted if selector is not None)

    def restart(self, pods: Iterable[Pod]) -> None:
        """Begin again with these pods, of which the selectors are read again. Nothing is called, no order is kept."""
        self.order = None
        self._usages.clear()
        self._pods.clear()
        self.leaving.clear()
        for pod in pods:
            self._put(pod.uid, self._selector_of(pod), self._count(pod))
            self._note_leaving(pod)

    def selector_of(self, uid: str) -> ShareSelector | None:
        """Return the selector of a pod that is counted; None if it is not."""
        counted = self._pods.get(uid)
        return None if counted is None else counted[0].selector

    def amounts_of(self, pod: Pod) -> Mapping[str, int]:
        """Return what a pod is counted with; of one that is not, what it asks for itself."""
        counted = self._pods.get(pod.uid)
        return amounts_of(pod) if counted is None else counted[1]

    def uids(self) -> KeysView[str]:
        """Every pod that is counted. A live view."""
        return self._pods.keys()

    def counted(self) -> Iterator[tuple[ShareSelector, Mapping[str, int]]]:
        """Yield the selector and the amounts of each pod that is counted."""
        return ((usage.selector, amounts) for usage, amounts in self._pods.values())

    def usages(self) -> Iterable[Usage]:
        """Return the usage of each selector that has pods: a live view."""
        return self._usages.values()

    def of(self, selector: ShareSelector) -> Usage | None:
        """Return the usage of a selector; None if it has no pods."""
        return self._usages.get(selector)

    def _add(self, uid: str, selector: ShareSelector, amounts: Mapping[str, int], *, is_what_if: bool) -> None:
        self._put(uid, selector, amounts)
        self._changed(uid, selector, amounts, 1, is_what_if)

    def _take_off(self, uid: str, usage: Usage, amounts: Mapping[str, int], *, is_what_if: bool) -> None:
        usage.add(amounts, 1, -1)
        if not usage.pods:
            del self._usages[usage.selector]
        self._changed(uid, usage.selector, amounts, -1, is_what_if)

    def _count(self, pod: Pod) -> Mapping[str, int]:
        return amounts_of(pod) if self._counting is None else self._counting.count(pod)

    def _put(self, uid: str, selector: ShareSelector, amounts: Mapping[str, int]) -> None:
        usage = self._usages.get(selector)
        if usage is None:
            usage = self._usages[selector] = Usage(selector)
        usage.add(amounts, 1, 1)
        self._pods[uid] = usage, amounts

    def _note_leaving(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self.leaving.add(pod.uid)

    def check_invariants(self) -> None:
        """The sums are those of the pods. For tests and debugging."""
        assert self.leaving <= self._pods.keys()
        again: dict[ShareSelector, Usage] = {}
        for usage, amounts in self._pods.values():
            again.setdefault(usage.selector, Usage(usage.selector)).add(amounts, 1, 1)
            assert self._usages[usage.selector] is usage
        assert again.keys() == self._usages.keys()
        for selector, usage in self._usages.items():
            assert again[selector].pods == usage.pods, selector
            assert again[selector].amounts == usage.amounts, selector
        if self.order is not None:
            self.order.check_invariants()
