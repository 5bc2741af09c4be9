"""The cost that a plugin adds to a decision: the same pods on two schedulers in memory, one with the plugin and one
without.

Both are whole schedulers over the same nodes, and take turns, so that other load on the machine affects both. Each pod
is decided, bound, and counts from then on. First the pods are alike, as those of a Deployment, whose stored answers
help; then each has a shape of its own, for which nothing is stored.
"""

import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from msgspec.structs import replace as replace_struct

from scheduler.api.pods.pod import Pod
from scheduler.config.types import Config
from scheduler.framework.errors import ConfigError
from scheduler.framework.plugin import Plugin
from scheduler.plugin_tools.timing import Timings, timed
from scheduler.plugin_tools.workload import collector_at_rest, node_name, numbered_node, numbered_pod
from scheduler.process.virtual_time import NeverAtRest
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.guards.plugin_exits import ended_hangs, refused_exits
from scheduler.runtime.profile import POINTS
from scheduler.runtime.profile_spec import PLUGIN_SETS, PluginRef, Plugins, PluginSet, ProfileSpec
from scheduler.runtime.registry import Registry
from scheduler.testing.handles import DEFAULTS
from scheduler.testing.objects import pod_from_dict
from scheduler.testing.scheduler import Outcome, Scheduler

PODS_A_NODE: Final = 4
"""Pods that run before the first decision."""

DECISIONS: Final = 200
"""Of each workload, if there is time."""

WARM: Final = 20
"""Decisions that are left out: the first ones read what the others find stored."""

BATCH: Final = 20
"""Pods that come at once, so that there is something to sort."""

MOST_PODS: Final = 10_000
"""Of one workload: the numbers of its pods begin at a multiple of it."""

SLOW_SECONDS: Final = 0.02
"""From this on, pods come one by one."""

GRACE_SECONDS: Final = 30.0
"""For what is under way when the time is over; then the program ends, and shows where it hangs."""


@dataclass(frozen=True, slots=True)
class Bench:
    plugin: type[Plugin]
    spec: ProfileSpec
    """The profile with the plugin."""

    registry: Registry
    nodes: int
    node: Mapping[str, Any]
    """A manifest that is laid over the nodes."""

    pod: Mapping[str, Any]
    """A manifest of the pods."""

    seconds: float
    """For all measurements together."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The outcome of one kind of pods. Times are medians over the decisions, in seconds."""

    name: str
    decisions: int
    without: float
    with_plugin: float
    added: float
    """Of the differences, pod by pod: what else the machine does at that moment concerns both."""

    by_point: Mapping[str, float]
    """Extension point → what the plugin's calls took."""

    placed: int
    """How many pods were, also of those that are left out of the times."""

    problems: Mapping[str, int]
    """Why others were not placed, with their number."""


ALIKE: Final = "alike"
DIFFERENT: Final = "different"


def measure(bench: Bench) -> list[Workload]:
    """Measure both workloads. Raises ConfigError if the plugin does not start, or no decision comes to its end."""
    try:
        return _measured(bench)
    except NeverAtRest as error:
        raise ConfigError([f"{bench.plugin.name}: a task runs on without waiting for anything"]) from error


def _measured(bench: Bench) -> list[Workload]:
    with ExitStack() as stack:
        plain = stack.enter_context(_World(bench, _without(bench.spec, bench.plugin.name, bench.registry)).running())
        whole = stack.enter_context(_World(bench, bench.spec).running())
        stack.enter_context(collector_at_rest())
        found = []
        for number, name in enumerate((ALIKE, DIFFERENT), start=1):
            seconds = bench.seconds / 2
            with ended_hangs(seconds + GRACE_SECONDS):
                found.append(_workload(name, plain, whole, number * MOST_PODS, time.monotonic() + seconds))
        return found


def _workload(name: str, plain: "_World", whole: "_World", first: int, until: float) -> Workload:
    """Let pods come to both schedulers until there are enough of them, or the time is over."""
    following, size = first, 1
    while following < first + WARM + DECISIONS and (following == first or time.monotonic() < until):
        numbers = range(following, following + size)
        slowest = max(world.place(numbers, alike=name == ALIKE) for world in (plain, whole))
        following += size
        size = 1 if slowest > SLOW_SECONDS else BATCH
    decided, placed, problems = whole.outcome(range(first, following))
    if not decided:
        raise ConfigError([f"{whole.plugin}: no decision has come to its end"])
    before, after, taken = plain.timings.decisions, whole.timings.decisions, whole.timings.points
    return Workload(
        name,
        len(decided),
        statistics.median(before[uid] for uid in decided),
        statistics.median(after[uid] for uid in decided),
        statistics.median(after[uid] - before[uid] for uid in decided),
        {
            point: statistics.median(taken[uid].get(point, 0.0) for uid in decided)
            for point in {point for uid in decided for point in taken[uid]}
        },
        placed,
        problems,
    )


