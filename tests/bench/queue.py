"""What waiting pods cost, without any I/O: `make bench-queue`.

Pods wait because NodeResourcesFit, NodeAffinity or TaintToleration refused them, alone or two together, and no update
here helps any of them: each asks for more than a node has, for a label that no node gets, and tolerates what no node
has. Pods of one kind differ in their names only. The queue is the one of the default profile, with a clock that stands
still; what is timed is the call of the queue, as the watch makes it, by the CPU time that it takes. Figures are medians
of `--runs` runs.
"""

import argparse
import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Self

import orjson

import plugins
from scheduler.api.objects import Node, node_from_dict
from scheduler.api.pods.pod import Pod, decode_pod
from scheduler.config.load import load_config
from scheduler.cycle.writers import Writers
from scheduler.engine.engine import build_engine
from scheduler.framework.events import ASSIGNED_POD_DELETE, ClusterEvent
from scheduler.framework.queued import QueuedPod
from scheduler.process.metrics import Metrics
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.changes import node_changes
from tests.bench.cycle_world import NoWorld
from tests.fakes import FakeClock

CROWDS: Final = ((10_000, 50), (100_000, 50), (10_000, 10_000))
"""Waiting pods, and how many kinds they have."""

UPDATES_A_SECOND: Final = 1_000
"""The load for which the share of a core is given."""

SECONDS_A_RUN: Final = 1.0
"""A run of updates ends early after this time."""

FIT, AFFINITY, TAINTS = "NodeResourcesFit", "NodeAffinity", "TaintToleration"
REJECTORS: Final = ((FIT,), (AFFINITY,), (TAINTS,), (FIT, TAINTS), (AFFINITY, FIT))
"""Which plugins refused pods of the first kind, of the second, and so on around. A pod's label has its kind."""

Update = tuple[ClusterEvent, Node, Node]


class Waiting:
    """A queue with the plugins of the default profile, and pods in it that were refused once."""

    def __init__(self, rejectors: Sequence[Sequence[str]] = REJECTORS) -> None:
        """`rejectors`: which plugins refuse the pods of the first kind, of the second, and so on around."""
        world = NoWorld()
        self.clock = FakeClock()
        config = load_config(None, plugins.IN_TREE)
        engine = build_engine(config, plugins.IN_TREE, Writers(world, world, world, world), Metrics(), self.clock)
        self.queue: SchedulingQueue = engine.queue
        self._rejectors = rejectors

    def refuse(self, pods: Iterable[Pod]) -> Self:
        """Let an attempt fail for each of `pods`."""
        for pod in pods:
            self.queue.add(pod)
            queued = self.queue.pop_nowait()
            assert isinstance(queued, QueuedPod)
            kind = int(queued.pod.labels["kind"])
            queued.unschedulable_plugins = set(self._rejectors[kind % len(self._rejectors)])
            self.queue.add_unschedulable_if_not_present(queued)
        return self

    def count(self, *queues: str) -> int:
        counts = self.queue.pending_counts()
        return sum(counts[queue] for queue in queues)


def some_pods(count: int, kinds: int, first: int = 0) -> Iterator[Pod]:
    """Decode pods from JSON, as the watch does, so that they share no strings."""
    for number in range(first, first + count):
        kind = number % kinds
        requests = {"cpu": f"{64_000 + kind}m", "memory": "500Mi"}
        container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
        name = f"pod-{number:07d}"
        labels = {"app": "web", "kind": str(kind)}
        spec = {
            "schedulerName": "loadmaster",
            "priority": number % 3,
            "containers": [container],
            "nodeSelector": {"disk": f"kind-{kind}"},
            "tolerations": [{"key": f"special-{kind}", "operator": "Exists", "effect": "NoSchedule"}],
        }
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{number}", "labels": labels}
        yield decode_pod(orjson.dumps({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}))


def numbered_node(number: int, *, cpu: int = 32, team: str = "a", taint: str = "a") -> Node:
    name = f"node-{number:06d}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}", "team": team}
    allocatable = {"cpu": str(cpu), "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    taints = [{"key": "dedicated", "value": taint, "effect": "NoSchedule"}]
    return node_from_dict(
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints},
            "status": {"allocatable": allocatable},
        }
    )


CHANGED: Final[Mapping[str, Callable[[int], Node]]] = {
    "allocatable": partial(numbered_node, cpu=33),
    "label": partial(numbered_node, team="b"),
    "taint": partial(numbered_node, taint="b"),
}
"""What an update makes of a node, by what it changes."""


