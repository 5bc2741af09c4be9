"""The part of the configuration that the queue uses. All of it may change while pods wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from scheduler.framework.events import ClusterEventWithHint
from scheduler.framework.plugin import PreEnqueuePlugin, QueueSortPlugin
from scheduler.queue.backoff_queue import Backoff

MAX_IN_UNSCHEDULABLE_PODS: Final = 5 * 60.0
"""Seconds after which a refused pod is tried again by default without an event, as one may have been missed."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Plugins and times."""

    sort: QueueSortPlugin
    pre_enqueue: Mapping[str, Sequence[PreEnqueuePlugin]]
    """Profile → plugins."""

    rejector_events: Mapping[str, Mapping[str, Sequence[ClusterEventWithHint]]]
    """Profile → plugin → events that may help the pods that it refused."""

    backoff: Backoff = field(default_factory=Backoff)
    starvation_seconds: float = 10.0
    """See scheduler.queue.fairness."""

    leftover_seconds: float = MAX_IN_UNSCHEDULABLE_PODS
    """After which a refused pod is tried again without an event."""