class _World:
    def __init__(self, bench: Bench, spec: ProfileSpec) -> None:
        self.plugin = bench.plugin.name
        stream = EventStream()
        self.timings = timings = Timings(self.plugin, stream)
        registry = {**bench.registry, self.plugin: timed(bench.plugin, timings)}
        self._scheduler = Scheduler(Config((spec,)), registry, stream=stream)
        self._bench, self._profile = bench, spec.scheduler_name
        self._placed: set[str] = set()
        self._problems: dict[str, str] = {}
        """UID → why a pod was not placed."""

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Start the scheduler, with its nodes and the pods that run there. Raises ConfigError."""
        stack = ExitStack()
        with refused_exits():
            stack.enter_context(self._scheduler)
        try:
            nodes = self._bench.nodes
            self._scheduler.set_node(*(numbered_node(number, self._bench.node) for number in range(nodes)))
            like = self._pod(0, alike=True)
            self._scheduler.create(*(_sibling(like, number, nodes) for number in range(PODS_A_NODE * nodes)))
            yield self
        finally:
            stack.close()

    def place(self, numbers: Iterable[int], *, alike: bool) -> float:
        """Let pods come; return the seconds of the slowest decision. Those that are not placed go again."""
        pods = [self._pod(number, alike=alike) for number in numbers]
        self._scheduler.create(*pods)
        slowest = max(self.timings.decisions.get(pod.uid, 0.0) for pod in pods)
        for pod in pods:
            outcome = self._scheduler.outcome(pod)
            if outcome.node:
                self._placed.add(pod.uid)
                continue
            self._problems[pod.uid] = _problem(outcome)
            self._scheduler.delete(pod)
        return slowest

    def outcome(self, numbers: Iterable[int]) -> tuple[list[str], int, Mapping[str, int]]:
        """Return the UIDs of the pods whose decision is of interest, how many were placed, and why others were not."""
        uids = [f"uid-{number}" for number in numbers]
        decided = [uid for uid in uids if uid in self.timings.decisions]
        problems = Counter(self._problems[uid] for uid in uids if uid in self._problems)
        return decided[min(WARM, len(decided) // 2) :], len(self._placed.intersection(uids)), problems

    def _pod(self, number: int, *, alike: bool) -> Pod:
        return pod_from_dict(numbered_pod(self._bench.pod, number, self._profile, alike=alike))


def _sibling(pod: Pod, number: int, nodes: int) -> Pod:
    """A pod of the same shape that runs on a node."""
    name = f"running-{number}"
    return replace_struct(pod, metadata=replace_struct(pod.metadata, name=name, uid=name)).bound_to(
        node_name(number % nodes)
    )


def _problem(outcome: Outcome) -> str:
    if outcome.held_by:
        return f"held by {', '.join(outcome.held_by)}"
    return f"gated by {outcome.gated_by}" if outcome.gated_by else outcome.message or "not tried"


def _without(spec: ProfileSpec, name: str, registry: Registry) -> ProfileSpec:
    """The profile without a plugin; where none is left that sorts the queue or binds, the default one does."""
    sets = {each: _cut(getattr(spec.plugins, each), name) for each in PLUGIN_SETS}
    for point, default in DEFAULTS.items():
        chosen = sets[point]
        disabled = {ref.name for ref in chosen.disabled}
        general = (ref for ref in sets["multi_point"].enabled if not disabled & {ref.name, "*"})
        if not any(issubclass(registry[ref.name], POINTS[point]) for ref in (*chosen.enabled, *general)):
            sets[point] = PluginSet((PluginRef(default),), chosen.disabled)
    return replace(spec, plugins=Plugins(**sets))


def _cut(chosen: PluginSet, name: str) -> PluginSet:
    return PluginSet(tuple(ref for ref in chosen.enabled if ref.name != name), chosen.disabled)
