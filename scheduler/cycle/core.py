"""The parts that the loop, the watch's handlers and the wings share, for as long as the program runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.failure import FailureHandler
from scheduler.cycle.listeners import PodListeners
from scheduler.cycle.pauses import Pauses
from scheduler.cycle.resizes import NO_RESIZES, Resizes
from scheduler.cycle.writers import Writers
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.framework import Framework
from scheduler.state.cache import Cache
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore
from scheduler.state.preemptions import Preemptions


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """The scheduler's state, and those who decide about it and write of it."""

    frameworks: Mapping[str, Framework]
    """The profiles at work by name."""

    pods: dict[str, Pod]
    """UID → newest version that the watch has shown, of every pod that has not ended."""

    objects: ObjectStore
    cache: Cache
    nominator: Nominator
    preemptions: Preemptions
    queue: SchedulingQueue
    algorithm: Algorithm
    failure: FailureHandler
    listeners: PodListeners
    pauses: Pauses
    writers: Writers
    metrics: Metrics
    stream: EventStream
    tasks: Tasks
    now: Callable[[], float]
    """The queue's clock, in seconds, monotonic."""

    resizes: Resizes = NO_RESIZES
