"""What has happened so far, as the watches told it: where pods are, since when, how fast. Pure.

                      ┌─ Refusal ──► WAITING ─┐
    Pod ──► PENDING ──┤                       ├─ Pod with a node ──► BOUND ──► Gone
                      └───────────────────────┘

Times are seconds of one monotonic clock, taken when an event arrived here. They are not the scheduler's own word.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.demo.facts import Fact, Gone, Node, Pod, Refusal


@dataclass(slots=True)
class Placement:
    """One pod and its way to a node."""

    pod: Pod
    seen: float
    """When it was created."""
    bound: float | None = None
    refusal: str = ""
    """The last FailedScheduling message, kept after it is bound."""

    @property
    def waiting(self) -> bool:
        """Whether it was refused and has no node since."""
        return self.bound is None and bool(self.refusal)

    @property
    def seconds(self) -> float | None:
        """From creation to bind, None if it is not bound."""
        return None if self.bound is None else self.bound - self.seen


@dataclass(frozen=True, slots=True)
class Burst:
    """Pods that were bound, and the time in which there was something to bind."""

    pods: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Pods a second."""
        return self.pods / self.seconds if self.seconds > 0 else 0.0


class Model:
    """The state of the play. `apply` takes facts in the order in which they arrived."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.placements: dict[str, Placement] = {}
        self.bound: list[Placement] = []
        """The pods in the order in which they were bound, those that are gone since included."""
        self.joined: dict[str, float] = {}
        """When nodes were first seen."""
        self.best_rate = 0.0
        """The most pods bound within a second."""
        self._times: list[float] = []  # of `bound`
        self._pending: set[str] = set()
        self._busy = 0.0
        self._busy_since = 0.0

    def apply(self, at: float, fact: Fact) -> None:
        """Take in one fact that arrived at time `at`."""
        if self._pending:
            self._busy += at - self._busy_since
        self._busy_since = at
        match fact:
            case Node():
                self.nodes[fact.name] = fact
                self.joined.setdefault(fact.name, at)
            case Pod():
                self._pod(at, fact)
            case Refusal():
                self._refused(fact)
            case Gone(kind, name):
                self._gone(kind, name)

    def in_zones(self) -> dict[str, list[Node]]:
        """The nodes by zone, all in order of their names."""
        zones: dict[str, list[Node]] = {}
        for node in sorted(self.nodes.values(), key=lambda node: (node.zone, natural(node.name))):
            zones.setdefault(node.zone, []).append(node)
        return zones

    def on_nodes(self) -> dict[str, dict[str, list[Pod]]]:
        """The pods by node and Deployment."""
        result: dict[str, dict[str, list[Pod]]] = {name: {} for name in self.nodes}
        for placement in self.placements.values():
            pod = placement.pod
            if pod.node in result:
                result[pod.node].setdefault(pod.app, []).append(pod)
        return result

    def bound_of(self, app: str) -> tuple[int, int]:
        """How many pods of a Deployment are bound, and how many there are."""
        placements = [placement for placement in self.placements.values() if placement.pod.app == app]
        return sum(placement.bound is not None for placement in placements), len(placements)

    def apps(self) -> list[str]:
        """The Deployments that have pods, in order of appearance."""
        return list(Counter(placement.pod.app for placement in self.placements.values()))

    def waiting(self) -> list[Placement]:
        """The pods that were refused and have no node."""
        return [placement for placement in self.placements.values() if placement.waiting]

    def waited(self) -> list[Placement]:
        """The pods that were refused at some time, bound or not."""
        return [placement for placement in self.placements.values() if placement.refusal]

    def rate(self, now: float, window: float = 1.0) -> float:
        """Pods bound a second, over the last `window` seconds."""
        return (bisect_right(self._times, now) - bisect_right(self._times, now - window)) / window

    def history(self, now: float, buckets: int, width: float) -> list[int]:
        """Pods bound in each of the last `buckets` spans of `width` seconds, oldest first.

        Spans begin at multiples of `width`, so that a bar does not change its height as it moves.
        """
        end = math.floor(now / width) + 1
        edges = [bisect_right(self._times, (end - buckets + i) * width) for i in range(buckets + 1)]
        return [later - earlier for earlier, later in pairwise(edges)]

    def total(self) -> Burst:
        """All pods bound, and the seconds in which a pod was there that had no answer yet."""
        return Burst(len(self.bound), self._busy)

    def since(self, earlier: Burst) -> Burst:
        """What `total` has grown by since it was `earlier`."""
        now = self.total()
        return Burst(now.pods - earlier.pods, now.seconds - earlier.seconds)

    def bound_since(self, earlier: Burst) -> list[Placement]:
        """The pods that were bound since `total` was `earlier`."""
        return self.bound[earlier.pods :]

    def latencies(self) -> list[float]:
        """Seconds from creation to bind, ascending, of the pods that were not refused first."""
        return sorted(p.seconds for p in self.bound if p.seconds is not None and not p.refusal)

    def _pod(self, at: float, pod: Pod) -> None:
        placement = self.placements.setdefault(pod.name, Placement(pod, seen=at))
        placement.pod = pod
        if not pod.node:
            if not placement.refusal:
                self._pending.add(pod.name)
        elif placement.bound is None:
            placement.bound = at
            self._pending.discard(pod.name)
            self.bound.append(placement)
            self._times.append(at)
            self.best_rate = max(self.best_rate, self.rate(at))

    def _refused(self, refusal: Refusal) -> None:
        placement = self.placements.get(refusal.pod)
        if placement and placement.bound is None:  # else it is a late report of an attempt before the last
            placement.refusal = refusal.message
            self._pending.discard(refusal.pod)

    def _gone(self, kind: str, name: str) -> None:
        if kind == "Node":
            self.nodes.pop(name, None)
        else:
            self.placements.pop(name, None)
            self._pending.discard(name)


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The nearest rank: the smallest value that `percent` of them do not exceed; 0 if there are none.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50), percentile([1.0, 2.0, 3.0, 4.0], 99)
    (2.0, 4.0)
    """
    if not ascending:
        return 0.0
    return ascending[max(0, math.ceil(percent / 100 * len(ascending)) - 1)]


def natural(name: str) -> tuple[str, int]:
    """A key that puts `a-10` behind `a-9`."""
    prefix, _, number = name.rpartition("-")
    return (prefix, int(number)) if number.isdecimal() else (name, 0)
