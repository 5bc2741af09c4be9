"""What one decision costs, without any I/O: `make bench-cycle`.

Nodes have 32 cores and 256 GiB, pods ask for 100m and 500Mi and are all of one shape, as scheduler_perf's are. Each pod
is assumed on its node before the next one is decided, so every decision sees a changed cluster. Medians of all
decisions; the memo is off where no plugin may store its answers.
"""

import argparse
import cProfile
import gc
import statistics
import time
from collections.abc import Iterator

import plugins
from scheduler.api.objects import Node, node_from_dict
from scheduler.api.pod import Pod, pod_from_dict
from scheduler.config.load import load_config
from scheduler.cycle.algorithm import Placed
from scheduler.cycle.edge import Edge
from scheduler.cycle.engine import Engine, build_engine
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.metrics import Metrics

SIZES = (1_000, 5_000, 100_000)


class NoWorld:
    """An edge to nowhere: no decision here gets as far as a binding."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        raise AssertionError("decisions are not bound here")

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        raise AssertionError(note)

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        raise AssertionError(message)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Nobody listens."""

    def forget(self, pod: Pod) -> None:
        """Nothing is kept."""


def a_node(number: int) -> Node:
    name = f"node-{number:06d}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    allocatable = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return node_from_dict({"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}})


def a_pod(number: int) -> Pod:
    requests = {"cpu": "100m", "memory": "500Mi"}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    metadata = {"name": f"pod-{number}", "namespace": "default", "uid": f"uid-{number}"}
    return pod_from_dict({"metadata": metadata, "spec": {"schedulerName": "loadmaster", "containers": [container]}})


def an_engine(nodes: int) -> Engine:
    world = NoWorld()
    config = load_config(None, plugins.IN_TREE)
    engine = build_engine(config, plugins.IN_TREE, Edge(world, world, world), Metrics(), time.monotonic)
    for number in range(nodes):
        engine.handlers.node_changed(a_node(number))
    return engine


def decisions(engine: Engine, count: int, *, memo: bool) -> Iterator[tuple[float, float]]:
    """Yield for each decision: seconds for the decision, and for it and the assumption together."""
    framework = engine.frameworks["loadmaster"]
    for number in range(count):
        pod = a_pod(number)
        if not memo:
            pod.signatures[framework.name] = {}
        started = time.perf_counter()
        decision = engine.algorithm.schedule(framework, CycleState(), pod)
        decided = time.perf_counter()
        assert isinstance(decision, Placed), decision
        engine.cache.assume(pod.bound_to(decision.node_name))
        yield decided - started, time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--pods", type=int, default=2_000, help="decisions at each size")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    print(f"{'nodes':>8}  {'memo':<4}  {'decision µs':>12}  {'p99 µs':>8}  {'with assume µs':>14}")
    for nodes in options.nodes:
        for memo in (True, False):
            engine = an_engine(nodes)
            gc.collect()
            gc.freeze()
            count = options.pods if nodes <= 10_000 or memo else max(100, options.pods // 10)
            profile = cProfile.Profile()
            if options.profile:
                profile.enable()
            times = list(decisions(engine, count, memo=memo))
            profile.disable()
            alone = sorted(each * 1e6 for each, _ in times)
            both = statistics.median(each * 1e6 for _, each in times)
            p99 = alone[int(len(alone) * 0.99)]
            state = "on" if memo else "off"
            print(f"{nodes:>8,}  {state:<4}  {statistics.median(alone):>12.1f}  {p99:>8.1f}  {both:>14.1f}")
            if options.profile:
                profile.print_stats("tottime")


if __name__ == "__main__":
    main()
