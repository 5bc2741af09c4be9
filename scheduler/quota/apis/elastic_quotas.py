"""ElasticQuota of scheduler-plugins: one for each namespace, which borrows of all others up to the sum of all minima.

It has two API groups: its own, and the one that it had first, which Koordinator serves. Both are read. Of several
quotas in a namespace the oldest counts.

Rule: pkg/capacityscheduling of scheduler-plugins (PreFilter; cmp2 in elasticquota.go).
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from scheduler.api.objects import ObjectMeta, ResourceList
from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler.api.quota.elastic_quotas import ElasticQuota
from scheduler.api.quota.quota_amounts import amounts_in
from scheduler.api.wording.text import shortened
from scheduler.framework.events import ELASTIC_QUOTA, ELASTIC_QUOTA_SIGS
from scheduler.framework.shares import ShareKey, ShareLack, ShareRefusal
from scheduler.quota.adapter import Adapter, Asked
from scheduler.quota.policies import BY_MINIMUM, Preemption
from scheduler.quota.reservations import Rank
from scheduler.quota.sentences import in_words
from scheduler.quota.tree import Share, ShareTree
from scheduler.state.objects import ObjectStore

SOURCES: Final = (ELASTIC_QUOTA, ELASTIC_QUOTA_SIGS)

ALL: Final = "all elastic quotas"
"""The root of the tree. No quota has such a name."""

MAX_RESOURCES: Final = 100
"""That a quota names: each of them costs time."""

MAX_SHOWN: Final = 200
"""Characters of an unreadable value."""

_ALWAYS: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""Resources that are compared even where a pod asks for none. Where a quota leaves one out, there is none of it."""


class ElasticQuotas(Adapter):
    """The shares of ElasticQuotas. There are no policies."""

    source = ELASTIC_QUOTA

    def __init__(self, objects: ObjectStore) -> None:
        super().__init__()
        self._objects = objects

    def quotas(self) -> Iterator[tuple[str, ElasticQuota]]:
        """Yield each quota, with the resource that it is read from."""
        for source in SOURCES:
            for quota in self._of(source, None):
                yield source, quota

    def in_use(self, namespace: str) -> tuple[str, ElasticQuota] | None:
        """Return the quota of a namespace that counts, with the resource that it is read from."""
        found = [(source, quota) for source in SOURCES for quota in self._of(source, namespace)]
        return min(found, key=_age, default=None)

    def declared(self) -> tuple[Sequence[Share], Mapping[str, str]]:
        shares, faults = [Share(name=ALL)], {}
        by_namespace: dict[str, list[tuple[str, ElasticQuota]]] = {}
        for source, quota in self.quotas():
            by_namespace.setdefault(quota.metadata.namespace, []).append((source, quota))
        for found in by_namespace.values():
            first, *others = sorted(found, key=_age)
            name = name_of(first[1])
            for each in {name_of(quota) for _, quota in others} - {name}:
                faults[each] = f'the namespace has an older one, "{name}", which counts alone'
            try:
                shares.append(_share(first[1]))
            except ValueError as error:
                faults[name] = shortened(str(error), MAX_SHOWN)
        return shares, faults

    def find(self, namespace: str, said: Hashable) -> str:
        found = self.in_use(namespace)
        return "" if found is None else name_of(found[1])

    def amounts(self, said: Hashable, requests: Mapping[str, int], pods: int) -> Mapping[str, int]:
        return requests

    def wanted(self, tree: ShareTree, name: str, asked: Asked) -> Mapping[str, int]:
        return asked.need.requests

    def fits(self, tree: ShareTree, name: str, requests: Mapping[str, int]) -> bool:
        if not tree.fits(name, requests):
            return False
        maximum = tree.shares[name].maximum
        for each in _ALWAYS:
            if not requests.get(each):
                limit = maximum.get(each)
                if tree.usage(ALL, each) > tree.quota(ALL, each) or (
                    limit is not None and tree.usage(name, each) > limit
                ):
                    return False
        return True

    def refusal(self, tree: ShareTree, name: str, asked: Asked) -> ShareRefusal | None:
        requests = asked.need.requests
        if self.fits(tree, name, requests):
            return None
        lacks = _excess(name, tree.shares[name].maximum.get, partial(tree.usage, name), requests, is_limit=True)
        if lacks:
            reason = f"ElasticQuota {name.partition('/')[0]} is more than Max"
        else:
            lacks = _excess(ALL, partial(tree.quota, ALL), partial(tree.usage, ALL), requests, is_limit=False)
            if not lacks:
                return None
            reason = "total ElasticQuota used is more than min"
            lacks = [msgspec.structs.replace(each, borrowers=tree.borrowers(ALL, each.resource)) for each in lacks]
        key, pods, subject = ShareKey(self.source, name), asked.need.pods, str(asked.need.pod)
        if pods > 1:
            message = f"{pods} pods that start together are rejected in PreFilter because {reason}"
            return ShareRefusal(key, f"{message}: {in_words(key, lacks)}", tuple(lacks))
        return ShareRefusal(key, f"Pod {subject} is rejected in PreFilter because {reason}", tuple(lacks), subject)

    def goes_ahead(self, tree: ShareTree, reserved: Rank, request: Rank) -> bool:
        """Of the same quota if it is as important; of others if these are within their minimum. Rule: usedOverMin.

        One that was woken to borrow does not go ahead of what another quota is guaranteed. Where shares go before
        priorities, what others borrow goes ahead of those that borrow, too.
        """
        if reserved.kept or reserved.share not in tree.shares:
            return reserved.kept > 0 and reserved.goes_ahead_of(request)
        if reserved.share == request.share:
            return reserved.goes_ahead_of(request)
        if reserved.woken and reserved.borrows and not request.borrows:
            return False
        goes_by_share = reserved.by_share and reserved.borrows <= request.borrows
        return goes_by_share or not tree.holds_more(reserved.share, tree.resources)

    def preemption(self, name: str) -> Preemption:
        return BY_MINIMUM

    def object_of(self, name: str) -> tuple[str, ObjectMeta] | None:
        namespace, _, quota = name.partition("/")
        for source in SOURCES:
            for each in self._of(source, namespace):
                if each.metadata.name == quota:
                    return source, each.metadata
        return None

    def listen(self, changed: Callable[[Share | None], None]) -> None:
        def quota_changed(old: ElasticQuota | None, new: ElasticQuota | None) -> None:
            if old is None or new is None or old.metadata.uid != new.metadata.uid:
                changed(None)
            elif old.spec != new.spec:
                changed(self._share_in_use(new))

        self._ends = [self._objects.subscribe(source, quota_changed) for source in SOURCES]

    def _share_in_use(self, quota: ElasticQuota) -> Share | None:
        """Return the share of a quota; None if another one counts in its namespace, or it cannot be read."""
        found = self.in_use(quota.metadata.namespace)
        try:
            return _share(quota) if found is not None and found[1] is quota else None
        except ValueError:
            return None

    def _of(self, source: str, namespace: str | None) -> Sequence[ElasticQuota]:
        try:
            return tuple(self._objects.list(source, namespace))
        except LookupError:  # no profile watches it (any more)
            return ()


