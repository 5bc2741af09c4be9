"""The allocator: which devices claims get on a node, in which order they are tried.

The intent of kube-scheduler's own table (structured/internal/allocatortesting); equality on generated clusters is
judged by the conformance suite.
"""

import dataclasses
import json
from typing import Any

import msgspec
import pytest

from plugins.dynamic_resources.allocation.allocator import Allocator, NoDevices
from plugins.dynamic_resources.allocation.catalog import catalog_of
from plugins.dynamic_resources.allocation.pools import DevicesError
from plugins.dynamic_resources.gates import FRACTIONAL_RANGES
from scheduler.api.devices import Allocation, ResourceClaim
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
)

FAST = f'has(device.attributes["{DRIVER}"].model) && device.attributes["{DRIVER}"].model == "A100"'
HERE = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


def allocate(
    world: list[Any], *claims: ResourceClaim, node: str = "n1", gates: tuple[str, ...] = (), **labels: str
) -> list[Allocation] | None:
    handle, _, _ = a_world(*world)
    handle = dataclasses.replace(handle, feature_gates=frozenset(gates))
    catalog = catalog_of(handle)
    allocator = Allocator(catalog, claims, catalog.allocations.allocated())
    solution = allocator.allocate(a_node(node, labels=labels), lambda: None)
    return None if solution is None else solution.allocations


def devices(found: list[Allocation] | None) -> list[list[str]] | None:
    """`request: pool/device` of each claim."""
    if found is None:
        return None
    return [[f"{each.request}: {each.pool}/{each.device}" for each in one.devices.results or ()] for one in found]


def two(**fields: Any) -> Any:
    return a_slice("n1", a_device("d0", **fields), a_device("d1", **fields))


def test_the_first_devices_are_taken_each_once() -> None:
    assert devices(allocate([two()], a_claim("a"), a_claim("b"))) == [["q: n1/d0"], ["q: n1/d1"]]


def test_there_is_nothing_once_all_are_taken() -> None:
    assert allocate([two()], a_claim("a", a_request(count=3))) is None
    assert allocate([two()], a_claim("a"), node="n2") is None


def test_pools_are_tried_by_name_and_slices_by_name_and_devices_as_listed() -> None:
    world = [
        a_slice("s2", a_device("first"), pool="b", nodeName="n1"),
        a_slice("s4", a_device("z"), a_device("y"), pool="a", of=2, nodeName="n1"),
        a_slice("s3", a_device("x"), pool="a", of=2, nodeName="n1"),
        a_slice("s0", a_device("last"), driver="z.example.com", pool="0", nodeName="n1"),
    ]

    assert devices(allocate(world, a_claim("c", a_request(count=5)))) == [
        ["q: a/x", "q: a/z", "q: a/y", "q: b/first", "q: 0/last"]
    ]


def test_pools_with_binding_conditions_come_last() -> None:
    world = [
        a_slice("a", a_device("d", bindingConditions=["ready"], bindingFailureConditions=["failed"]), nodeName="n1"),
        a_slice("b", a_device("d"), nodeName="n1"),
    ]
    found = allocate(world, a_claim("c", a_request(count=2)))

    assert devices(found) == [["q: b/d", "q: a/d"]]
    assert found is not None
    results = found[0].devices.results or ()
    assert [(each.binding_conditions, each.binding_failure_conditions) for each in results] == [
        (None, None),
        (("ready",), ("failed",)),
    ]