def updates(kind: str, count: int) -> Iterator[Update]:
    """Updates of as many nodes, each as the one event that the handlers make of it."""
    for number in range(count):
        old, new = numbered_node(number), CHANGED[kind](number)
        (event,) = node_changes(old, new)
        yield event, old, new


def settle() -> None:
    """Keep the garbage collector from walking over what is there before the timing begins, as the program does."""
    gc.collect()
    gc.freeze()


def update_cost(waiting: Waiting, happened: Sequence[Update]) -> float:
    """Return the seconds of CPU that an update costs on average. The run ends early if it takes too long."""
    latest_end = time.perf_counter() + SECONDS_A_RUN
    started, done = time.process_time(), 0
    for event, old, new in happened:
        waiting.queue.move_all(event, old, new)
        done += 1
        if time.perf_counter() > latest_end:
            break
    return (time.process_time() - started) / done


def print_updates(crowds: Sequence[tuple[int, int]], count: int, runs: int) -> None:
    """Node updates that help nobody."""
    print("Node updates that help none of the waiting pods, µs an update (aim: at most 5% of a core)\n")
    heads = (*CHANGED, "mean")
    print(f"{'pods':>9}  {'kinds':>7}  " + "".join(f"{head:>13}" for head in heads), end="")
    print(f"  {f'core at {UPDATES_A_SECOND:,}/s':>16}  {'moved':>7}")
    for pods, kinds in crowds:
        costs = []
        moved = 0
        for kind in CHANGED:
            waiting = Waiting().refuse(some_pods(pods, kinds))
            happened = list(updates(kind, count))
            settle()
            costs.append(statistics.median(update_cost(waiting, happened) for _ in range(runs)))
            moved += pods - waiting.count("unschedulable")
        mean = statistics.mean(costs)
        cells = "".join(f"{cost * 1e6:>13,.1f}" for cost in (*costs, mean))
        print(f"{pods:>9,}  {kinds:>7,}  {cells}  {mean * UPDATES_A_SECOND:>16.1%}  {moved:>7,}")
    print("\nmoved: pods that an update brought back for nothing; must be 0.\n")


def move_cost(pods: int, kinds: int, *, backing_off: bool) -> tuple[float, int]:
    """Return the seconds of CPU of one deletion that brings every pod back, and how many it moved."""
    waiting = Waiting(rejectors=((FIT,),)).refuse(some_pods(pods, kinds))
    if not backing_off:
        waiting.clock.time += 10
    gone = next(some_pods(1, 1, first=pods)).bound_to("node-000000")
    settle()
    started = time.process_time()
    waiting.queue.move_all(ASSIGNED_POD_DELETE, gone, None)
    return time.process_time() - started, waiting.count("backoff" if backing_off else "active")


def print_moves(crowds: Sequence[tuple[int, int]], runs: int) -> None:
    """An event that brings all pods back, as any deletion of an assigned pod does with those that had no room."""
    print("An assigned pod is deleted: every pod that NodeResourcesFit refused is brought back, as in kube-scheduler\n")
    print(f"{'pods':>9}  {'kinds':>7}  {'to':<8}  {'moved':>9}  {'event ms':>9}  {'µs a moved pod':>15}")
    for (pods, kinds), backing_off in itertools.product(crowds, (False, True)):
        spent, moved = zip(*(move_cost(pods, kinds, backing_off=backing_off) for _ in range(runs)), strict=True)
        cost, count = statistics.median(spent), moved[-1]
        target = "backoffQ" if backing_off else "activeQ"
        each = cost * 1e6 / max(count, 1)
        print(f"{pods:>9,}  {kinds:>7,}  {target:<8}  {count:>9,}  {cost * 1e3:>9.1f}  {each:>15.2f}")
    print()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the numbers of pods; 0.01 is a quick try")
    parser.add_argument("--updates", type=int, default=300, help="updates of each kind in a run")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(arguments)
    crowds = [(scaled(pods, options.scale), min(kinds, scaled(pods, options.scale))) for pods, kinds in CROWDS]
    print_updates(crowds, options.updates, options.runs)
    print_moves(crowds[:2], options.runs)
    gc.unfreeze()


def scaled(count: int, scale: float) -> int:
    return max(1, round(count * scale))


if __name__ == "__main__":
    main()
