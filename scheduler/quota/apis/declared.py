"""The shares of a plugin's arguments: a tree for clusters without any objects that describe one.

The first share in the list that a pod matches counts. A resource that no share of a tree names has no limit there. A
root that names only a maximum has that much: there is no share that it could borrow from.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

from scheduler.api.label_selectors import parse_label_selector
from scheduler.api.objects import labels_of
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import PODS
from scheduler.api.quota.quota_amounts import amounts_in
from scheduler.api.wording.text import shortened
from scheduler.framework.events import NAMESPACE
from scheduler.framework.shares import DECLARED, DeclaredShare, ShareKey, ShareRefusal
from scheduler.quota.adapter import Adapter, Asked
from scheduler.quota.policies import NOTHING_EVICTED, Policy, Preemption
from scheduler.quota.sentences import refused
from scheduler.quota.tree import Share, ShareTree, resources_of
from scheduler.state.objects import ObjectStore

MAX_SHOWN: Final = 200
"""Characters of an unreadable value."""


class DeclaredShares(Adapter):
    """The shares of the arguments."""

    source = DECLARED

    def __init__(self, shares: Sequence[DeclaredShare], objects: ObjectStore) -> None:
        super().__init__()
        self._objects = objects
        self._shares, self._faults = _read(shares)
        self._preemptions = {
            each.name: Preemption(within_share=Policy(each.within_share), reclaim_within_cohort=Policy(each.reclaim))
            for each in shares
        }
        self._counts_pods = any(PODS in resources_of(share) for share in self._shares)
        self._selecting = [
            (share, parse_label_selector(share.namespace_selector)) for share in shares if _selects(share)
        ]
        self._labels = tuple(sorted({label for share in shares for label in share.pod_labels}))

    @property
    def reads(self) -> Hashable:
        return self.source, self._labels

    def declared(self) -> tuple[Sequence[Share], Mapping[str, str]]:
        return self._shares, self._faults

    def said(self, pod: Pod) -> Hashable:
        if not self._labels:
            return None
        labels = labels_of(pod.metadata) or {}
        return tuple([labels.get(label) for label in self._labels])

    def find(self, namespace: str, said: Hashable) -> str:
        labels = dict(zip(self._labels, said, strict=True)) if isinstance(said, tuple) else {}
        for share, selector in self._selecting:
            if not share.pod_labels.items() <= labels.items():
                continue
            if namespace in share.namespaces or (share.namespace_selector is None and not share.namespaces):
                return share.name
            if share.namespace_selector is not None and selector.matches(self._labels_of(namespace)):
                return share.name
        return ""

    def amounts(self, said: Hashable, requests: Mapping[str, int], pods: int) -> Mapping[str, int]:
        return {**requests, PODS: pods} if self._counts_pods else requests

    def wanted(self, tree: ShareTree, name: str, asked: Asked) -> Mapping[str, int]:
        return tree.limited(name, asked.need.requests, asked.need.pods)

    def fits(self, tree: ShareTree, name: str, requests: Mapping[str, int]) -> bool:
        return tree.fits(name, self.amounts(None, requests, 1), only_named=True)

    def refusal(self, tree: ShareTree, name: str, asked: Asked) -> ShareRefusal | None:
        amounts = self.wanted(tree, name, asked)
        if tree.fits(name, amounts):
            return None
        return refused(ShareKey(self.source, name), tree, amounts, asked.need.pods)

    @property
    def evicts(self) -> bool:
        return any(each.evicts for each in self._preemptions.values())

    def preemption(self, name: str) -> Preemption:
        return self._preemptions.get(name, NOTHING_EVICTED)

    def listen(self, changed: Callable[[Share | None], None]) -> None:
        if not any(share.namespace_selector is not None for share, _ in self._selecting):
            return

        def namespace_changed(old: object, new: object) -> None:
            if _labels(old) != _labels(new):
                changed(None)

        self._ends = [self._objects.subscribe(NAMESPACE, namespace_changed)]

    def _labels_of(self, namespace: str) -> Mapping[str, str] | None:
        found = self._objects.get(NAMESPACE, namespace)
        return None if found is None else labels_of(found.metadata)


def _labels(namespace: object) -> Mapping[str, str] | None:
    metadata = getattr(namespace, "metadata", None)
    return None if metadata is None else labels_of(metadata)


def _selects(share: DeclaredShare) -> bool:
    return bool(share.namespaces or share.pod_labels) or share.namespace_selector is not None


def _read(shares: Sequence[DeclaredShare]) -> tuple[Sequence[Share], Mapping[str, str]]:
    read, faults = [], {}
    for each in shares:
        try:
            minimum, maximum = amounts_in(each.minimum), amounts_in(each.maximum)
            share = Share(
                name=each.name,
                parent=each.parent,
                minimum=minimum if each.parent else {**maximum, **minimum},
                maximum=maximum,
                borrowing_limit=amounts_in(each.borrowing_limit),
                lending_limit=amounts_in(each.lending_limit),
                weight=each.weight,
                priority=each.priority,
            )
        except ValueError as error:
            faults[each.name] = f"its quantities cannot be read: {shortened(str(error), MAX_SHOWN)}"
        else:
            read.append(share)
    return tuple(read), faults
