"""Can a crowd hold everybody else back? A simulation with a fake clock: `python -m tests.bench.starvation`.

A crowd of pods of high priority fits nowhere; each of them has been refused once already. Events wake all of them,
time and again. Then pods of low priority come, all at once, and each of them would fit. The scheduler makes a fixed
number of attempts a second. Printed with the rule of scheduler.queue.fairness, and with strict priority, as in
kube-scheduler: the simulated seconds from the arrival of the low pods until the first and until the last of them is
tried, and which share of the attempts the crowd got in that time.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from plugins.priority_sort import PrioritySort
from scheduler.framework.events import NODE, Action, ClusterEvent, ClusterEventWithHint
from scheduler.framework.queued import QueuedPod
from scheduler.process.metrics import Metrics
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue.settings import QueueSettings
from scheduler.state.nominator import Nominator
from scheduler.testing import a_pod
from tests.fakes import next_pod

PROFILE: Final = "loadmaster"
FIT: Final = "Fit"
NODE_GREW: Final = ClusterEvent(NODE, Action.UPDATE_NODE_ALLOCATABLE)
EVENTS: Final[Mapping[str, Mapping[str, Sequence[ClusterEventWithHint]]]] = {
    PROFILE: {FIT: [ClusterEventWithHint(NODE_GREW)]}
}
"""A plain yes: every pod of the crowd is woken by every event."""

HIGH, LOW = 100, 0
ARRIVAL: Final = 5.0
"""Seconds after the start at which the low pods come."""

CROWDS: Final = (1_000, 5_000, 20_000)
EVENT_RATES: Final = (1, 10, 100)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is simulated."""

    crowd: int
    """Number of pods of high priority that never fit."""

    low: int = 100
    """Number of pods of low priority, each of which fits."""

    attempts_a_second: int = 100
    events_a_second: int = 10
    """At most one an attempt."""

    starvation_seconds: float = 10.0
    """Infinity for strict priority."""

    patience: float = 300.0
    """Seconds after the arrival of the low pods at which the simulation ends, if it has not before."""


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    waits: list[float] = field(default_factory=list)
    """Seconds from arrival to attempt of the low pods that were tried, in the order in which they were."""

    attempts: int = 0
    """Of anybody, from the arrival of the low pods on."""

    @property
    def crowd_share(self) -> float:
        return 1 - len(self.waits) / self.attempts if self.attempts else 0.0


def simulate(scenario: Scenario) -> Outcome:
    """Run until every low pod was tried, or patience ends."""
    ticks = _Ticks(scenario)
    queue = SchedulingQueue(
        QueueSettings(PrioritySort(), {PROFILE: ()}, EVENTS, starvation_seconds=scenario.starvation_seconds),
        Metrics(),
        Nominator(),
        ticks.now,
    )
    for number in range(scenario.crowd):
        queue.add(a_pod(f"crowd-{number}", priority=HIGH, scheduler_name=PROFILE))
        if (queued := next_pod(queue)) is not None:
            refuse(queue, queued)
    outcome = Outcome()
    arrival = round(ARRIVAL * scenario.attempts_a_second)
    for tick in ticks:
        if tick == arrival:
            for number in range(scenario.low):
                queue.add(a_pod(f"low-{number}", priority=LOW, scheduler_name=PROFILE))
        ticks.let_time_act(queue)
        queued = next_pod(queue)
        if queued is None:
            continue
        outcome.attempts += tick >= arrival
        if queued.pod.priority == HIGH:
            refuse(queue, queued)
            continue
        queue.done(queued.pod.uid)
        outcome.waits.append((tick - arrival) / scenario.attempts_a_second)
        if len(outcome.waits) == scenario.low:
            break
    return outcome


class _Ticks:
    """Time in steps of one attempt."""

    def __init__(self, scenario: Scenario) -> None:
        self._rate = scenario.attempts_a_second
        self._event_rate = scenario.events_a_second
        self._end = round((ARRIVAL + scenario.patience) * self._rate)
        self._tick = 0

    def now(self) -> float:
        return 1_000 + self._tick / self._rate

    def __iter__(self) -> Iterator[int]:
        for tick in range(1, self._end + 1):
            self._tick = tick
            yield tick

    def let_time_act(self, queue: SchedulingQueue) -> None:
        """Flush and wake, if either is due before this tick's attempt."""
        if self._tick % self._rate == 0:
            queue.flush_backoff_completed()
        if self._tick * self._event_rate // self._rate > (self._tick - 1) * self._event_rate // self._rate:
            queue.move_all(NODE_GREW, None, None)


def refuse(queue: SchedulingQueue, queued: QueuedPod) -> None:
    """Hand a pod back as the scheduling cycle does when no node has room."""
    queued.unschedulable_plugins = {FIT}
    queue.add_unschedulable_if_not_present(queued)


def row(scenario: Scenario) -> str:
    """One line of the table."""
    outcome = simulate(scenario)
    rule = "strict priority" if scenario.starvation_seconds == math.inf else "Loadmaster's"
    never = f"not in {scenario.patience:.0f}"
    first = f"{outcome.waits[0]:.1f}" if outcome.waits else never
    last = f"{outcome.waits[-1]:.1f}" if len(outcome.waits) == scenario.low else never
    tried = f"{len(outcome.waits)} of {scenario.low}"
    return (
        f"| {scenario.crowd:,} | {scenario.events_a_second} | {rule} | {tried} | {first} | {last} "
        f"| {outcome.crowd_share:.0%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--crowd", type=int, nargs="*", default=CROWDS, help="sizes")
    parser.add_argument("--events", type=int, nargs="*", default=EVENT_RATES, help="a second")
    options = parser.parse_args()
    print("| crowd | events/s | rule | low pods tried | first after, s | last after, s | attempts on the crowd |")
    print("|---:|---:|---|---:|---:|---:|---:|")
    for crowd in options.crowd:
        for events in options.events:
            for seconds in (10.0, math.inf):
                print(row(Scenario(crowd, events_a_second=events, starvation_seconds=seconds)))


if __name__ == "__main__":
    main()
