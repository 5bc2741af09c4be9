"""One scheduling cycle of Kueue's tests, played with our adapter, order and reclaim.

    the first Workload of each ClusterQueue ─► order ─► space? ─► admitted
                                                          └ no ─► victims? ─► they are evicted, and it waits for them

Kueue decides about all of them by what there is when the cycle begins, and skips those for which that has changed at
their turn. Here each is decided about at its turn, as in the engine: by what those before it have left; those that are
evicted count until they are gone, and those for which they are evicted count as nominated.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import msgspec

from scheduler.api.pods.pod import Pod
from scheduler.api.quota import kueue as api
from scheduler.framework.shares import ShareRefusal
from scheduler.quota.adapter import Asked
from scheduler.quota.apis.kueue import KueueQueues
from scheduler.quota.apis.kueue_quotas import CLUSTER_QUEUE_PREFIX
from scheduler.quota.dominant import dominant_share
from scheduler.quota.ledger import Ledger
from scheduler.quota.needs import Need
from scheduler.quota.order import Head
from scheduler.quota.reclaim.running import QuotaUnit
from scheduler.quota.reservations import Reservation
from scheduler.quota.share_orders import ByDominantShare, Candidate, ShareOrder
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_pod
from tests.unit.quota.kueue_objects import BY_TYPE, a_cohort, a_flavor, a_local_queue, a_namespace, a_queue, as_stored
from tests.unit.quota.reclaiming import START, Reclaiming


class Waiting(NamedTuple):
    """A Workload that waits: a pod, or a group of which all start at once."""

    name: str
    share: str
    asked: Asked
    queued_at: float

    @property
    def pod(self) -> Pod:
        return self.asked.need.pod


class Outcome(NamedTuple):
    admitted: dict[str, Mapping[str, int]]
    """Workload → what it takes of which flavor."""

    preempted: set[str]


class _Queues(KueueQueues):
    """Pods that run count with what the table says."""

    def amounts(self, said: Hashable, requests: Mapping[str, int], pods: int) -> Mapping[str, int]:
        return dict(said) if type(said) is tuple else super().amounts(said, requests, pods)


class KueueCycle:
    """The objects, what runs and what waits of one case."""

    def __init__(self, base: Mapping[str, Any], case: Mapping[str, Any]) -> None:
        self._objects = ObjectStore()
        self._objects.watch(BY_TYPE.values())
        self._adapter = _Queues(self._objects, lambda _: {})
        for name in base["flavors"]:
            self._objects.set(*as_stored(a_flavor(name, {"flavor": name})))
        for name, labels in base["namespaces"].items():
            self._objects.set(*as_stored(a_namespace(name, **labels)))
        for name, queue in {**base["queues"], **case.get("queues", {})}.items():
            self._objects.set(*as_stored(a_queue(name, **queue)))
        for name, cohort in case.get("cohorts", {}).items():
            self._objects.set(*as_stored(a_cohort(name, **cohort)))
        for name, queue in {**base["local"], **case.get("local", {})}.items():
            namespace, _, local = name.partition("/")
            self._objects.set(*as_stored(a_local_queue(namespace, local, queue)))
        self._ledger = Ledger(self._adapter)
        self._ledger.renew()
        self._tree = self._ledger.tree
        self._leaving: list[QuotaUnit] = []
        self._reckon = partial(dominant_share, resource_of=self._ledger.resource_of) if case.get("fair") else None
        self._reclaiming = Reclaiming(self._ledger, (), self._reckon)
        waiting = []
        for name, declared in case["workloads"].items():
            if "in" in declared:
                self._run(name, declared)
            else:
                waiting.append(self._waiting(name, declared))
        waiting.sort(key=lambda each: (-each.pod.priority, each.queued_at))
        self._heads = {each.share: each for each in reversed(waiting)}

    def play(self) -> Outcome:
        """Decide about the first of each queue."""
        found, tree = Outcome({}, set()), self._tree
        for each in self._in_order():
            asked = each.asked
            if self._refuses(each) is None:
                found.admitted[each.name] = amounts = self._adapter.wanted(tree, each.share, asked)
                tree.add(each.share, amounts)
                continue
            with self._without(self._leaving):
                if self._refuses(each) is None:
                    continue  # it waits for those
                victims = self._reclaiming.victims_for(each.share, asked)
            if victims:
                found.preempted.update(unit.uid for unit in victims)
                self._leaving += victims
                rank, amounts = self._ledger.rank_of(each.share, asked), self._ledger.wanted(each.share, asked)
                self._ledger.reservations.make(tree, Reservation(rank, asked.need, dict(amounts)))
        return found

    def _refuses(self, waiting: Waiting) -> ShareRefusal | None:
        """Say why there is no space; None if there is."""
        share, asked = waiting.share, waiting.asked
        with self._ledger.seen_by(asked, partial(self._ledger.rank_of, share, asked)):
            return self._adapter.refusal(self._tree, share, asked)

    @contextmanager
    def _without(self, units: Sequence[QuotaUnit]) -> Iterator[None]:
        """Have these gone within a `with` block."""
        for unit in units:
            self._tree.remove(unit.share, unit.usage)
            self._reclaiming.remove(unit)
        try:
            yield
        finally:
            for unit in units:
                self._tree.add(unit.share, unit.usage)
                self._reclaiming.add(unit)

    def _in_order(self) -> Iterator[Waiting]:
        heads = (ShareOrder() if self._reckon is None else ByDominantShare()).heads(lambda _: True)
        for name, each in self._heads.items():
            if name in self._tree.shares:
                head = Head(
                    share=name,
                    uid=each.name,
                    request=self._ledger.wanted(name, each.asked),
                    priority=each.pod.priority,
                    queued_at=each.queued_at,
                )
                heads.offer(Candidate(each, self._ledger, head, head.by_age))
        while (candidate := heads.take()) is not None:
            yield candidate.kind

    def _run(self, name: str, declared: Mapping[str, Any]) -> None:
        unit = QuotaUnit(
            uid=name,
            share=f"{CLUSTER_QUEUE_PREFIX}{declared['in']}",
            usage=declared["uses"],
            priority=declared.get("priority", 0),
            queued_at=declared.get("queued", 0.0),
            started=declared.get("reserved", 0),
        )
        self._tree.add(unit.share, unit.usage)
        self._reclaiming.add(unit)

    def _waiting(self, name: str, declared: Mapping[str, Any]) -> Waiting:
        namespace, _, of_pod = name.partition("/")
        labels = {api.QUEUE_LABEL: declared["queue"]}
        queued = declared.get("queued", 0.0)
        pod = a_pod(of_pod, namespace=namespace, labels=labels, priority=declared.get("priority", 0))
        created = (START + timedelta(seconds=queued)).isoformat()
        metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=created)
        pod = msgspec.structs.replace(pod, metadata=metadata)
        requests: dict[str, int] = {}
        for count, amounts in declared["pods"]:
            for resource, amount in amounts.items():
                requests[resource] = requests.get(resource, 0) + count * amount
        said = self._adapter.said(pod)
        need = Need(pod, (pod.uid,), requests, sum(count for count, _ in declared["pods"]))
        share = self._adapter.find(namespace, said)
        return Waiting(name, share, Asked(need, said), queued)
