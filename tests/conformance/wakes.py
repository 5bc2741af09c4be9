"""Whether a refused pod is tried again as soon as something has happened that lets it go somewhere.

    python -m tests.conformance.wakes --cases 20000

A case is one change of a generated cluster in which pods wait. Afterwards each pod that was refused before is decided
about anew: one that fits now must have been moved by the queue, whichever plugins had refused it. Otherwise it would
wait for the next flush, five minutes. The last line has the numbers of cases, of pods that a change helped, of those
that were missed, and of pods that were moved in vain.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import plugins
from scheduler.api.objects import node_from_dict
from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.config.load import config_from_dict
from scheduler.config.types import Config
from scheduler.cycle.algorithm import Unplaced, unplaced_by
from scheduler.cycle.failure import FailureHandler, as_scheduler_error
from scheduler.engine.engine import build_engine
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError, SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.process.metrics import Metrics
from scheduler.runtime.event_stream import EventStream
from scheduler.simulate.other_objects import OtherObject, OtherObjects
from tests.conformance.generators.changes import Change, ChangingCluster
from tests.conformance.generators.topic import Draw, Json
from tests.fakes import FakeClock, FakeWorld, next_pod

CHANGES: Final = 25
"""In a row, of one cluster."""

METRICS: Final = Metrics()
"""Shared: making them takes longer than a case."""

_NODE, _POD = "Node", "Pod"


class Missed(NamedTuple):
    """A pod that fits and was left where it was."""

    seed: int
    number: int
    """Of the change since the cluster was generated."""
    what: str
    pod: str
    rejectors: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"seed {self.seed}, change {self.number}: {self.what}: {self.pod}, refused by {', '.join(self.rejectors)}"
        )


@dataclass
class Tally:
    """What came out of all cases."""

    cases: int = 0
    asked: int = 0
    """Refused pods, once for each change."""
    helped: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    """By what changed and by the plugins that had refused the pod."""
    vain: Counter[str] = field(default_factory=Counter)
    """Pods that were moved and do not fit, by what changed."""
    missed: list[Missed] = field(default_factory=list)

    def last_line(self) -> str:
        return (
            f"{self.cases} cases, {self.asked} refused pods, {self.helped.total()} helped, {len(self.missed)} missed, "
            f"{self.vain.total()} moved in vain"
        )


class Waiting:
    """The engine over a cluster, with all pods that fit nowhere in its queue, and no other pod."""

    def __init__(self, config: Config) -> None:
        self.clock = FakeClock()
        writers = FakeWorld().writers
        self.engine = engine = build_engine(config, plugins.IN_TREE, writers, METRICS, self.clock)
        self.failure = FailureHandler(
            engine.queue,
            engine.nominator,
            engine.pods,
            writers,
            METRICS,
            EventStream(),
            engine.frameworks,
        )

    def take_in(self, change: Change) -> None:
        """What the watch would report."""
        made = change.new or change.old
        assert made is not None
        handlers = self.engine.handlers
        match made["kind"], change.new is None:
            case "Node", False:
                handlers.node_changed(node_from_dict(made))
            case "Node", True:
                handlers.node_deleted(node_from_dict(made))
            case "Pod", False:
                handlers.pod_changed(pod_from_dict(made))
            case "Pod", True:
                handlers.pod_deleted(pod_from_dict(made))
            case _:
                self._take_in_other(made, is_gone=change.new is None)

    def _take_in_other(self, made: Json, *, is_gone: bool) -> None:
        handlers = self.engine.object_handlers
        for resource, decoded in OtherObjects([OtherObject("", made["kind"], made)]).take(self.engine.watched):
            (handlers.object_deleted if is_gone else handlers.object_changed)(resource, decoded)

    def waiting(self) -> Iterator[Pod]:
        """The pods without a node that are ours."""
        for pod in tuple(self.engine.pods.values()):
            if not (pod.node_name or pod.is_deleting) and pod.spec.scheduler_name in self.engine.frameworks:
                yield pod

    def refused(self) -> dict[str, tuple[str, ...]]:
        """UID → the plugins that refused the pod, of those that wait for an event."""
        pending = self.engine.queue.pending_pods()
        return {queued.pod.uid: rejectors_of(queued) for queued in (*pending["unschedulable"], *pending["gated"])}

    def decide(self, pod: Pod) -> Unplaced | SchedulerError | None:
        """Why the pod fits nowhere; None if it does. It stays where it is, and nobody has to yield."""
        engine = self.engine
        if engine.cache.table.count == 0:
            return Unplaced("no nodes")
        framework = engine.frameworks[pod.spec.scheduler_name]
        try:
            search = engine.algorithm.search(framework, CycleState(), pod)
        except (PluginError, SchedulerError) as error:
            return as_scheduler_error(error)
        return None if len(search.feasible) else unplaced_by(search.diagnosis, None)

    def fits(self, pod: Pod) -> bool:
        """Whether a fresh attempt would place the pod."""
        framework = self.engine.frameworks[pod.spec.scheduler_name]
        return all(plugin.pre_enqueue(pod) is None for plugin in framework.pre_enqueue) and self.decide(pod) is None

    def settle(self, *, anew: bool) -> None:
        """Try the pods that are to be tried, `anew` all of them, and leave those in the queue that fit nowhere."""
        queue = self.engine.queue
        for pod in self.waiting():
            if pod.uid not in queue:
                queue.add(pod)
        if anew:
            queue.activate(self.refused())
        popped = []
        while (queued := next_pod(queue)) is not None:
            popped.append(queued)
        for queued in popped:
            self.end(queued, self.decide(queued.pod))
        # One whose attempt ended in an error waits for its backoff only.
        for queued in queue.pending_pods()["backoff"]:
            queue.delete(queued.pod)

    def end(self, queued: QueuedPod, cause: Unplaced | SchedulerError | None) -> None:
        """Hand a popped pod back; one that fits leaves the queue, and no room is taken for it."""
        if cause is None:
            self.engine.queue.done(queued.pod.uid)
        else:
            self.failure.handle(queued.pod.spec.scheduler_name, queued, cause, 0.0)

    def take_off(self, uid: str) -> tuple[QueuedPod, Unplaced | SchedulerError | None] | None:
        """Begin an attempt for a refused pod, and decide; the outcome is not handed back yet. None if it is gated."""
        queue = self.engine.queue
        queue.activate([uid])
        queued = next_pod(queue)
        return None if queued is None else (queued, self.decide(queued.pod))


def rejectors_of(queued: QueuedPod) -> tuple[str, ...]:
    """The plugins that refused a pod."""
    return tuple(sorted({*queued.unschedulable_plugins, *queued.pending_plugins}))


def try_out(seed: int, changes: int, tally: Tally) -> None:
    """Change one generated cluster so often."""
    draw = Draw(f"wakes of {seed}")
    cluster = ChangingCluster(draw)
    waiting = Waiting(config_from_dict(cluster.config, plugins.IN_TREE))
    try:
        for made in cluster.objects.values():
            waiting.take_in(Change("", None, made))
        waiting.settle(anew=True)
        for number in range(changes):
            before = waiting.refused()
            # An event may come while the attempt that is to fail is still under way.
            flying = waiting.take_off(draw.choice(sorted(before))) if before and draw.chance(0.2) else None
            change = cluster.change()
            waiting.take_in(change)
            if flying is not None:
                waiting.end(*flying)
            missed = judge(waiting, change, before, seed, number, tally)
            waiting.settle(anew=missed or draw.chance(0.5))
            waiting.clock.advance(60)
    finally:
        waiting.engine.close()


def judge(
    waiting: Waiting, change: Change, before: dict[str, tuple[str, ...]], seed: int, number: int, tally: Tally
) -> bool:
    """Count what became of the pods that were refused before a change; return whether one was missed."""
    missed = False
    tally.cases += 1
    still = waiting.refused()
    for pod in waiting.waiting():
        rejectors = before.get(pod.uid)
        if rejectors is None:
            continue
        tally.asked += 1
        if waiting.fits(pod):
            tally.helped[change.what, rejectors] += 1
            if pod.uid in still:
                missed = True
                tally.missed.append(Missed(seed, number, change.what, str(pod), still[pod.uid]))
        elif pod.uid not in still:
            tally.vain[change.what] += 1
    return missed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.wakes")
    parser.add_argument("--cases", type=int, default=1_000, help="how many changes (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the first cluster (default 1)")
    parser.add_argument("--details", action="store_true", help="say what helped whom")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # generated clusters are full of errors
    tally, seed, started = Tally(), options.seed, time.monotonic()
    while tally.cases < options.cases:
        try_out(seed, min(CHANGES, options.cases - tally.cases), tally)
        seed += 1
    for each in tally.missed:
        print(each)
    if options.details:
        print_details(tally)
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    print(tally.last_line())
    return 1 if tally.missed else 0


def print_details(tally: Tally) -> None:
    """Print what helped and what was in vain, the most frequent first."""
    tables: dict[str, Counter[Any]] = {
        "missed": Counter((each.what, each.rejectors) for each in tally.missed),
        "helped": tally.helped,
        "moved in vain": tally.vain,
    }
    for title, counts in tables.items():
        print(f"\n{title}:")
        for what, count in counts.most_common(60):
            print(f"{count:>8}  {what if isinstance(what, str) else f'{what[0]}: ' + ', '.join(what[1])}")


if __name__ == "__main__":
    sys.exit(main())