def name_of(quota: ElasticQuota) -> str:
    """Return the name of a quota's share."""
    return f"{quota.metadata.namespace}/{quota.metadata.name}"


def _share(quota: ElasticQuota) -> Share:
    """Return what a quota declares. Raises ValueError for a quantity that cannot be read."""
    spec = quota.spec
    for kind, given in (("min", spec.min), ("max", spec.max)):
        if given is not None and len(given) > MAX_RESOURCES:
            raise ValueError(f"its {kind} has {len(given)} resources, must have at most {MAX_RESOURCES}")
    none = dict.fromkeys(_ALWAYS, 0)
    maximum = {} if spec.max is None else {**none, **_amounts(spec.max)}
    return Share(name=name_of(quota), parent=ALL, minimum={**none, **_amounts(spec.min)}, maximum=maximum)


def _amounts(resources: ResourceList | None) -> dict[str, int]:
    amounts = amounts_in(resources)
    amounts.pop(PODS, None)  # pods are not counted, as there
    return amounts


def _age(found: tuple[str, ElasticQuota]) -> tuple[str, str, str]:
    source, quota = found
    return quota.metadata.creation_timestamp or "", quota.metadata.name, source


def _excess(
    name: str,
    limit_of: Callable[[str], int | None],
    usage_of: Callable[[str], int],
    amounts: Mapping[str, int],
    *,
    is_limit: bool,
) -> list[ShareLack]:
    """Return by how much amounts in addition to the usage exceed limits."""
    lacks = []
    for resource in (*_ALWAYS, *(each for each in amounts if each not in _ALWAYS)):
        limit = limit_of(resource)
        if limit is not None and (missing := usage_of(resource) + amounts.get(resource, 0) - limit) > 0:
            lacks.append(ShareLack(name, resource, missing, is_limit))
    return lacks
