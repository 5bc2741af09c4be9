"""Who gives quota back, by the path that the plugin takes: pods that run in a ledger with declared policies."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from scheduler.api.objects import PodStatus
from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import NO_POD_GROUPS
from scheduler.framework.shares import DisruptionBudgets, ReclaimVictims
from scheduler.quota.adapter import Asked
from scheduler.quota.apis.declared import DeclaredShares
from scheduler.quota.ledger import Ledger
from scheduler.quota.needs import Need
from scheduler.quota.policies import NOTHING_EVICTED, Preemption
from scheduler.quota.reclaim.fair_targets import Reckon
from scheduler.quota.reclaim.pods import QuotaRequest
from scheduler.quota.reclaim.policy_reclaim import PolicyReclaim
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit, RunningPods
from scheduler.quota.share_refs import ShareRef
from scheduler.quota.tree import ShareTree
from scheduler.state.eviction_order import EvictionOrder
from scheduler.state.objects import ObjectStore
from scheduler.state.share_usage import ShareSelector
from scheduler.testing import a_pod

START: Final = datetime(2026, 1, 1, tzinfo=UTC)

Fits = Callable[[Collection[str]], bool]
"""Says whether the preemptor finds its nodes without the pods of these names."""


def found_everywhere(_: Collection[str]) -> bool:
    """Find nodes in any case."""
    return True


class NoBudgets:
    """Implements DisruptionBudgets where there are none."""

    def allow(self, pods: Sequence[Pod]) -> bool:
        return True

    def use(self, pods: Sequence[Pod]) -> bool:
        return False


class _Table(DeclaredShares):
    """Pods that run count with what their units use, all others with what they ask for."""

    def __init__(self, preemptions: Mapping[str, Preemption]) -> None:
        super().__init__((), ObjectStore())
        self._of_table = preemptions

    def amounts(self, said: object, requests: Mapping[str, int], pods: int) -> Mapping[str, int]:
        return dict(said) if isinstance(said, tuple) else requests

    def preemption(self, name: str) -> Preemption:
        return self._of_table.get(name, NOTHING_EVICTED)


def a_ledger(tree: ShareTree, preemptions: Mapping[str, Preemption]) -> Ledger:
    """Return a ledger with this tree; `preemptions` by share."""
    ledger = Ledger(_Table(preemptions))
    ledger.tree = tree
    return ledger


class Reclaiming:
    """A ledger with pods. The tree's usage is the caller's."""

    def __init__(
        self,
        ledger: Ledger,
        units: Iterable[QuotaUnit],
        reckon: Reckon | None = None,
    ) -> None:
        self._ledger = ledger
        self._reckon = reckon
        self._order = EvictionOrder(())
        self._units: dict[str, QuotaUnit] = {}
        self._pods: dict[str, Pod] = {}
        for unit in units:
            self.add(unit)

    def add(self, unit: QuotaUnit) -> None:
        pod = self._pods[unit.uid] = pod_of(unit)
        self._units[unit.uid] = unit
        self._order.put(pod, ShareSelector(unit.share))

    def remove(self, unit: QuotaUnit) -> None:
        self._order.remove(unit.uid)
        del self._units[unit.uid], self._pods[unit.uid]

    def victims(
        self,
        preemptor: Preemptor,
        fits: Fits = found_everywhere,
        budgets: Callable[[], DisruptionBudgets] = NoBudgets,
        leaving: Collection[str] = (),
    ) -> list[QuotaUnit]:
        """Return who goes in addition to those that are `leaving` already, the least important first."""
        pod = _created(a_pod("claim", uid="claim", priority=preemptor.priority), preemptor.queued_at)
        asked = Asked(Need(pod, (pod.uid,), preemptor.request, 1), None)
        return self.victims_for(preemptor.share, asked, fits, budgets, leaving)

    def victims_for(
        self,
        share: str,
        asked: Asked,
        fits: Fits = found_everywhere,
        budgets: Callable[[], DisruptionBudgets] = NoBudgets,
        leaving: Collection[str] = (),
    ) -> list[QuotaUnit]:
        ledger = self._ledger
        selectors = {name: [ShareSelector(name)] for name in ledger.tree.shares}
        running = partial(RunningPods, self._order, selectors)
        request = QuotaRequest(ledger, share, asked, self._ref_of, NO_POD_GROUPS)
        reclaim = PolicyReclaim(request, ledger.adapter.preemption(share), running, self._reckon)
        with reclaim.without([self._pods[uid] for uid in leaving]):
            found: ReclaimVictims = reclaim.fewest(None, budgets, lambda gone: fits({pod.uid for pod in gone}))
        return [self._units[pod.uid] for pod in reversed(found.pods)]

    def _ref_of(self, pod: Pod) -> ShareRef | None:
        unit = self._units.get(pod.uid)
        return None if unit is None else ShareRef(self._ledger, unit.share, tuple(unit.usage.items()))


def pod_of(unit: QuotaUnit) -> Pod:
    """Return a pod with a node."""
    status = PodStatus(start_time=START + timedelta(seconds=unit.started))
    pod = a_pod(unit.uid, uid=unit.uid, priority=unit.priority, node_name="n", status=status)
    return _created(pod, unit.queued_at)


def _created(pod: Pod, seconds: float) -> Pod:
    created = (START + timedelta(seconds=seconds)).isoformat()
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, creation_timestamp=created))
