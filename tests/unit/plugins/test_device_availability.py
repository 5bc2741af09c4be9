"""What is stored about nodes and their devices: always what a new look at all objects would find."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from plugins.dynamic_resources.allocation.allocator import Allocator
from plugins.dynamic_resources.allocation.availability import (
    HAS_DEVICES,
    HAS_NONE,
    Asking,
    DeviceAvailabilities,
)
from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.allocation.pools import DevicesError
from scheduler import framework as fw
from scheduler.api.devices import Allocation, ResourceClaim
from scheduler.api.objects import Node
from scheduler.runtime.handle import PluginColumns
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node
from tests.unit.plugins.devices import (
    DRIVER,
    a_claim,
    a_class,
    a_device,
    a_request,
    a_slice,
    a_taint_rule,
    a_world,
    allocated,
    put,
)

NAMES = [f"n{i}" for i in range(5)]
MODELS = ("A100", "H100")


def test_a_second_pod_of_the_same_shape_asks_about_the_changed_node_only() -> None:
    world = World(a_slice("n1", a_device("d0")), a_slice("n2", a_device("d0")), nodes=("n1", "n2"))
    world.codes(a_claim("one"))
    world.catalog.allocations.reserve(a_claim("one", status=allocated("n1/d0")))

    assert world.codes(a_claim("two")) == {"n1": HAS_NONE, "n2": HAS_DEVICES}
    assert world.asked == ["n1"]


def test_a_claim_that_is_written_changes_nothing_more() -> None:
    world = World(a_slice("n1", a_device("d0")), a_claim("one"), nodes=("n1",))
    mine = a_claim("one", status=allocated("n1/d0"), version="2")
    world.catalog.allocations.reserve(mine)
    world.codes(a_claim("two"))
    world.catalog.allocations.assume(mine)
    world.catalog.allocations.release(mine.uid)
    put(world.store, mine)

    assert world.codes(a_claim("two")) == {"n1": HAS_NONE}
    assert world.asked == []


def test_a_node_that_failed_is_asked_again() -> None:
    broken = 'device.attributes["gpu.example.com"].model == "A100"'
    world = World(a_slice("n1", a_device("d0")), a_class("gpu", broken), nodes=("n1",))
    for _ in range(2):
        assert "no such key" in world.codes(a_claim("c", a_request("q", "gpu")))
    put(world.store, a_slice("n1", a_device("d0", model="A100")))

    assert world.codes(a_claim("c", a_request("q", "gpu"))) == {"n1": HAS_DEVICES}


def test_nodes_without_slices_of_their_own_are_searched_once() -> None:
    world = World(a_slice("net", a_device("d0"), allNodes=True), nodes=NAMES)

    assert world.codes(a_claim("c")) == dict.fromkeys(NAMES, HAS_DEVICES)
    assert len({id(world.catalog.slices.pools_for(a_node(name))) for name in NAMES}) == 1


def test_two_claims_with_one_device_free_it_only_together() -> None:
    """Two schedulers may have raced."""
    one, other = (a_claim(name, status=allocated("n1/d0")) for name in ("one", "other"))
    world = World(a_slice("n1", a_device("d0")), one, other, nodes=("n1",))
    found = [world.codes(a_claim("c"))]
    for claim in (one, other):
        world.store.remove(fw.RESOURCE_CLAIM, claim.uid)
        found.append(world.codes(a_claim("c")))

    assert found == [{"n1": HAS_NONE}, {"n1": HAS_NONE}, {"n1": HAS_DEVICES}]


@pytest.mark.parametrize("seed", range(10))
def test_whatever_happens_the_stored_answers_are_those_of_a_new_look(seed: int) -> None:
    dice = random.Random(seed)
    world = World(a_class("gpu"), *(any_slice(dice, name) for name in NAMES), nodes=NAMES[:3])
    shapes = [
        a_claim("s0"),
        a_claim("s1", a_request(count=2)),
        a_claim("s2", a_request("q", "any", f'device.attributes["{DRIVER}"].?model.orValue("") == "A100"')),
        a_claim("s3", a_request("q", "any", allocationMode="All")),
        a_claim("s4", a_request("q", "gpu")),
    ]

    for _ in range(60):
        world.happen(dice)
        claim = dice.choice(shapes)
        assert world.codes(claim) == world.codes_of_a_new_look(claim)


class World:
    """Nodes, slices and claims that change, and the stored answers about them."""

    def __init__(self, *objects: Any, nodes: Sequence[str]) -> None:
        _, self.store, _ = a_world(*objects)
        self.nodes = NodeTable()
        for name in nodes:
            self.nodes.set_node(a_node(name))
        self.catalog = DeviceCatalog(self.store)
        self.availabilities = DeviceAvailabilities(self.catalog)
        self.asked: list[str] = []
        self.in_flight: dict[str, ResourceClaim] = {}
        self.assumed: dict[str, ResourceClaim] = {}
        self.version = 10

    def codes(self, claim: ResourceClaim) -> dict[str, int] | str:
        self.asked = []
        return _codes(self.catalog, self.availabilities, claim, self.nodes, self.asked)

    def codes_of_a_new_look(self, claim: ResourceClaim) -> dict[str, int] | str:
        catalog = DeviceCatalog(self.store)
        for each in self.assumed.values():
            catalog.allocations.assume(each)
        for each in self.in_flight.values():
            catalog.allocations.reserve(each)
        return _codes(catalog, DeviceAvailabilities(catalog), claim, self.nodes, [])

    def happen(self, dice: random.Random) -> None:
        claims, others = (self._claim, self._claim, self._claim_goes), (self._node, self._class, self._rule)
        dice.choice([self._slice, self._slice_goes, *claims, *others])(dice)

    def _slice(self, dice: random.Random) -> None:
        put(self.store, any_slice(dice, dice.choice(NAMES)))

    def _slice_goes(self, dice: random.Random) -> None:
        self.store.remove(fw.RESOURCE_SLICE, f"slice-{dice.choice(NAMES)}")

    def _claim(self, dice: random.Random) -> None:
        """A claim takes a step on its way: reserved, written, seen; or freed."""
        name = dice.choice("abcd")
        self.version += 1
        free = a_claim(name, version=str(self.version))
        taken = a_claim(
            name, status=allocated(f"{dice.choice(NAMES)}/d{dice.randint(0, 1)}"), version=str(self.version)
        )
        known = self.catalog.allocations.claim("default", name)
        step = dice.choice(["reserve", "write", "release", "see", "free"])
        if step == "reserve" and known is not None and known.status.allocation is None:
            self.in_flight.setdefault(taken.uid, taken)
            self.catalog.allocations.reserve(taken)
        elif step == "write" and known is not None and taken.uid in self.in_flight:
            written = self.in_flight[taken.uid].allocated(_allocation(self.in_flight[taken.uid]))
            meta = msgspec.structs.replace(written.metadata, resource_version=str(self.version))
            written = msgspec.structs.replace(written, metadata=meta)
            self.assumed[written.uid] = written
            self.catalog.allocations.assume(written)
        elif step == "release":
            self.in_flight.pop(taken.uid, None)
            self.catalog.allocations.release(taken.uid)
        elif step == "see":
            put(self.store, self.assumed.pop(taken.uid, taken if known is None else known))
        elif step == "free":
            self.assumed.pop(free.uid, None)
            put(self.store, free)

    def _claim_goes(self, dice: random.Random) -> None:
        uid = f"claim-{dice.choice('abcd')}"
        self.assumed.pop(uid, None)
        self.store.remove(fw.RESOURCE_CLAIM, uid)

    def _class(self, dice: random.Random) -> None:
        put(self.store, a_class("gpu", dice.choice(("true", "false"))))

    def _rule(self, dice: random.Random) -> None:
        if dice.random() < 0.5:
            self.store.remove(fw.DEVICE_TAINT_RULE, "rule-broken")
        else:
            put(self.store, a_taint_rule("broken", dice.choice(("None", "NoSchedule")), pool=dice.choice(NAMES)))

    def _node(self, dice: random.Random) -> None:
        name = dice.choice(NAMES)
        if self.nodes.row_of(name) is not None and dice.random() < 0.5:
            self.nodes.remove_node(name)
        else:
            self.nodes.set_node(a_node(name, labels={"zone": dice.choice("ab")}))


def _allocation(claim: ResourceClaim) -> Allocation:
    assert claim.status.allocation is not None
    return claim.status.allocation


def _codes(
    catalog: DeviceCatalog,
    availabilities: DeviceAvailabilities,
    claim: ResourceClaim,
    nodes: NodeTable,
    asked: list[str],
) -> dict[str, int] | str:
    """Node → code, or the error that ends the attempt."""
    allocator = Allocator(catalog, [claim], catalog.allocations.allocated())

    def ask(node: Node) -> Any:
        asked.append(node.name)
        return allocator.allocate(node, lambda: None)

    rows = np.flatnonzero(nodes.in_use)
    try:
        codes = availabilities.of([claim], nodes, PluginColumns(nodes)).update(nodes, rows, Asking(ask, None, None))
    except DevicesError as error:
        return str(error)
    return {nodes.names()[row]: int(code) for row, code in zip(rows.tolist(), codes, strict=True)}


def any_slice(dice: random.Random, name: str) -> Any:
    """A slice of a node; or for all, or of a zone; sometimes of a pool of two, of which the other may be missing."""
    devices = [a_device(f"d{i}", model=dice.choice(MODELS)) for i in range(dice.randint(0, 3))]
    if dice.random() < 0.3:
        return _of_counters(dice, name)
    where: dict[str, Any] = dice.choice([{}, {}, {}, {"allNodes": True}, {"nodeSelector": _zone("a")}])
    whole: dict[str, Any] = dice.choice([{}, {}, {"pool": "two", "of": 2}, {"generation": 2}])
    return a_slice(name, *devices, **where, **whole)


def _zone(value: str) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]}]}


def _of_counters(dice: random.Random, name: str) -> Any:
    """A slice with the counters of a pool of two, or with its devices, which have no room beside each other."""
    pool: dict[str, Any] = {"pool": f"chip-{dice.randint(0, 1)}", "of": 2}
    if name in NAMES[::2]:
        return a_slice(name, **pool, sharedCounters=[{"name": "chip", "counters": {"slots": {"value": "2"}}}])
    slots = {"counterSet": "chip", "counters": {"slots": {"value": "2"}}}
    devices = [a_device(f"d{i}", consumesCounters=[slots]) for i in range(2)]
    return a_slice(name, *devices, **pool, nodeName=dice.choice(NAMES))
