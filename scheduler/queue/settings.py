"""What the queue has of the configuration: all of it may change while pods wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from scheduler.framework.events import ClusterEventWithHint
from scheduler.framework.plugin import PreEnqueuePlugin, QueueSortPlugin
from scheduler.queue.backoff_queue import Backoff

MAX_IN_UNSCHEDULABLE_PODS: Final = 5 * 60.0
"""Seconds after which, by default, a refused pod is tried again although nothing happened: an event may be missed."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Plugins and times."""

    sort: QueueSortPlugin
    pre_enqueue: Mapping[str, Sequence[PreEnqueuePlugin]]
    """Profile → plugins."""

    rejector_events: Mapping[str, Mapping[str, Sequence[ClusterEventWithHint]]]
    """Profile → plugin → what may help the pods that it refused."""

    backoff: Backoff = field(default_factory=Backoff)
    starvation_seconds: float = 10.0
    """See scheduler.queue.fairness."""

    leftover_seconds: float = MAX_IN_UNSCHEDULABLE_PODS
    """After which a refused pod is tried again although nothing happened."""
