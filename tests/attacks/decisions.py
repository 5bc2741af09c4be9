"""What attacks cost a scheduler's event loop, without a cluster: `python -m tests.attacks.decisions [NAME …]`.

For each attack, milliseconds of CPU: for the arrival of its objects (the longest, and all); for the attempts of its own
pods, the longest of the first ones and of the second ones; for an event of a node and one of a pod while they wait; and
for a decision on a plain pod before, during and after, with what was not seen before and in the long run.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import orjson
from msgspec.structs import replace

from scheduler.api.decoding import reread
from scheduler.api.pods.pod import Pod, decode_pod
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.events import DEVICE_CLASS, RESOURCE_SLICE
from scheduler.framework.nodes.resources import struct_of
from tests.attacks.attack import Attack, Target
from tests.attacks.catalog import ATTACKS
from tests.bench.cycle_world import World, bound, decoded_pod, node_name, numbered_node, sibling

T = TypeVar("T")

DECISIONS: Final = 60
"""On plain pods, in each phase."""

EVENTS: Final = 5
"""Of each kind."""

_RESOURCES: Final = {"DeviceClass": DEVICE_CLASS, "ResourceSlice": RESOURCE_SLICE}
"""Kind → its resource, as plugins name it."""


@dataclass
class Cost:
    """CPU seconds."""

    arrival: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    second: list[float] = field(default_factory=list)
    node_events: list[float] = field(default_factory=list)
    pod_events: list[float] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    during: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    departure: list[float] = field(default_factory=list)


def timed(costs: list[float], call: Callable[[], T]) -> T:
    started = time.thread_time()
    result = call()
    costs.append(time.thread_time() - started)
    return result


def measure(attack: Attack, nodes: int) -> Cost:
    """Put a cluster with that many nodes under attack."""
    cost, world = Cost(), World(nodes)
    engine, names = world.engine, [node_name(number) for number in range(nodes)]
    plain = decoded_pod("plain")
    plain_names = (f"plain-{number}" for number in range(1_000_000))

    def decide(costs: list[float]) -> None:
        for name in [next(plain_names) for _ in range(DECISIONS)]:
            pod = sibling(plain, name)
            decision = timed(costs, lambda pod=pod: engine.algorithm.schedule(world.framework, CycleState(), pod))  # type: ignore[misc]
            if isinstance(decision, Placed):
                engine.cache.assume(pod.bound_to(decision.node_name))

    decide([])
    decide(cost.before)
    target = Target("hostile", names)
    take_in_objects(world, attack, target)
    hostile = list(pods_of(attack, target))
    gc.collect()
    gc.freeze()
    for pod in hostile:
        timed(cost.arrival, lambda pod=pod: engine.handlers.pod_changed(pod))  # type: ignore[misc]
    for costs in (cost.first, cost.second):
        attempt_all(world, costs)
        for pod in hostile:
            engine.queue.activate([pod.uid])
    attempt_all(world, [])
    for number in range(EVENTS):
        changed = numbered_node(number % nodes)
        labels = {**(changed.metadata.labels or {}), "changed": f"{number}"}
        changed = replace(changed, metadata=replace(changed.metadata, labels=labels))
        timed(cost.node_events, lambda changed=changed: engine.handlers.node_changed(changed))  # type: ignore[misc]
    for number in range(EVENTS):
        other = bound(sibling(plain, f"other-{number}"), names[number % nodes])
        timed(cost.pod_events, lambda other=other: engine.handlers.pod_changed(other))  # type: ignore[misc]
        timed(cost.pod_events, lambda other=other: engine.handlers.pod_deleted(other))  # type: ignore[misc]
    decide(cost.during)
    for pod in hostile:
        timed(cost.departure, lambda pod=pod: engine.handlers.pod_deleted(pod))  # type: ignore[misc]
    decide(cost.after)
    gc.unfreeze()
    engine.close()
    return cost


def pods_of(attack: Attack, target: Target) -> Iterator[Pod]:
    """The pods of an attack, as the API server would report them."""
    for obj in attack.objects(target):
        if obj["kind"] == "Pod":
            metadata: dict[str, Any] = {"namespace": target.namespace, "uid": f"uid-{obj['metadata']['name']}"}
            yield decode_pod(orjson.dumps({**obj, "metadata": {**obj["metadata"], **metadata}}))


def take_in_objects(world: World, attack: Attack, target: Target) -> None:
    """Show a world what an attack has besides pods, of the resources that the default plugins watch."""
    for obj in attack.objects(target):
        if resource := _RESOURCES.get(obj["kind"]):
            metadata = {**obj["metadata"], "uid": f"uid-{obj['metadata']['name']}"}
            new = reread({**obj, "metadata": metadata}, struct_of(resource))
            world.engine.object_handlers.object_changed(resource, new)


def attempt_all(world: World, costs: list[float]) -> None:
    """Try each pod of the queue once."""
    engine = world.engine
    while (queued := engine.queue.pop_nowait()) is not None:
        decision = timed(costs, lambda pod=queued.pod: attempt(world, pod))  # type: ignore[misc]
        queued.unschedulable_plugins = set()
        if isinstance(decision, Placed):
            # Counted as it would be, and then away again: its next attempt is to be measured, too.
            assumed = queued.pod.bound_to(decision.node_name)
            timed(costs, lambda assumed=assumed: engine.cache.assume(assumed))  # type: ignore[misc]
            engine.cache.forget(queued.pod)
        elif decision is not None:
            queued.unschedulable_plugins = set(decision.unschedulable_plugins)
        timed(costs, lambda queued=queued: engine.queue.add_unschedulable_if_not_present(queued))  # type: ignore[misc]


def attempt(world: World, pod: Pod) -> Placed | Unplaced | None:
    """One decision; None for one that failed, as happens to a pod that goes on in its next attempt."""
    try:
        return world.engine.algorithm.schedule(world.framework, CycleState(), pod)
    except PluginError:
        return None


COLUMNS: Final = (
    "arrival", "all", "first", "second", "node event", "pod event",
    "before", "during 1st", "during", "after", "departure",
)  # fmt: skip


def row(cost: Cost) -> Sequence[float]:
    return (
        max(cost.arrival), sum(cost.arrival), max(cost.first, default=0.0), max(cost.second, default=0.0),
        max(cost.node_events), max(cost.pod_events),
        statistics.median(cost.before), max(cost.during), statistics.median(cost.during), statistics.median(cost.after),
        max(cost.departure),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.decisions", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*ATTACKS, []], help="attacks (default: all)")
    parser.add_argument("--nodes", type=int, nargs="*", default=[1_000, 5_000])
    options = parser.parse_args()
    for nodes in options.nodes:
        print(f"\n{nodes:,} nodes, ms of CPU\n{'':<26}" + "".join(f"{each:>12}" for each in COLUMNS))
        for name in options.names or ATTACKS:
            figures = row(measure(ATTACKS[name], nodes))
            print(f"{name:<26}" + "".join(f"{1000 * each:>12.2f}" for each in figures), flush=True)


if __name__ == "__main__":
    main()