def test_a_failing_expression_ends_the_attempt() -> None:
    claim = a_claim("c", a_request("q", "any", "true", f'device.attributes["{DRIVER}"].model == "A100"'))

    with pytest.raises(DevicesError) as raised:
        allocate([two()], claim)

    assert str(raised.value) == (
        f"claim default/c: selector #1 on device {DRIVER}/n1/d0: CEL runtime error: no such key: model. consider using "
        "CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    )
    with pytest.raises(DevicesError, match="claim default/c: selector #0: CEL compile error: "):
        allocate([two()], a_claim("c", a_request("q", "any", "device.")))


def test_the_search_goes_back_for_a_device_that_a_later_request_needs() -> None:
    world = [a_slice("n1", a_device("both", model="A100"), a_device("plain"))]
    claim = a_claim("c", a_request("any"), a_request("fast", "any", FAST))

    assert devices(allocate(world, claim)) == [["any: n1/plain", "fast: n1/both"]]


def test_all_devices_are_taken_or_none() -> None:
    everything = a_claim("c", a_request(allocationMode="All", count=0))
    taken = a_claim("other", status=allocated("n1/d0"))

    assert devices(allocate([two()], everything)) == [["q: n1/d0", "q: n1/d1"]]
    assert allocate([two(), taken], everything) is None
    assert allocate([], everything) is None


def test_an_incomplete_pool_gives_nothing_and_all_of_it_cannot_be_known() -> None:
    incomplete = a_slice("n1", a_device("d"), of=2)

    assert allocate([incomplete], a_claim("c")) is None
    with pytest.raises(
        DevicesError, match=f"asks for all devices, but resource pool {DRIVER}/n1 is currently being upd"
    ):
        allocate([incomplete], a_claim("c", a_request(allocationMode="All")))


def test_only_the_newest_generation_counts_also_where_it_has_nothing_for_the_node() -> None:
    old = a_slice("old", a_device("d"), pool="p", nodeName="n1", generation=1)
    new = a_slice("new", a_device("e"), pool="p", nodeName="n1", generation=2)
    elsewhere = a_slice("elsewhere", a_device("e"), pool="p", of=2, nodeName="n2", generation=3)

    assert devices(allocate([old, new], a_claim("c"))) == [["q: p/e"]]
    assert allocate([a_slice("old", a_device("d"), pool="p", of=2, nodeName="n1"), elsewhere], a_claim("c")) is None


def test_an_invalid_pool_is_told_if_nothing_else_will_do() -> None:
    invalid = a_slice("n1", a_device("d"), a_device("d"))

    with pytest.raises(NoDevices, match="invalid resource pools were encountered"):
        allocate([invalid], a_claim("c"))
    assert devices(allocate([invalid, a_slice("more", a_device("d"), nodeName="n1")], a_claim("c"))) == [["q: more/d"]]


def test_more_devices_than_a_claim_can_have_are_an_error_or_the_next_alternative() -> None:
    world = [a_slice("n1", *(a_device(f"d{i:02}") for i in range(40)))]
    either = {
        "name": "q",
        "firstAvailable": [
            {"name": "a", "deviceClassName": "any", "count": 20},
            {"name": "b", "deviceClassName": "any"},
        ],
    }

    too_many = "request {}: adding {} devices exceeds the claim limit of 32, with {} already accounted for"
    with pytest.raises(DevicesError, match=f"^claim default/c, {too_many.format('q', 33, 0)}$"):
        allocate(world, a_claim("c", a_request(count=33)))
    with pytest.raises(DevicesError, match=too_many.format("last", 2**63 - 1, 21)):
        allocate(world, a_claim("c", a_request("first", count=20), either, a_request("last", count=2**63 - 1)))
    found = allocate(world, a_claim("c", a_request("first", count=20), either))
    assert [len(one) for one in devices(found) or []] == [21]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({"matchAttribute": f"{DRIVER}/model"}, ["a: n1/d1", "b: n1/d2"]),
        ({"matchAttribute": f"{DRIVER}/model", "requests": ["a"]}, ["a: n1/d0", "b: n1/d1"]),
        ({"matchAttribute": f"{DRIVER}/absent"}, None),
        ({"distinctAttribute": f"{DRIVER}/model"}, ["a: n1/d0", "b: n1/d1"]),
    ],
)
def test_constraints_hold_between_devices(constraint: Any, expected: list[str] | None) -> None:
    models = ("T4", "A100", "A100")
    world = [a_slice("n1", *(a_device(f"d{i}", model=model) for i, model in enumerate(models)))]
    found = devices(allocate(world, a_claim("c", a_request("a"), a_request("b"), constraints=[constraint])))

    assert found == (None if expected is None else [expected])


