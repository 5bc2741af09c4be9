"""The age of the oldest pod of each part of the queue."""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from scheduler.framework.queued import QueuedPod

_created = attrgetter("created")


def oldest_ages(pending: Mapping[str, Sequence[QueuedPod]], now: float) -> Iterator[tuple[str, float]]:
    """Yield part of the queue, seconds since its oldest pod came into the queue; 0 if it has none.

    Looks at every pod. Which one is the oldest changes with nearly every pop, so keeping track of it would cost more,
    on every pop and add, than one pass per scrape.
    """
    for name, pods in pending.items():
        yield name, max(0.0, now - min(map(_created, pods), default=now))
