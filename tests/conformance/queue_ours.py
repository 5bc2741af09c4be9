"""Loadmaster's answer to a script for the queue: done with our queue what `oracle/queue.go` does with kube-scheduler's.

The state of a pod is a line of text, equal on both sides; times are ticks since the start of the script.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.failure import FailureHandler
from scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    HintFunction,
    QueueingHint,
)
from scheduler.framework.plugin import PreEnqueuePlugin, QueueSortPlugin
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Status, unresolvable
from scheduler.process.metrics import Metrics
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue.settings import QueueSettings
from scheduler.runtime.event_stream import EventStream
from scheduler.state.nominator import Nominator
from tests.fakes import FakeClock, FakeWorld, next_pod

Json = dict[str, Any]
State = dict[str, str]

TICKS: Final = 512
"""In a second. A power of two: sums of ticks are exact in floats."""

START: Final = 1_000_000.0
METRICS: Final = Metrics()
"""Shared: making them takes longer than a script."""


def run_script(script: Json) -> list[State]:
    """Return for each operation what it changed: pod, or an aspect in parentheses, to its new state."""
    run = QueueRun(script["profiles"])
    steps, before = [], State()
    for operation in script["operations"]:
        run.clock.advance(1 / TICKS)
        run.execute(operation)
        run.queue.check_invariants()
        after = run.state()
        steps.append(changes(before, after))
        before = after
    return steps


class QueueRun:
    """Our queue, with what the handlers and the loop keep beside it."""

    def __init__(self, profiles: Json) -> None:
        self.clock = FakeClock(START)
        self.nominator = Nominator()
        self.pods: dict[str, Pod] = {}
        """UID → newest version; also what the failure handler looks at."""
        self.flying: list[QueuedPod] = []
        self.binding: list[QueuedPod] = []
        self.gates = {gate: Gate(gate) for profile in profiles.values() for gate in profile["gates"]}
        gates = {name: [self.gates[gate] for gate in profile["gates"]] for name, profile in profiles.items()}
        events = {name: registered(profile["plugins"]) for name, profile in profiles.items()}
        self.queue = SchedulingQueue(
            # Without a rule against starvation, which kube-scheduler does not have.
            QueueSettings(PrioritySort(), gates, events, starvation_seconds=math.inf),
            METRICS,
            self.nominator,
            self.clock,
        )
        self.failure = FailureHandler(
            self.queue, self.nominator, self.pods, FakeWorld().writers, METRICS, EventStream(), gates
        )

    def execute(self, operation: Json) -> None:
        """Do what the handlers, the loop or the flushers would do; nothing for a pod that is not there."""
        getattr(self, operation["do"].replace(" ", "_"))(operation)

    def add(self, operation: Json) -> None:
        pod = pod_from_dict(operation["pod"])
        if pod.uid not in self.pods:
            self.pods[pod.uid] = pod
            self.queue.add(pod)

    def update(self, operation: Json) -> None:
        pod = pod_from_dict(operation["pod"])
        old = self.pods.get(pod.uid)
        if old is None:
            return
        self.pods[pod.uid] = pod
        if not any(queued.pod.uid == pod.uid for queued in self.binding):
            self.queue.update(old, pod)

    def delete(self, operation: Json) -> None:
        self._forget(uid_of(operation["name"]))

    def pop(self, _: Json) -> None:
        queued = next_pod(self.queue)
        if queued is not None:
            self.flying.append(queued)

    def fail(self, operation: Json) -> None:
        self._fail(take(self.flying, operation["which"]), operation)

    def fail_binding(self, operation: Json) -> None:
        self._fail(take(self.binding, operation["which"]), operation)

    def bind(self, operation: Json) -> None:
        queued = take(self.flying, operation["which"])
        if queued is not None:
            self.nominator.delete(queued.pod.uid)
            self.queue.done(queued.pod.uid)
            self.binding.append(queued)

    def bound(self, operation: Json) -> None:
        queued = take(self.binding, operation["which"])
        if queued is not None:
            self._forget(queued.pod.uid)

    def move(self, operation: Json) -> None:
        old, new = (pod_from_dict(operation[key]) if operation.get(key) else None for key in ("old", "new"))
        limit = operation.get("upTo")
        pre_check = None if limit is None else lambda pod: pod.priority <= limit
        self.queue.move_all(decode_event(operation["event"], UPDATES_THAT_HAPPEN), old, new, pre_check)

    def activate(self, operation: Json) -> None:
        self.queue.activate([uid for uid in map(uid_of, operation["names"]) if uid in self.pods])

    def open(self, operation: Json) -> None:
        for name, gate in self.gates.items():
            gate.is_open = name in operation["names"]

    def advance(self, operation: Json) -> None:
        self.clock.advance(operation["ticks"] / TICKS)

    def flush(self, _: Json) -> None:
        self.queue.flush_backoff_completed()

    def flush_leftover(self, _: Json) -> None:
        self.queue.flush_unschedulable_leftover()

    def _forget(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self.queue.delete(pod)

    def _fail(self, queued: QueuedPod | None, operation: Json) -> None:
        if queued is None:
            return
        rejectors, pending = (frozenset(operation.get(key, ())) for key in ("unschedulable", "pending"))
        cause = Unplaced("no", rejectors, pending, operation.get("nominate"))
        self.failure.handle(queued.pod.spec.scheduler_name, queued, cause, 0.0)

    def state(self) -> State:
        """Say of each pod where it is and what the queue remembers of it."""
        pods = self.queue.pending_pods()
        state = {queued.pod.name: describe("active", queued) for queued in pods["active"]}
        for queued in pods["backoff"]:
            until = ticks(queued.backoff_expiration)
            state[queued.pod.name] = f"{describe('backoff', queued)} until={until}"
        for queued in (*pods["unschedulable"], *pods["gated"]):
            place = f"gated by {queued.gating_plugin}" if queued.gated else "unschedulable"
            state[queued.pod.name] = describe(place, queued)
        for queued in self.flying:
            state[queued.pod.name] = describe("in flight", queued)
        if [queued.pod.uid for queued in self.queue.in_flight_pods()] != [queued.pod.uid for queued in self.flying]:
            raise AssertionError("the pods in flight are not those that were popped")
        state["(active)"] = " ".join(queued.pod.name for queued in sorted(pods["active"], key=sort_key))
        state["(nominated)"] = "; ".join(
            f"{node}: {' '.join(pod.name for pod in promised)}" for node, promised in sorted(self.nominator.by_node())
        )
        return state


class PrioritySort(QueueSortPlugin):
    name = "PrioritySort"

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return sort_key(a) < sort_key(b)

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        return sort_key(queued)


class Gate(PreEnqueuePlugin):
    """Holds pods whose label `gate` is its name, or, if it is called SchedulingGates, those that have any."""

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name
        self.is_open = False

    def pre_enqueue(self, pod: Pod) -> Status | None:
        holds = pod.labels.get("gate") == self.name
        if self.name == "SchedulingGates":
            holds = bool(pod.spec.scheduling_gates)
        return unresolvable("gated") if holds and not self.is_open else None


def sort_key(queued: QueuedPod) -> tuple[int, float]:
    return (-queued.pod.priority, queued.timestamp)


def registered(plugins: Mapping[str, Sequence[Json]]) -> Mapping[str, Sequence[ClusterEventWithHint]]:
    """Plugin → what may help the pods that it refused."""
    return {name: [registration(name, each) for each in events] for name, events in plugins.items()}


def registration(plugin: str, script: Json) -> ClusterEventWithHint:
    event = decode_event(script["event"], UPDATES_TO_WATCH)
    if not script["hint"]:
        return ClusterEventWithHint(event)
    key = (lambda pod: pod.labels.get("app")) if script.get("shape") else None
    return ClusterEventWithHint(event, scripted_hint(plugin), key)


def scripted_hint(plugin: str) -> HintFunction:
    """Answers what the label `hint.<plugin>` of the object says; see the oracle's `queue_plugins.go`."""

    def hint(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        thing = new or old
        if thing is None:
            raise ValueError("no object")
        answer = thing.labels.get(f"hint.{plugin}")
        if answer == "error":
            raise ValueError("scripted")
        other = answer == "match" and thing.labels.get("app") != pod.labels.get("app")
        return QueueingHint.SKIP if answer == "skip" or other else QueueingHint.QUEUE

    return hint


ACTIONS: Final = {"".join(word.capitalize() for word in (action.name or "").split("_")): action for action in Action}
UPDATES_TO_WATCH: Final = ACTIONS | {"Update": Action.UPDATE, "All": Action.ALL}
UPDATES_THAT_HAPPEN: Final = ACTIONS | {"Update": Action.UPDATE_OTHER}
"""kube-scheduler's general Update is all kinds of updates at once and matches only who watches all; ours is a kind."""


def decode_event(script: Json, actions: Mapping[str, Action]) -> ClusterEvent:
    action = Action(0)
    for name in script["actions"]:
        action |= actions[name]
    return ClusterEvent(script["resource"], action)


def describe(place: str, queued: QueuedPod) -> str:
    """The state of a pod, worded as the oracle words it."""
    first = -1 if queued.initial_attempt_timestamp is None else ticks(queued.initial_attempt_timestamp)
    return (
        f"{place} attempts={queued.attempts} since={ticks(queued.timestamp)} first={first}"
        f" unschedulable={queued.unschedulable_count} errors={queued.consecutive_errors_count}"
        f" by={','.join(sorted(queued.unschedulable_plugins))} pending={','.join(sorted(queued.pending_plugins))}"
        f" flushed={str(queued.was_flushed).lower()} version={queued.pod.metadata.resource_version}"
    )


def ticks(time: float) -> int:
    return int((time - START) * TICKS)


def uid_of(name: str) -> str:
    return f"uid-{name}"


def take(held: list[QueuedPod], which: int) -> QueuedPod | None:
    """Remove and return the one with that number, counted around."""
    return held.pop(which % len(held)) if held else None


def changes(before: State, after: State) -> State:
    """What is new, and what is gone as an empty text."""
    return dict(_changes(before, after))


def _changes(before: State, after: State) -> Iterator[tuple[str, str]]:
    for name in before.keys() | after.keys():
        now = after.get(name, "")
        if now != before.get(name, ""):
            yield name, now