def test_a_request_with_derived_attributes_is_refused_even_as_an_alternative() -> None:
    derived: dict[str, Any] = {"derivedAttributes": [{"name": "a", "expression": "1"}]}
    either = {
        "name": "q",
        "firstAvailable": [
            {"name": "a", "deviceClassName": "any"},
            {"name": "b", "deviceClassName": "any", **derived},
        ],
    }

    for claim, name in ((a_claim("c", a_request(**derived)), "q"), (a_claim("c", either), "b")):
        with pytest.raises(DevicesError) as raised:
            allocate([two()], claim)

        assert str(raised.value) == (
            f"claim default/c, request {name}: cannot handle request with derived attributes, the feature is disabled"
        )


def test_all_devices_that_a_constraint_keeps_apart_are_an_error() -> None:
    world = [a_slice("n1", a_device("d0", model="T4"), a_device("d1", model="A100"))]
    claim = a_claim("c", a_request(allocationMode="All"), constraints=[{"matchAttribute": f"{DRIVER}/model"}])

    with pytest.raises(
        DevicesError, match=r"cannot add device gpu.example.com/n1/d1 because a claim constraint would not"
    ):
        allocate(world, claim)


def test_admin_access_takes_what_others_have_but_not_twice_in_a_claim() -> None:
    taken = a_claim("other", status=allocated("n1/d0", "n1/d1"))
    found = allocate([two(), taken], a_claim("c", a_request(adminAccess=True, count=2)))

    assert devices(found) == [["q: n1/d0", "q: n1/d1"]]
    assert found is not None
    assert [each.admin_access for each in found[0].devices.results or ()] == [True, True]
    assert allocate([two()], a_claim("c", a_request(adminAccess=True, count=3))) is None


def test_what_is_taken_with_admin_access_is_free_for_others() -> None:
    watcher = a_claim("other", status=allocated("n1/d0", adminAccess=True))

    assert devices(allocate([two(), watcher], a_claim("c"))) == [["q: n1/d0"]]


@pytest.mark.parametrize(
    ("effect", "tolerations", "device"),
    [
        ("NoSchedule", None, "d1"),
        ("NoExecute", None, "d1"),
        ("None", None, "d0"),
        ("NoSchedule", [{"key": "broken", "operator": "Exists"}], "d0"),
        ("NoSchedule", [{"operator": "Exists", "effect": "NoExecute"}], "d1"),
        ("NoSchedule", [{"key": "broken", "value": "other"}], "d1"),
        ("NoSchedule", [{"key": "broken", "operator": "Equal", "value": "yes"}], "d0"),
    ],
)
def test_tainted_devices_are_for_those_who_tolerate_them(effect: str, tolerations: Any, device: str) -> None:
    taint = {"key": "broken", "value": "yes", "effect": effect}
    world = [a_slice("n1", a_device("d0", taints=[taint]), a_device("d1"))]
    found = allocate(world, a_claim("c", a_request(**({"tolerations": tolerations} if tolerations else {}))))

    assert devices(found) == [[f"q: n1/{device}"]]


@pytest.mark.parametrize(
    ("selector", "device"),
    [
        ({"driver": DRIVER, "pool": "n1", "device": "d0"}, "d1"),
        ({"device": "d0"}, "d1"),
        ({"pool": "n2"}, "d0"),
        ({"driver": "other.example.com"}, "d0"),
        ({"pool": "n1"}, None),
        ({}, None),
        (None, "d0"),
    ],
)
def test_rules_taint_the_devices_that_they_select(selector: dict[str, str] | None, device: str | None) -> None:
    rule = a_taint_rule("broken", **(selector or {}))
    if selector is None:
        rule = msgspec.structs.replace(rule, spec=msgspec.structs.replace(rule.spec, device_selector=None))
    tolerant = a_claim("c", a_request(tolerations=[{"key": "broken", "operator": "Exists"}]))

    assert devices(allocate([two(), rule], a_claim("c"))) == (None if device is None else [[f"q: n1/{device}"]])
    assert devices(allocate([two(), rule], tolerant)) == [["q: n1/d0"]]


