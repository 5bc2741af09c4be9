"""What hostile pods cost the decisions on others, counted in calls: the same on every machine."""

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import orjson
import pytest

from scheduler.api.decoding import reread
from scheduler.api.pods.pod import Pod, decode_pod
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.events import DEVICE_CLASS, RESOURCE_SLICE
from scheduler.framework.nodes.resources import struct_of
from tests.attacks.attack import Attack, Target
from tests.attacks.catalog import ATTACKS
from tests.bench.cycle_world import World, decoded_pod, node_name, numbered_node, sibling
from tests.fakes import next_pod

pytestmark = pytest.mark.programs

NODES = 30

MOST = 1_000
"""Pods of an attack: more would leave the nodes no room."""

FEW = 150
"""Calls: what a topology key that nodes have and terms name costs a decision, whatever the number of terms."""


RESOURCES = {"DeviceClass": DEVICE_CLASS, "ResourceSlice": RESOURCE_SLICE}
"""Kind → its resource, as plugins name it."""


@pytest.fixture
def world() -> Iterator[World]:
    world = World(NODES)
    yield world
    world.engine.close()


def calls_of(function: Callable[[], object]) -> int:
    """How many functions are called, Python's and C's."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def attack(world: World, name: str) -> None:
    target = Target("hostile", [node_name(number) for number in range(NODES)])
    take_in_objects(world, ATTACKS[name], target)
    for pod in islice(pods_of(ATTACKS[name], target), MOST):
        world.engine.handlers.pod_changed(pod)


def pods_of(attack: Attack, target: Target) -> Iterator[Pod]:
    """The pods of an attack, as the API server would report them."""
    for obj in attack.objects(target):
        if obj["kind"] == "Pod":
            metadata: dict[str, Any] = {"namespace": target.namespace, "uid": f"uid-{obj['metadata']['name']}"}
            yield decode_pod(orjson.dumps({**obj, "metadata": {**obj["metadata"], **metadata}}))


def take_in_objects(world: World, attack: Attack, target: Target) -> None:
    """Show a world what an attack has besides pods, of the resources that the default plugins watch."""
    for obj in attack.objects(target):
        if resource := RESOURCES.get(obj["kind"]):
            metadata = {**obj["metadata"], "uid": f"uid-{obj['metadata']['name']}"}
            new = reread({**obj, "metadata": metadata}, struct_of(resource))
            world.engine.object_handlers.object_changed(resource, new)


def attempt(world: World, pod: Pod) -> Placed | Unplaced | None:
    """One decision; None for one that failed, as happens to a pod that goes on in its next attempt."""
    try:
        return world.engine.algorithm.schedule(world.framework, CycleState(), pod)
    except PluginError:
        return None


def decide(world: World, name: str, **labels: str) -> int:
    """Place a plain pod; return how many calls the decision took."""
    engine = world.engine
    pod = sibling(decoded_pod("plain", app=labels.get("app", "")), name)
    placed: list[Any] = []
    calls = calls_of(lambda: placed.append(engine.algorithm.schedule(world.framework, CycleState(), pod)))
    [decision] = placed
    assert isinstance(decision, Placed)
    engine.cache.assume(pod.bound_to(decision.node_name))
    return calls


@pytest.mark.parametrize(
    "name", ["running-terms", "running-hostname-terms", "running-preferred-terms", "many-terms", "namespaces"]
)
def test_terms_of_running_pods_cost_later_decisions_next_to_nothing(name: str, world: World) -> None:
    for number in range(4):
        decide(world, f"warm-{number}")
    before = decide(world, "before")

    attack(world, name)
    decide(world, "first")
    during = [decide(world, f"during-{number}") for number in range(3)]

    assert max(during) <= before + FEW


def test_terms_with_keys_that_no_node_has_cost_nothing_at_all(world: World) -> None:
    attack(world, "running-terms")
    index = world.engine.cache.table.pods

    first, second = (decide(world, name, app="web") for name in ("first", "second"))

    assert first < 2_100  # it makes 18 columns, each with its read-only view
    assert second < 2_000
    assert not index._terms._sums
    assert len(world.engine.cache.table._labels._columns) <= 2


FOR_TERMS = 60_000
"""A few for each of the pod's terms, to count them, and none for a node."""

TO_READ = 1_500_000
"""To read, to sign and to weigh long lists: below 100 ms."""


@pytest.mark.parametrize(
    ("name", "most"),
    [
        *((name, FOR_TERMS) for name in ("pending-terms", "waiting-terms", "soft-spread", "hard-spread", "node-terms")),
        *((name, TO_READ) for name in ("node-values", "tolerations", "host-ports", "containers", "volumes", "labels")),
    ],
)
def test_pods_that_ask_for_too_much_cost_what_it_takes_to_read_them(name: str, most: int, world: World) -> None:
    attack(world, name)
    engine = world.engine
    queued = engine.queue.pop_nowait()
    assert queued is not None

    calls = calls_of(lambda: engine.algorithm.schedule(world.framework, CycleState(), queued.pod))

    assert calls < most
    assert most > FOR_TERMS or not world.framework.handle.columns.store


@pytest.mark.parametrize("name", ["device-names", "device-amounts", "device-containers"])
def test_extended_resources_without_end_cost_about_what_it_takes_to_read_them(name: str, world: World) -> None:
    attack(world, name)
    costs = []
    while (queued := world.engine.queue.pop_nowait()) is not None:
        costs.append(calls_of(lambda pod=queued.pod: attempt(world, pod)))  # type: ignore[misc]

    decide(world, "first")
    calls = decide(world, "second")

    assert max(costs) < 800_000, "none for a resource and a node, nor for a container and another one"
    assert calls < 2_000


def test_an_event_asks_a_waiting_pod_with_a_long_list_of_values_without_reading_it_again(world: World) -> None:
    attack(world, "node-values")
    engine = world.engine
    while (queued := next_pod(engine.queue)) is not None:
        engine.algorithm.schedule(world.framework, CycleState(), queued.pod)
        queued.unschedulable_plugins = {"NodeAffinity"}
        engine.queue.add_unschedulable_if_not_present(queued)

    added = numbered_node(NODES)
    calls = calls_of(lambda: engine.handlers.node_changed(added))

    assert calls < 2_000
