"""The parts of the engine that shares need: connected while a profile has the plugin CapacityScheduling.

Without it none of them is made, or even loaded, and no pod pays for them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.config.defaults import CAPACITY_SCHEDULING
from scheduler.cycle.failure import FailureHandler
from scheduler.cycle.handlers import ClusterEventHandlers
from scheduler.framework.arguments import arguments_of
from scheduler.framework.pod_groups import PodGroups
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.framework import Framework
from scheduler.shares.adapters import AdaptedShares
from scheduler.state.cache import Cache
from scheduler.state.objects import ObjectStore

if TYPE_CHECKING:  # loaded once there are shares
    from scheduler.cycle.shares.waits import ShareWaits
    from scheduler.shares.ledger import Ledger


class ShareParts:
    """Connects them, also while the program runs."""

    def __init__(
        self,
        shares: AdaptedShares,
        groups: PodGroups,
        objects: ObjectStore,
        cache: Cache,
        queue: SchedulingQueue,
        handlers: ClusterEventHandlers,
        failure: FailureHandler,
    ) -> None:
        self.shares = shares
        self.waits: ShareWaits | None = None
        """The pods that wait for their shares; None until there are any shares."""
        self._groups = groups
        self._objects = objects
        self._cache = cache
        self._queue = queue
        self._handlers = handlers
        self._failure = failure
        self._arguments: Mapping[str, Any] | None = None

    def use(self, frameworks: Mapping[str, Framework]) -> None:
        """Have shares as these profiles ask for them: all that do have the same arguments."""
        plugins = [each.plugins.by_name.get(CAPACITY_SCHEDULING) for each in frameworks.values()]
        plugin = next((each for each in plugins if each is not None), None)
        arguments = None if plugin is None else arguments_of(plugin)
        if arguments == self._arguments:
            if self.waits is not None:
                self.waits.restart()  # the queue may have another order
            return
        self._arguments = arguments
        if plugin is None:
            self._end()
            return
        if self.waits is None:
            self._begin()
        self._cache.shares = self.shares.usage
        self.shares.use(self._ledgers(plugin), self._cache.counted_pods)

    def _begin(self) -> None:
        from scheduler.cycle.shares.waits import ShareWaits

        waits = self.waits = ShareWaits(self.shares, self._groups, self._queue)
        self.shares.waiting, self.shares.placed = waits.refusal, waits.placed
        self.shares.freed, self.shares.redeclared = waits.freed, waits.redeclared
        self._failure.failed, self._handlers.waits = waits.failed, waits

    def _end(self) -> None:
        """Without shares nothing waits for them: the queue asks all pods again when the configuration changes."""
        self._cache.shares = self._failure.failed = self._handlers.waits = self.waits = None
        self.shares.waiting = self.shares.placed = self.shares.freed = self.shares.redeclared = None
        self.shares.use((), tuple)

    def _ledgers(self, plugin: Any) -> "Sequence[Ledger]":
        from scheduler.shares.declared import DeclaredShares
        from scheduler.shares.elastic_quotas import ElasticQuotas
        from scheduler.shares.ledger import Ledger

        ledgers = [Ledger(DeclaredShares(plugin.shares, self._objects))] if plugin.shares else []
        if plugin.elastic_quotas:
            ledgers.append(Ledger(ElasticQuotas(self._objects)))
        return ledgers