def counted(name: str, slots: int) -> Any:
    return a_device(name, consumesCounters=[{"counterSet": "chip", "counters": {"slots": {"value": str(slots)}}}])


def chip(of: int = 2) -> list[Any]:
    counters = [{"name": "chip", "counters": {"slots": {"value": "4"}}}]
    return [
        a_slice("counters", pool="p", of=of, nodeName="n1", sharedCounters=counters),
        a_slice("parts", counted("whole", 4), counted("half", 2), counted("other", 2), pool="p", of=of, nodeName="n1"),
    ]


def test_parts_of_a_device_fit_as_long_as_its_counters_last() -> None:
    assert devices(allocate(chip(), a_claim("c"))) == [["q: p/whole"]]
    assert devices(allocate(chip(), a_claim("c", a_request(count=2)))) == [["q: p/half", "q: p/other"]]
    assert allocate(chip(), a_claim("c", a_request(count=3))) is None


def test_counters_of_allocated_parts_are_gone() -> None:
    assert devices(allocate([*chip(), a_claim("o", status=allocated("p/half"))], a_claim("c"))) == [["q: p/other"]]
    assert allocate([*chip(), a_claim("o", status=allocated("p/whole"))], a_claim("c")) is None


def test_drivers_with_pools_of_one_name_share_no_counters() -> None:
    def pool(driver: str) -> Any:
        counters = [{"name": "chip", "counters": {"slots": {"value": "1"}}}]
        spec: dict[str, Any] = {"driver": driver, "pool": "p", "of": 2, "nodeName": "n1"}
        return (
            a_slice(f"{driver}-counters", sharedCounters=counters, **spec),
            a_slice(f"{driver}-parts", counted("whole", 1), **spec),
        )

    world = [*pool("a.example.com"), *pool("b.example.com")]

    assert devices(allocate(world, a_claim("c", a_request(count=2)))) == [["q: p/whole", "q: p/whole"]]
    taken = a_claim("o", status=allocated("p/whole", driver="a.example.com"))
    found = allocate([*world, taken], a_claim("c"))
    assert found is not None
    assert [each.driver for each in found[0].devices.results or ()] == ["b.example.com"]


def test_a_shared_device_in_use_takes_no_more_counters() -> None:
    counters = [{"name": "chip", "counters": {"slots": {"value": "1"}}}]
    part = {**counted("whole", 1), "allowMultipleAllocations": True}
    world = [
        a_slice("counters", pool="p", of=2, nodeName="n1", sharedCounters=counters),
        a_slice("parts", part, pool="p", of=2, nodeName="n1"),
    ]
    used = a_claim("used", status=allocated("p/whole", shareID="x"))

    assert devices(allocate([*world, used], a_claim("c"), a_claim("d"))) == [["q: p/whole"], ["q: p/whole"]]


def test_a_counter_that_no_set_has_makes_the_pool_invalid() -> None:
    with pytest.raises(NoDevices):
        allocate([a_slice("parts", counted("d", 1), pool="p", nodeName="n1")], a_claim("c"))


@pytest.mark.parametrize(
    "elsewhere",
    [
        pytest.param([a_slice("n2", counted("d", 1), pool="p", of=2)], id="incomplete"),
        pytest.param([a_slice("n2", counted("d", 1), pool="p")], id="without its counters"),
    ],
)
def test_a_pool_that_has_only_slices_for_other_nodes_does_not_matter(elsewhere: list[Any]) -> None:
    counters = [{"name": "other", "counters": {"slots": {"value": "4"}}}]
    world = [*elsewhere, a_slice("counters", pool="q", of=3, nodeName="n2", sharedCounters=counters)]

    assert allocate(world, a_claim("c")) is None
    assert devices(allocate([two(), *world], a_claim("c", a_request(allocationMode="All")))) == [
        ["q: n1/d0", "q: n1/d1"]
    ]


def test_a_pool_with_counters_for_the_node_alone_counts() -> None:
    counters = [{"name": "chip", "counters": {"slots": {"value": "4"}}}]
    world = [
        a_slice("counters", pool="p", of=3, allNodes=True, sharedCounters=counters),
        a_slice("n2", counted("d", 1), pool="p", of=3),
    ]

    with pytest.raises(DevicesError, match=f"resource pool {DRIVER}/p is currently being updated"):
        allocate(world, a_claim("c", a_request(allocationMode="All")))


