"""What the feature gates of devices change. The conformance suite has generated clusters for them: `gated.py`."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from plugins.dynamic_resources.allocation.allocator import Allocator
from plugins.dynamic_resources.allocation.catalog import catalog_of
from plugins.dynamic_resources.allocation.pools import DevicesError
from plugins.dynamic_resources.gates import COMPATIBILITY, DERIVED, LISTS, OPTIONAL_OPERATIONS
from plugins.dynamic_resources.plugin import NOT_AVAILABLE, DynamicResources
from scheduler import framework as fw
from scheduler.api.devices import ResourceClaim
from scheduler.testing import a_handle, a_node, started
from tests.unit.plugins.cluster import a_cluster
from tests.unit.plugins.devices import (
    Attempt,
    OneGroup,
    a_claim,
    a_device,
    a_request,
    a_slice,
    a_world,
    allocated,
    claiming,
)

COLOUR = "example.com/colour"


def declaring(node: fw.Node) -> fw.Node:
    """A node whose kubelet can leave out operations of drivers."""
    status = msgspec.structs.replace(node.status, declared_features=(OPTIONAL_OPERATIONS,))
    return msgspec.structs.replace(node, status=status)


def devices(world: Sequence[Any], claim: ResourceClaim, gate: str = "", node: fw.Node | None = None) -> list[str]:
    """The names of those that the claim gets; none if it gets none."""
    handle, _, _ = a_world(*world)
    catalog = catalog_of(dataclasses.replace(handle, feature_gates=frozenset({gate} if gate else ())))
    solution = Allocator(catalog, [claim], catalog.allocations.allocated()).allocate(node or a_node("n1"), lambda: None)
    results = () if solution is None else solution.allocations[0].devices.results or ()
    return [each.device for each in results]


def part(name: str, *groups: str) -> dict[str, Any]:
    """A part of a chip that has a counter of 4."""
    drawn = {"counterSet": "chip", "counters": {"slots": {"value": "1"}}}
    return a_device(name, consumesCounters=[drawn | ({"compatibilityGroups": list(groups)} if groups else {})])


def chip(*parts: Any) -> tuple[Any, Any]:
    counters = [{"name": "chip", "counters": {"slots": {"value": "4"}}}]
    in_pool: dict[str, Any] = {"pool": "n1", "of": 2, "nodeName": "n1"}
    return a_slice("counters", sharedCounters=counters, **in_pool), a_slice("parts", *parts, **in_pool)


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ((("a",), ("b",), ("b", "a")), ["p0", "p2"]),
        (((), ("a",), ()), ["p0", "p2"]),
        ((("a", "b"), ("b", "c"), ("c", "a")), ["p0", "p1"]),
        ((("a",), ("b",), ()), []),
    ],
)
def test_parts_of_a_chip_are_used_together_if_they_have_a_group_in_common(
    groups: Sequence[Sequence[str]], found: list[str]
) -> None:
    world = chip(*(part(f"p{i}", *each) for i, each in enumerate(groups)))
    two = a_claim("c", a_request(count=2))

    assert devices(world, two, COMPATIBILITY) == found
    assert devices(world, two) == []


def test_parts_that_are_in_use_count_too_but_not_for_another_chip() -> None:
    taken = a_claim("other", status=allocated("n1/p0"))
    world = (*chip(part("p0", "a"), part("p1", "b"), part("p2", "a")), taken)

    assert devices(world, a_claim("c"), COMPATIBILITY) == ["p2"]


def coloured(name: str, **value: Any) -> dict[str, Any]:
    return a_device(name, attributes={COLOUR: value})


@pytest.mark.parametrize(
    ("constraint", "values", "found"),
    [
        ("matchAttribute", ({"strings": ["red", "blue"]}, {"string": "grey"}, {"strings": ["blue"]}), ["d0", "d2"]),
        ("matchAttribute", ({"ints": [1]}, {"strings": ["1"]}, {"int": 1}), ["d0", "d2"]),
        ("distinctAttribute", ({"strings": ["red", "blue"]}, {"strings": ["blue"]}, {"string": "grey"}), ["d0", "d2"]),
    ],
)
def test_lists_match_by_what_they_have_in_common(constraint: str, values: Sequence[Any], found: list[str]) -> None:
    world = [a_slice("n1", *(coloured(f"d{i}", **each) for i, each in enumerate(values)))]
    two = a_claim("c", a_request(count=2), constraints=[{constraint: COLOUR}])

    assert devices(world, two, LISTS) == found
    if constraint == "matchAttribute":
        assert devices(world, two) == []


def test_the_common_values_are_those_of_the_devices_that_are_taken_not_of_those_tried() -> None:
    values = (["a", "b"], ["a"], ["b"], ["b", "c"])
    world = [a_slice("n1", *(coloured(f"d{i}", strings=each) for i, each in enumerate(values)))]
    three = a_claim("c", a_request(count=3), constraints=[{"matchAttribute": COLOUR}])

    assert devices(world, three, LISTS) == ["d0", "d2", "d3"]


def derived(expression: str, *more: str, count: int = 2) -> ResourceClaim:
    attributes = [{"name": "example.com/near", "expression": expression}]
    request = a_request("q", "any", *more, count=count, derivedAttributes=attributes)
    return a_claim("c", request, constraints=[{"matchAttribute": "example.com/near"}])


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ('device.attributes["example.com"].size % 2', ["d0", "d2"]),
        ('device.attributes["example.com"].size > 1', ["d1", "d2"]),
        ('"d" + device.driver', ["d0", "d1"]),
        ('semver("1.0.0")', ["d0", "d1"]),
        ("[1, 2]", []),  # without the gate for lists
    ],
)
def test_a_constraint_is_about_what_expressions_derive_from_devices(expression: str, found: list[str]) -> None:
    sized = (a_device(f"d{i}", attributes={"example.com/size": {"int": i + 1}}) for i in range(3))

    assert devices([a_slice("n1", *sized)], derived(expression), DERIVED) == found


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("1.5", "compile derived attribute example.com/near failed: must evaluate to a primitive scalar"),
        (
            "[1, dyn('a')]",
            "on device gpu.example.com/n1/d0 failed: expected list element at index 1 to be int, got string",
        ),
        ("dyn(1.5)", "evaluate .* failed: unsupported CEL return type: float64"),
        ("[dyn(1.5)]", "evaluate .* failed: unsupported list element type: float64"),
        ('device.attributes["x.org"].y', "on device gpu.example.com/n1/d0 failed: no such key: y$"),
    ],
)
def test_an_expression_that_derives_nothing_ends_the_attempt(expression: str, problem: str) -> None:
    with pytest.raises(DevicesError, match=problem):
        devices([a_slice("n1", a_device("d0"), a_device("d1"))], derived(expression), DERIVED)


@pytest.mark.parametrize("place", [{"nodeName": "n1"}, {"allNodes": True}])
def test_operations_are_left_out_only_by_kubelets_that_can(place: dict[str, Any]) -> None:
    world = [a_slice("n1", a_device("d0"), skipNodeOperations=["*"], **place)]
    claim, node = a_claim("c"), declaring(a_node("n1"))

    assert devices(world, claim, OPTIONAL_OPERATIONS) == []
    assert devices(world, claim, OPTIONAL_OPERATIONS, node) == ["d0"]
    assert devices(world, claim) == ["d0"]
    assert devices(world, claim, LISTS, node) == []


def test_devices_whose_operations_are_left_out_are_used_there_only_even_by_others() -> None:
    claim = a_claim("c", status=allocated("n1/d0", skipNodeOperations=["*"]))
    nodes = a_cluster(a_node("n1"), declaring(a_node("n2")))
    plugin = started(DynamicResources(), a_world(claim)[0])

    assert Attempt(plugin, claiming("p", "c"), nodes).answers() == {"n1": NOT_AVAILABLE, "n2": None}


def test_a_claim_that_another_pod_of_the_group_has_got_names_the_feature() -> None:
    world = [a_claim("c"), a_slice("all", a_device("d0"), skipNodeOperations=["*"], allNodes=True)]
    handle = dataclasses.replace(
        a_world(*world)[0], feature_gates=frozenset({OPTIONAL_OPERATIONS}), pod_groups=OneGroup()
    )
    nodes = a_cluster(a_node("n1"), declaring(a_node("n2")))
    plugin = started(DynamicResources(), handle)
    first = Attempt(plugin, claiming("p1", "c"), nodes, with_its_group=True)
    first.answers()
    first.reserve("n2")

    needs = fw.unresolvable(
        "resource claim default/c allocation requires DRAOptionalNodeOperations feature on the node"
    )
    second = Attempt(plugin, claiming("p2", "c"), nodes, with_its_group=True)
    assert second.answers() == {"n1": needs, "n2": None}


def test_a_kubelet_that_learns_to_leave_out_operations_gets_a_new_answer_and_wakes_pods() -> None:
    world = [a_claim("c"), a_slice("n1", a_device("d0"), skipNodeOperations=["*"])]
    nodes = a_cluster(a_node("n1"))
    handle = dataclasses.replace(a_handle(nodes, a_world(*world)[1]), feature_gates=frozenset({OPTIONAL_OPERATIONS}))
    plugin = started(DynamicResources(), handle)
    before = Attempt(plugin, claiming("p", "c"), nodes).filter("n1")
    nodes.set_node(declaring(a_node("n1")))

    assert before is not None
    assert Attempt(plugin, claiming("p", "c"), nodes).filter("n1") is None
    actions = [each.event.action for each in plugin.events_to_register() if each.event.resource == fw.NODE]
    assert any(fw.Action.UPDATE_NODE_DECLARED_FEATURE & each for each in actions)
