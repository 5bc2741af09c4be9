"""Writes the status of Kueue's ClusterQueues where Kueue does not run, if the argument `kueueStatus` asks for it.

    the gauges look ─► SharesSeen ─► each ClusterQueue: is its status right? ─no─► patched

A pod is a workload here. Rule: pkg/controller/core/clusterqueue_controller.go of Kueue.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from scheduler.api.quota import kueue as api
from scheduler.api.wording.spelling import quantity
from scheduler.api.wording.text import timestamp
from scheduler.cycle.status_writer import StatusWriter, Target
from scheduler.engine.engine import Engine
from scheduler.explain.documents import ShareAmounts, ShareReport, SharesSeen
from scheduler.framework.events import CLUSTER_QUEUE
from scheduler.framework.handle import ApiWriter
from scheduler.process.tasks import Tasks

if TYPE_CHECKING:  # loaded only where queues are used
    from scheduler.quota.apis.kueue_quotas import Queue

MAX_QUEUES: Final = 500
"""Of which the status is kept, as metrics are."""

ACTIVE: Final = "Active"

_NONE: Final = {"pendingWorkloads": 0, "reservingWorkloads": 0, "admittedWorkloads": 0}


class QueueStatuses:
    """Writes them after each look at the shares."""

    def __init__(self, engine: Engine, writer: ApiWriter, tasks: Tasks, now: Callable[[], float] = time.time) -> None:
        """`now`: seconds since 1970."""
        self._engine = engine
        self._now = now
        self._seen: Mapping[str, tuple[Queue, ShareReport, int]] = {}
        """By ClusterQueue; the number is that of its pods with a node."""
        self._writer = StatusWriter[str](engine.objects, writer, tasks, self._target, self._status, kind="quota")
        engine.stream.subscribe({SharesSeen: self._note})

    def _note(self, seen: SharesSeen) -> None:
        if not self._engine.share_parts.keeps_queue_statuses:
            return
        running, shares = self._running(), {each.name: each for each in seen.shares if each.source == CLUSTER_QUEUE}
        queues = [each for each in self._queues() if each.share in shares][:MAX_QUEUES]
        self._seen = {each.name: (each, shares[each.share], running[each.share]) for each in queues}
        for name in self._seen:
            self._writer.mark(name)
        self._writer.write()

    def _running(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for usage in self._engine.shares.usage.usages():
            ref = self._engine.shares.ref(usage.selector)
            if ref is not None and ref.ledger.source == CLUSTER_QUEUE:
                found[ref.name] += usage.pods
        return found

    def _queues(self) -> Iterator["Queue"]:
        from scheduler.quota.apis.kueue import KueueQueues

        for ledger in self._engine.shares.ledgers:
            if isinstance(ledger.adapter, KueueQueues):
                yield from ledger.adapter.quotas.queues.values()

    def _target(self, name: str) -> Target | None:
        try:
            found: api.ClusterQueue | None = self._engine.objects.get(CLUSTER_QUEUE, name)
        except LookupError:  # no profile watches them any more
            return None
        return None if found is None else Target(CLUSTER_QUEUE, "", name, found.metadata.uid)

    def _status(self, name: str, newest: api.ClusterQueue) -> dict[str, Any] | None:
        """Return the status to write; None if it is as it should be."""
        seen = self._seen.get(name)
        if seen is None:
            return None
        queue, share, running = seen
        usage = tuple(_usage(newest, {each.resource: each for each in share.resources}))
        status = api.ClusterQueueStatus(
            conditions=self._conditions(newest, queue),
            flavors_reservation=usage,
            flavors_usage=usage,
            pending_workloads=share.waiting,
            reserving_workloads=running,
            admitted_workloads=running,
        )
        return None if status == newest.status else {**_NONE, **msgspec.to_builtins(status)}

    def _conditions(self, newest: api.ClusterQueue, queue: "Queue") -> tuple[api.Condition, ...]:
        problem = queue.problem
        message = f"Can't admit new workloads: {problem}" if problem else "Can admit new workloads"
        before = newest.status.conditions or ()
        former = next((each for each in before if each.type == ACTIVE), api.Condition())
        wanted = api.Condition(
            type=ACTIVE,
            status="False" if problem else "True",
            reason=queue.reason,
            message=message,
            observed_generation=newest.metadata.generation,
        )
        since = former.last_transition_time if former.status == wanted.status else timestamp(self._now())
        wanted = msgspec.structs.replace(wanted, last_transition_time=since)
        return (*(each for each in before if each.type != ACTIVE), wanted)


def _usage(newest: api.ClusterQueue, amounts: Mapping[str, ShareAmounts]) -> Iterator[api.FlavorUsage]:
    for group in newest.spec.resource_groups or ():
        for flavor in group.flavors or ():
            yield api.FlavorUsage(
                flavor.name,
                tuple(
                    _of_resource(each, amounts.get(f"{flavor.name}/{each}"))
                    for each in sorted(group.covered_resources or ())
                ),
            )


def _of_resource(name: str, amounts: ShareAmounts | None) -> api.ResourceUsage:
    used, borrowed = (0, 0) if amounts is None else (amounts.used, amounts.borrowed)
    return api.ResourceUsage(name, quantity(name, used), quantity(name, borrowed))