def test_devices_for_other_nodes_must_consume_counters_that_exist() -> None:
    world = [*chip()[:1], a_slice("n2", counted("d", 1), pool="p", of=2)]
    wrong = [{"counterSet": "absent", "counters": {}}]

    assert allocate(world, a_claim("c"), node="n2") is not None
    world[1] = a_slice("n2", a_device("d", consumesCounters=wrong), pool="p", of=2)
    with pytest.raises(NoDevices):
        allocate(world, a_claim("c"))


def test_a_pool_with_compatibility_groups_is_not_complete() -> None:
    consumed = {"counterSet": "chip", "counters": {"slots": {"value": "1"}}, "compatibilityGroups": ["a"]}
    grouped = a_slice("grouped", a_device("d", consumesCounters=[consumed]), pool="p", of=3, nodeName="n1")
    world = [*chip(of=3), grouped]

    assert allocate(world, a_claim("c")) is None
    with pytest.raises(DevicesError, match=f"resource pool {DRIVER}/p is currently being updated"):
        allocate(world, a_claim("c", a_request(allocationMode="All")))


def test_of_two_faults_the_one_that_is_written_first_is_told() -> None:
    incomplete = a_slice("n1", a_device("d"), pool="p", of=2, nodeName="n1")
    everything, derived = a_request("a", allocationMode="All"), a_request("b", derivedAttributes=[{"name": "a"}])

    with pytest.raises(DevicesError, match="request a: asks for all devices"):
        allocate([incomplete], a_claim("c", everything, derived))
    with pytest.raises(DevicesError, match="request b: cannot handle request with derived attributes"):
        allocate([incomplete], a_claim("c", derived, everything))


def shared(**policy: Any) -> Any:
    capacity = {"memory": {"value": "10Gi", **({"requestPolicy": policy} if policy else {})}}
    return a_slice("n1", {"name": "d", "allowMultipleAllocations": True, "capacity": capacity})


def wants(name: str, amount: str) -> ResourceClaim:
    return a_claim(name, a_request(capacity={"requests": {"memory": amount}}))


def test_a_device_is_shared_until_its_capacity_is_used_up() -> None:
    found = allocate([shared()], wants("a", "6Gi"), wants("b", "4Gi"))

    assert found is not None
    results = [one.devices.results or () for one in found]
    assert [each[0].consumed_capacity for each in results] == [{"memory": "6Gi"}, {"memory": "4Gi"}]
    assert len({each[0].share_id for each in results} - {None}) == 2
    assert allocate([shared()], wants("a", "6Gi"), wants("b", "5Gi")) is None
    used = a_claim("used", status=allocated("n1/d", shareID="x", consumedCapacity={"memory": "6Gi"}))
    assert allocate([shared(), used], wants("a", "5Gi")) is None
    assert allocate([shared(), used], wants("a", "4Gi")) is not None


@pytest.mark.parametrize(
    ("policy", "asked", "consumed"),
    [
        ({}, None, "10Gi"),
        ({"default": "1Gi"}, None, "1Gi"),
        ({"default": "2Gi", "validValues": ["2Gi", "4Gi"]}, "3Gi", "4Gi"),
        ({"default": "2Gi", "validValues": ["2Gi", "4Gi"]}, "5Gi", None),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "step": "2Gi"}}, "1500Mi", "3Gi"),
        ({"default": "1G", "validRange": {"min": "1G", "step": "500M"}}, "1300M", "1500M"),
        ({"default": "1", "validRange": {"min": "1", "step": "1e3"}}, "5", "1001"),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "max": "4Gi"}}, "100Mi", "1Gi"),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "max": "4Gi"}}, "5Gi", None),
    ],
)
def test_policies_round_what_is_asked_for(policy: Any, asked: str | None, consumed: str | None) -> None:
    found = allocate([shared(**policy)], a_claim("c") if asked is None else wants("c", asked))

    if consumed is None:
        assert found is None
    else:
        assert found is not None
        assert [each.consumed_capacity for each in found[0].devices.results or ()] == [{"memory": consumed}]


