"""What waiting pods cost, without any I/O: `make bench-queue`.

Pods wait because NodeResourcesFit, NodeAffinity or TaintToleration refused them, alone or two together, and no update
here helps any of them: each asks for more than a node has, for a label that no node gets, and tolerates what no node
has. Pods of one kind differ in their names only. The queue is the one of the default profile, with a clock that stands
still; what is timed is the call of the queue, as the watch or the loop makes it: events by the CPU time they take, and
single operations by the clock. Figures are medians of `--runs` runs.
"""

import argparse
import gc
import itertools
import statistics
import time
import tracemalloc
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

    def add(self, pods: Iterable[Pod]) -> Self:
        """Let pods come that were not tried yet."""
        for pod in pods:
            self.queue.add(pod)
        return self

    def refuse(self, pods: Iterable[Pod]) -> Self:
        """Let an attempt fail for each of `pods`."""
        for pod in pods:
            self.queue.add(pod)
            self.refuse_next()
        return self

    def refuse_next(self) -> float:
        """Pop a pod and hand it back as a failed attempt does; return the seconds that handing it back took."""
        queued = self.queue.pop_nowait()
        assert isinstance(queued, QueuedPod)
        kind = int(queued.pod.labels["kind"])
        queued.unschedulable_plugins = set(self._rejectors[kind % len(self._rejectors)])
        return seconds(lambda: self.queue.add_unschedulable_if_not_present(queued))

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


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def settle() -> None:
    """Keep the garbage collector from walking over what is there before the timing begins, as the program does."""
    gc.collect()
    gc.freeze()


# a. Events.


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


# b. One pod.


def active_costs(pods: int, operations: int) -> dict[str, list[float]]:
    """Add and pop with `pods` in activeQ, in turn; seconds of each."""
    queue = Waiting().add(some_pods(pods, 50)).queue
    new = list(some_pods(operations, 50, first=pods))
    settle()
    costs: dict[str, list[float]] = {"add to activeQ": [], "pop": [], "done": []}
    for pod in new:
        started = time.perf_counter()
        queue.add(pod)
        added = time.perf_counter()
        queued = queue.pop_nowait()
        popped = time.perf_counter()
        assert queued is not None
        costs["add to activeQ"].append(added - started)
        costs["pop"].append(popped - added)
        uid = queued.pod.uid
        started = time.perf_counter()
        queue.done(uid)
        costs["done"].append(time.perf_counter() - started)
    return costs


def unschedulable_costs(pods: int, operations: int) -> dict[str, list[float]]:
    """Return of a failed pod and removal with `pods` that were refused before; seconds of each."""
    waiting = Waiting().refuse(some_pods(pods, 50))
    new = list(some_pods(operations, 50, first=pods))
    settle()
    costs: dict[str, list[float]] = {"return of a refused pod": [], "delete of a refused pod": []}
    for pod in new:
        waiting.queue.add(pod)
        costs["return of a refused pod"].append(waiting.refuse_next())
    for pod in new:
        started = time.perf_counter()
        waiting.queue.delete(pod)
        costs["delete of a refused pod"].append(time.perf_counter() - started)
    return costs


def print_single(pods: int, operations: int, runs: int) -> None:
    """One pod at a time among many."""
    print(f"One pod, {pods:,} others waiting in the same place (aim: add and pop at most 10 µs)\n")
    print(f"{'':<26}{'median µs':>10}  {'p99 µs':>8}")
    for measure in (active_costs, unschedulable_costs):
        results = [measure(pods, operations) for _ in range(runs)]
        for name in results[0]:
            medians = [statistics.median(result[name]) for result in results]
            tails = [sorted(result[name])[int(len(result[name]) * 0.99)] for result in results]
            print(f"{name:<26}{statistics.median(medians) * 1e6:>10.2f}  {statistics.median(tails) * 1e6:>8.2f}")
    print()


# c. Memory.


def held(make: Callable[[], object]) -> int:
    """Return the bytes that are held after a call and were not before."""
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    make()
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


def memory(pods: int, kinds: int) -> dict[str, float]:
    """Bytes a pod: of the decoded pod, and of what the queue adds to it."""
    in_active, refused = Waiting(), Waiting().refuse(some_pods(10, 10, first=pods))  # made once, not for each pod
    decoded: list[Pod] = []
    tracemalloc.start()
    of_pods = held(lambda: decoded.extend(some_pods(pods, kinds)))
    of_active = held(lambda: in_active.add(decoded))
    of_refused = held(lambda: refused.refuse(decoded))
    tracemalloc.stop()
    return {"the pod itself": of_pods / pods, "in activeQ": of_active / pods, "refused": of_refused / pods}


def print_memory(pods: int, kinds: int, runs: int) -> None:
    """What a waiting pod holds."""
    print(f"Memory a pod, {pods:,} pods of {kinds:,} kinds\n")
    results = [memory(pods, kinds) for _ in range(runs)]
    for name in results[0]:
        print(f"{name:<26}{statistics.median(result[name] for result in results):>10,.0f} bytes")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the numbers of pods; 0.01 is a quick try")
    parser.add_argument("--updates", type=int, default=300, help="updates of each kind in a run")
    parser.add_argument("--operations", type=int, default=10_000, help="pods added, popped and returned one by one")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(arguments)
    crowds = [(scaled(pods, options.scale), min(kinds, scaled(pods, options.scale))) for pods, kinds in CROWDS]
    print_updates(crowds, options.updates, options.runs)
    print_moves(crowds[:2], options.runs)
    print_single(crowds[1][0], options.operations, options.runs)
    print_memory(*crowds[0], options.runs)
    gc.unfreeze()


def scaled(count: int, scale: float) -> int:
    return max(1, round(count * scale))


if __name__ == "__main__":
    main()
