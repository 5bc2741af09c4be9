"""The formula of docs/operations/memory.md: what nodes and pods take, and that what is gone is given back."""

import asyncio
import gc
import re
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from scheduler.api.node_images import share_images
from scheduler.api.objects import Node, node_from_dict
from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.api.recent_caches import RecentCache
from scheduler.runtime.answers.store import STORE_BYTES
from scheduler.state.nodes.count_columns import COLUMN_BYTES
from tests.bench.counted_world import CountedWorld
from tests.bench.cycle_world import HOSTNAME, PROFILE, ZONE, World, bound, node_name
from tests.bench.still_loop import StillLoop

PAGE: Final = Path(__file__).parents[2] / "docs" / "operations" / "memory.md"
KIB, MIB = 1 << 10, 1 << 20

TOLERANCE: Final = 0.35
"""By so much what is measured may be less than the formula says; it may not be more."""


ROWS: Final = {
    "container images": ("container images",),
    "terms of pods and claims": (
        "label selectors",
        "required node affinities",
        "preferred node affinities",
        "pod affinities",
        "volume topologies",
    ),
    "devices": (
        "device selectors",
        "selected devices",
        "device availability",
        "derived attributes",
        "values of derived attributes",
    ),
    "wanted pods": ("wanted pods", "selected namespaces", "selectors of services"),
}
"""Row of the page → the caches that it adds up."""


def figure(what: str) -> float:
    """The bytes that the page gives for something."""
    row = re.search(rf"^\| {what}[^|]*\| ([\d.]+) (KiB|MiB) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None, f"no row for {what}"
    return float(row[1]) * {"KiB": KIB, "MiB": MIB}[row[2]]


def a_usual_node(number: int) -> Node:
    """With 17 labels, five annotations and the 50 images that a kubelet reports, each with two names."""
    name = node_name(number)
    labels = {f"example.com/label-{each}": f"value-{each}" for each in range(15)}
    images = [
        {
            "names": [f"registry.example.com/team/image-{each}{end}" for end in (f"@sha256:{'0' * 64}", ":v1.2.3")],
            "sizeBytes": 10**8,
        }
        for each in range(50)
    ]
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(number + 1),
        "labels": {**labels, HOSTNAME: name, ZONE: f"zone-{number % 3}"},
        "annotations": {f"example.com/{each}": "x" * 50 for each in range(5)},
    }
    allocatable = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return node_from_dict({"metadata": metadata, "status": {"allocatable": allocatable, "images": images}})


def a_usual_pod(number: int) -> Pod:
    """With two containers, three labels, one of them its own, an owner and the tolerations that admission adds."""
    owner = f"app-{number % 200:010}"
    metadata = {
        "name": f"{owner}-{number:05}",
        "namespace": f"ns-{number % 20}",
        "uid": f"01234567-89ab-cdef-0123-{number:012}",
        "resourceVersion": str(number + 1),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": owner, "pod": f"{number}", "tier": "web"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "controller": True}],
    }
    waits = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    containers = [
        {"name": name, "image": "registry.example.com/team/image-1:v1.2.3", "resources": {"requests": {"cpu": "100m"}}}
        for name in ("main", "proxy")
    ]
    spec = {"schedulerName": PROFILE, "priority": 0, "tolerations": waits, "containers": containers}
    conditions = [{"type": "PodScheduled", "status": "True"}]
    return pod_from_dict({"metadata": metadata, "spec": spec, "status": {"phase": "Pending", "conditions": conditions}})


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """A function that returns how much memory Python has; less than the process has, by what allocators leave free."""

    def taken() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        yield taken
    finally:
        tracemalloc.stop()


def assert_close(measured: float, said: float) -> None:
    assert (1 - TOLERANCE) * said <= measured <= said, f"{measured:,.0f} bytes, the page says {said:,.0f}"


def test_nodes_and_pods_take_what_the_page_says() -> None:
    world = World(0)
    handlers = world.engine.handlers
    with traced() as taken:
        start = taken()
        for number in range(300):
            node = a_usual_node(number)
            share_images(node, None)
            handlers.node_changed(node)
        nodes = taken()
        for number in range(2000):
            handlers.pod_changed(bound(a_usual_pod(number), node_name(number % 300)))
        running = taken()
        for number in range(2000, 4000):
            handlers.pod_changed(a_usual_pod(number))
        waiting = taken()

    assert_close((nodes - start) / 300, figure("a node"))
    assert_close((running - nodes) / 2000, figure("a pod on a node"))
    assert_close((waiting - running) / 2000, figure("a waiting pod"))


def test_the_bounds_of_the_caches_are_those_of_the_page() -> None:
    world = World(1)  # which makes those of the plugins
    gc.collect()
    caches = {cache.name: cache.limit for cache in RecentCache.every if cache.name != "test"}

    assert len(world.framework.plugins.by_name) > 10
    assert figure("stored answers") == STORE_BYTES
    assert figure("pod counts") == 2 * COLUMN_BYTES
    assert sorted(name for names in ROWS.values() for name in names) == sorted(caches)
    assert {row: figure(row) for row in ROWS} == {row: sum(caches[name] for name in ROWS[row]) for row in ROWS}


def own_spec(number: int) -> dict[str, Any]:
    """A spec that no other pod has, and that every cache has to do with."""
    labels = {"matchLabels": {"app": f"app-{number}"}}
    term = {"labelSelector": labels, "topologyKey": HOSTNAME}
    values = [{"key": ZONE, "operator": "NotIn", "values": [f"{number}-{each}" for each in range(number % 50 + 1)]}]
    node_affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": values}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": values}}],
    }
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labels}
    return {
        "affinity": {"nodeAffinity": node_affinity, "podAntiAffinity": apart},
        "topologySpreadConstraints": [spread],
        "tolerations": [{"key": f"example.com/{number}-{each}", "operator": "Exists"} for each in range(number % 20)],
    }


async def come_and_go(world: CountedWorld, numbers: range) -> None:
    """Let pods come one after the other, be bound, and go."""
    for number in numbers:
        name = f"pod-{number}"
        await world.schedule(world.new_pods([name], own_spec(number), f"app-{number}"))
        await world.schedule(world.changed_pods([name], {}, ""))
        await world.schedule(world.deleted_pods([name]))


def forget_idle(world: CountedWorld) -> None:
    for _ in range(3):
        for _ in world.engine.forget_idle():
            pass


def test_caches_take_no_more_than_they_reckon_and_give_everything_back() -> None:
    with traced() as taken, asyncio.Runner(loop_factory=StillLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, StillLoop)

        async def measure() -> None:
            world = CountedWorld(loop, 100)
            async with world.running():
                await come_and_go(world, range(100))
                forget_idle(world)
                before, reckoned = taken(), sum(size for _, size in world.engine.cache_bytes())
                records = world.engine.records.bytes
                await come_and_go(world, range(100, 300))
                filled = sum(size for _, size in world.engine.cache_bytes()) - reckoned
                with_caches = taken()
                forget_idle(world)
                after = taken()
                records = world.engine.records.bytes - records

            # What is not in the caches: up to a few KiB for each Event that is remembered for six minutes.
            assert with_caches - after <= filled, "they take more than they reckon"
            assert with_caches - after >= 0.25 * filled, "they take far less than they reckon"
            assert after - before - records < 200 * 5 * KIB, "something is kept of pods that are gone"

        runner.run(measure())


@pytest.mark.parametrize("what", ["the program", "an object"])
def test_the_page_has_the_rest_of_the_formula(what: str) -> None:
    assert figure(what) > 0
