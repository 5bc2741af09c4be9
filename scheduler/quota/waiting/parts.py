"""The parts of the engine that shares need: connected while a profile has the plugin CapacityScheduling.

Without it none of them is made, or even loaded, and no pod pays for them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scheduler.api.read_only import NOTHING
from scheduler.config.defaults import CAPACITY_SCHEDULING
from scheduler.cycle.core import Core
from scheduler.framework.arguments import arguments_of
from scheduler.process.metrics import Samples
from scheduler.process.reporting import Due
from scheduler.quota.adapters import AdaptedShares, QuotaListener
from scheduler.runtime.framework import Framework
from scheduler.state.preemptions import Preemption, Preemptions

if TYPE_CHECKING:  # loaded once there are shares
    from scheduler.quota.ledger import Ledger
    from scheduler.quota.share_orders import ShareOrder
    from scheduler.quota.waiting.reports import ShareReports
    from scheduler.quota.waiting.statuses import QuotaStatuses
    from scheduler.quota.waiting.waker import Waker

PAUSE: Final = 1.0
"""Seconds in which changes are collected."""

RETRY: Final = 300.0
"""Seconds after which pods are woken, whatever has changed: as the queue does with all others."""


class _Parts(NamedTuple):
    waker: "Waker"
    statuses: "QuotaStatuses"
    reports: "ShareReports"


class ShareParts:
    """Connects them, also while the program runs."""

    def __init__(self, core: Core, shares: AdaptedShares, preemptions: Preemptions) -> None:
        self.shares = shares
        self.keeps_queue_statuses = False
        """Whether the plugin asks for the status of Kueue's ClusterQueues."""
        self._parts: _Parts | None = None
        """None until there are any shares."""
        self._core = core
        self._clock = core.now
        self._due = Due(PAUSE)
        self._retry_at = core.now() + RETRY
        self._arguments: Mapping[str, Any] | None = None
        self._order_settings: tuple[Any, ...] = ()
        preemptions.subscribe(self._preemption_ended)

    @property
    def waker(self) -> "Waker | None":
        """Wakes the pods that are pending for quota."""
        return None if self._parts is None else self._parts.waker

    def use(self, frameworks: Mapping[str, Framework]) -> None:
        """Have shares as these profiles ask for them: all that do have the same arguments."""
        plugins = [each.plugins.by_name.get(CAPACITY_SCHEDULING) for each in frameworks.values()]
        plugin: Any = next((each for each in plugins if each is not None), None)
        arguments = None if plugin is None else arguments_of(plugin)
        if arguments == self._arguments:
            return
        self._arguments = arguments
        if plugin is None:
            self._end()
            return
        self._parts = self._parts or self._begin(plugin)
        self.keeps_queue_statuses = plugin.kueue_status
        waker = self._parts.waker
        self._put_in_order(plugin, waker)
        self._core.cache.listen(self.shares.usage)
        self._core.listeners.add(waker)
        self.shares.listen(waker)
        is_fair = plugin.order == "DominantShare"
        self.shares.use(self._ledgers(plugin), self._core.cache.counted_pods, is_fair=is_fair)

    def _begin(self, plugin: Any) -> _Parts:
        from scheduler.quota.waiting.reports import ShareReports
        from scheduler.quota.waiting.statuses import QuotaStatuses
        from scheduler.quota.waiting.waker import Waker

        core, shares = self._core, self.shares
        statuses = QuotaStatuses(shares, core.objects, core.writers.api, core.tasks, self._due.soon)
        reports = ShareReports(shares, core.cache.table, core.writers.object_events)
        return _Parts(Waker(shares, core.queue, self._order_of(plugin), statuses, self._due.soon), statuses, reports)

    def _put_in_order(self, plugin: Any, waker: "Waker") -> None:
        """Let waiting pods have the order that the plugin asks for; if it is the same, what was used before counts."""
        settings = plugin.order, plugin.usage_half_life_seconds, plugin.resource_weights
        order = waker.order if settings == self._order_settings else self._order_of(plugin)
        self._order_settings = settings
        waker.use(order, plugin.pending_reason)

    def _order_of(self, plugin: Any) -> "ShareOrder":
        from scheduler.quota.share_orders import ByDecayedUsage, ByDominantShare, ShareOrder

        match plugin.order:
            case "DecayedUsage":
                return ByDecayedUsage(plugin.usage_half_life_seconds, plugin.resource_weights, self._clock)
            case "DominantShare":
                return ByDominantShare()
            case _:
                return ShareOrder()

    def _preemption_ended(self, preemption: Preemption) -> None:
        """Nothing is kept for its pods any more."""
        if (waker := self.waker) is not None:
            for ref in {ref for pod in preemption.pods if (ref := self.shares.ref_of(pod)) is not None}:
                waker.freed(ref)

    def _end(self) -> None:
        """Without shares nothing waits for them: the queue asks all pods again when the configuration changes."""
        self._core.cache.ignore(self.shares.usage)
        self.shares.listen(QuotaListener())
        if self._parts is not None:
            self._core.listeners.remove(self._parts.waker)
        self._parts = None
        self.keeps_queue_statuses = False
        self._order_settings = ()
        self.shares.use((), tuple)

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Write and report for ever. What is due before this replica leads, is done then."""
        while True:
            await self._due.wait(sleep, RETRY)
            self.catch_up()

    def catch_up(self) -> None:
        """Write and report changes, and retry the entries that are due."""
        if self._parts is None:
            return
        waker, statuses, reports = self._parts
        if (now := self._clock()) >= self._retry_at:
            self._retry_at = now + RETRY
            waker.retry_all()
        if waker.retry():
            self._due.soon()
        statuses.write()
        reports.report()

    def excess(self) -> Samples:
        """Yield source and resource, and how much more is guaranteed to shares together than nodes have."""
        return () if self._parts is None else self._parts.reports.excess()

    def problems(self) -> Samples:
        """Yield each source, and how many of its shares cannot be used."""
        return () if self._parts is None else self._parts.reports.problems()

    def _ledgers(self, plugin: Any) -> "Sequence[Ledger]":
        from scheduler.quota.apis.declared import DeclaredShares
        from scheduler.quota.apis.elastic_quotas import ElasticQuotas
        from scheduler.quota.ledger import Ledger

        objects, amounts_of = self._core.objects, self.shares.usage.amounts_of
        ledgers = [Ledger(DeclaredShares(plugin.shares, objects), amounts_of)] if plugin.shares else []
        if plugin.kueue_queues:
            from scheduler.quota.apis.kueue import KueueQueues

            ledgers.append(Ledger(KueueQueues(objects, self._labels_of_node), amounts_of))
        if plugin.elastic_quotas:
            ledgers.append(Ledger(ElasticQuotas(objects), amounts_of))
        return ledgers

    def _labels_of_node(self, name: str) -> Mapping[str, str]:
        """Return the labels of a node; none of one that is not known (any more)."""
        table = self._core.cache.table
        row = table.row_of(name)
        return NOTHING if row is None else table.info(row).labels