@pytest.mark.parametrize(
    ("least", "asked", "problem"),
    [
        ("0", "9223372036854775808", "{}: request 9223372036854775808 exceeds MaxInt64"),
        ("0", "10000000000G", "{}: request 10E exceeds MaxInt64"),
        ("1", "8Ei", "{}: rounding request 9223372036854775807 up to the next step passes MaxInt64"),
        ("-1", "-5", "capacity value is negative"),
    ],
)
def test_a_request_beyond_64_bits_or_below_zero_ends_the_attempt(least: str, asked: str, problem: str) -> None:
    world = [shared(default="1", validRange={"min": least, "step": "1Gi"})]
    reason = 'capacity "memory": ' + problem.format(
        "capacity request cannot be represented in the device's range arithmetic"
    )

    for mode, device in (("ExactCount", f"{DRIVER}/n1/d"), ("All", "d")):
        claim = a_claim("c", a_request(capacity={"requests": {"memory": asked}}, allocationMode=mode))
        with pytest.raises(DevicesError) as raised:
            allocate(world, claim)

        assert str(raised.value) == f"claim default/c, request q: checking capacity for device {device}: {reason}"


@pytest.mark.parametrize(
    ("valid", "asked", "whole", "fractional"),
    [
        ({"min": "500m", "step": "250m"}, "600m", "1", "750m"),
        ({"min": "500m", "step": "250m"}, "100m", "500m", "500m"),
        ({"min": "1", "step": "1"}, "1500m", "2", "2"),
        ({"min": "1", "max": "1750m", "step": "500m"}, "1600m", None, None),
        ({"min": "0", "step": "100u"}, "1500m", "2", "2"),
        ({"min": "1e19", "step": "1"}, "1", None, None),
    ],
)
def test_ranges_are_computed_with_in_thousandths_if_the_gate_is_on(
    valid: dict[str, str], asked: str, whole: str | None, fractional: str | None
) -> None:
    world = [shared(default="500m", validRange=valid)]
    claim = a_claim("c", a_request(capacity={"requests": {"memory": asked}}))

    for gates, expected in (((), whole), ((FRACTIONAL_RANGES,), fractional)):
        found = allocate(world, claim, gates=gates)

        consumed = None if found is None else [each.consumed_capacity for each in found[0].devices.results or ()]
        assert consumed == (None if expected is None else [{"memory": expected}])


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("1500u", "request 1500u is not a representable milli value"),
        (
            "9223372036854775807m",
            "rounding request 9223372036854775807m up to the next step passes the milli-value range",
        ),
    ],
)
def test_a_request_beyond_thousandths_ends_the_attempt(asked: str, problem: str) -> None:
    world = [shared(default="1", validRange={"min": "0", "step": "10m"})]
    claim = a_claim("c", a_request(capacity={"requests": {"memory": asked}}))

    with pytest.raises(DevicesError, match=f"range arithmetic: {problem}$"):
        allocate(world, claim, gates=(FRACTIONAL_RANGES,))


def test_a_request_for_all_fails_if_a_device_is_partly_used_and_leaves_out_those_too_small() -> None:
    devices_ = (
        a_device(name, memory=memory, allowMultipleAllocations=True)
        for name, memory in (("d0", "10Gi"), ("d1", "10Gi"), ("small", "1Gi"))
    )
    world = a_slice("n1", *devices_)
    everything = a_claim("c", a_request(allocationMode="All", capacity={"requests": {"memory": "6Gi"}}))
    used = a_claim("other", status=allocated("n1/d0", shareID="s", consumedCapacity={"memory": "6Gi"}))

    assert devices(allocate([world], everything)) == [["q: n1/d0", "q: n1/d1"]]
    assert allocate([world, used], everything) is None


def test_a_capacity_that_the_device_has_not_does_not_fit() -> None:
    assert allocate([two()], wants("c", "1Gi")) is None


ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
IN_ZONE = {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}


@pytest.mark.parametrize(
    ("slice_", "selector"),
    [
        (a_slice("s", a_device("d"), nodeName="n1"), {"matchFields": [HERE]}),
        (a_slice("s", a_device("d"), allNodes=True), None),
        (a_slice("s", a_device("d", bindsToNode=True), allNodes=True), {"matchFields": [HERE]}),
        (a_slice("s", a_device("d"), nodeSelector=IN_ZONE), {"matchExpressions": [ZONE]}),
        (a_slice("s", a_device("d", nodeSelector=IN_ZONE), perDeviceNodeSelection=True), {"matchExpressions": [ZONE]}),
        (a_slice("s", a_device("d", nodeName="n1"), perDeviceNodeSelection=True), {"matchFields": [HERE]}),
    ],
)
def test_an_allocation_tells_where_it_can_be_used(slice_: Any, selector: Any) -> None:
    found = allocate([slice_], a_claim("c"), zone="a")

    assert found is not None
    terms = msgspec.to_builtins(found[0].node_selector)
    as_lists = msgspec.json.decode(msgspec.json.encode(terms))
    assert as_lists == (None if selector is None else {"nodeSelectorTerms": [selector]})


def test_devices_for_other_nodes_are_left_out() -> None:
    world = [
        a_slice("s", a_device("d0", nodeName="n2"), a_device("d1", allNodes=True), perDeviceNodeSelection=True),
        a_slice("t", a_device("e"), nodeSelector=IN_ZONE),
    ]

    assert devices(allocate(world, a_claim("c", a_request(count=1)), zone="b")) == [["q: s/d1"]]
    assert allocate(world, a_claim("c", a_request(count=2)), zone="b") is None


def test_configuration_comes_from_classes_once_and_from_the_claim_for_its_requests() -> None:
    configured = a_class("configured", config=[{"opaque": {"driver": DRIVER, "parameters": {"from": "class"}}}])
    config = [
        {"opaque": {"driver": DRIVER, "parameters": {"for": "all"}}},
        {"requests": ["b"], "opaque": {"driver": DRIVER, "parameters": {"for": "b"}}},
        {"requests": ["a", "b"], "opaque": {"driver": DRIVER, "parameters": {"for": "both"}}},
        {"requests": ["other"], "opaque": {"driver": DRIVER, "parameters": {"for": "other"}}},
    ]
    claim = a_claim("c", a_request("a", "configured"), a_request("b", "configured"), config=config)
    found = allocate([two(), configured], claim)

    assert found is not None
    entries = found[0].devices.config or ()
    assert [(e.source, e.requests, json.loads(bytes(e.opaque or b""))["parameters"]) for e in entries] == [
        ("FromClass", None, {"from": "class"}),
        ("FromClaim", None, {"for": "all"}),
        ("FromClaim", ("b",), {"for": "b"}),
        ("FromClaim", None, {"for": "both"}),
    ]


def test_configuration_names_requests_unless_it_is_for_all_of_them() -> None:
    either = {"name": "e", "firstAvailable": [{"name": "x", "deviceClassName": "any"}]}
    config = [
        {"requests": ["a", "e"], "opaque": {"driver": DRIVER, "parameters": {}}},
        {"requests": ["e/x", "a", "b"], "opaque": {"driver": DRIVER, "parameters": {}}},
    ]
    plain = a_class("plain", config=[{"opaque": {"driver": DRIVER, "parameters": {}}}])
    world = [a_slice("n1", a_device("d0"), a_device("d1"), a_device("d2")), plain]
    found = allocate(world, a_claim("c", a_request("a", "plain"), a_request("b", "plain"), either, config=config))

    assert found is not None
    assert [each.requests for each in found[0].devices.config or ()] == [("a", "b"), ("a", "e"), None]


def test_the_time_is_checked_while_searching() -> None:
    def too_late() -> None:
        raise TimeoutError("late")

    handle, _, _ = a_world(two())
    catalog = catalog_of(handle)

    with pytest.raises(TimeoutError):
        Allocator(catalog, [a_claim("c")], catalog.allocations.allocated()).allocate(a_node("n1"), too_late)
