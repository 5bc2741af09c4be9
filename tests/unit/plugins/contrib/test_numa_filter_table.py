"""The cases by which scheduler-plugins judges its own Filter: pkg/noderesourcetopology/filter_test.go.

Amounts and verdicts are theirs. A node has what its zones have together, and often more of it in all than is available.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pytest

from plugins.contrib.node_resource_topology.plugin import NodeResourceTopologyMatch
from plugins.contrib.node_resource_topology.topology import RESOURCE
from scheduler.testing import a_cluster, a_node, schedule
from tests.unit.plugins.contrib.topologies import Amounts, a_numa_pod, a_topology, a_zone

CPU, MEMORY, HUGE = "cpu", "memory", "hugepages-2Mi"
NIC, EXTENDED = "vendor/nic1", "namespace/extended"
OLD_NIC, NO_NIC = "vendor.com/old-nic-model", "vendor/notexistingnic"

FITS: Final = ""
NO_POD: Final = "cannot align pod"
NO_CONTAINER: Final = "cannot align container"
NO_INIT_CONTAINER: Final = "cannot align init container"


class Host(NamedTuple):
    scope: str
    zones: Mapping[int, Amounts]
    """Id → what is available."""

    node: Amounts
    """What the Node itself says, where zones report less or nothing."""


LARGE: Final = {0: {CPU: 4, MEMORY: "8Gi", NIC: 10}, 1: {CPU: 8, MEMORY: "8Gi", NIC: 10}}
HALF: Final = {0: {CPU: 2, MEMORY: "4Gi", NIC: 5}, 1: {CPU: 4, MEMORY: "4Gi", NIC: 2}}
HALF_NODE: Final = {CPU: 50, MEMORY: "16Gi", NIC: 60}

HOSTS: Final = {
    "by container": Host("container", LARGE, HALF_NODE),
    "huge pages": Host(
        "container",
        {zone: {**amounts, HUGE: "128Mi"} for zone, amounts in HALF.items()},
        {**HALF_NODE, HUGE: "256Mi", OLD_NIC: 4},
    ),
    "by pod": Host("pod", HALF, HALF_NODE),
    "odd zone": Host("pod", {0: HALF[0], 75: HALF[1]}, HALF_NODE),
    "extended": Host("container", LARGE, {**HALF_NODE, EXTENDED: 1}),
    "pod of many": Host(
        "pod",
        {
            0: {CPU: 30, MEMORY: "60Gi", HUGE: "384Mi", NIC: 16},
            1: {CPU: 32, MEMORY: "64Gi", HUGE: "512Mi", NIC: 32},
        },
        {CPU: 64, MEMORY: "128Gi", HUGE: "896Mi", NIC: 48},
    ),
}
HOSTS_OF_CONTAINERS: Final = HOSTS["pod of many"]._replace(scope="container")


def verdict(host: Host, *containers: Amounts, init: Sequence[Amounts] = (), guaranteed: bool = True) -> str:
    zones = [a_zone(number, resources=dict(amounts)) for number, amounts in host.zones.items()]
    pod = a_numa_pod(*containers, init=init, guaranteed=guaranteed)
    nodes = a_cluster(a_node("n", allocatable=dict(host.node)))
    decision = schedule(
        NodeResourceTopologyMatch(), pod, nodes, {RESOURCE: [a_topology("n", *zones, scope=host.scope)]}
    )
    return "".join(reason for status in decision.refusals.values() for reason in status.reasons)


@pytest.mark.parametrize(
    ("host", "amounts", "expected"),
    [
        ("extended", {CPU: 2, MEMORY: "2Gi", EXTENDED: 1, NIC: 3}, FITS),
        ("extended", {CPU: 2, MEMORY: "2Gi", EXTENDED: 1}, FITS),
        ("by container", {CPU: 2, MEMORY: "2Gi"}, FITS),
        ("by container", {CPU: 8, MEMORY: "8Gi"}, FITS),  # all of a zone
        ("by container", {CPU: 2, MEMORY: "2Gi", HUGE: 0, NIC: 3}, FITS),
        ("by container", {CPU: 9, MEMORY: "1Gi", NIC: 3}, NO_CONTAINER),
        ("by container", {CPU: 2, MEMORY: "1Gi", NO_NIC: 0}, FITS),
        ("huge pages", {CPU: 2, MEMORY: "2Gi", NIC: 3}, FITS),
        ("huge pages", {CPU: 2, MEMORY: "2Gi", HUGE: "64Mi", NIC: 3}, FITS),
        ("huge pages", {CPU: 2, MEMORY: "2Gi", HUGE: "256Mi", NIC: 3}, NO_CONTAINER),
        ("huge pages", {CPU: 2, MEMORY: "2Gi", HUGE: "64Mi", OLD_NIC: 3}, FITS),
        ("huge pages", {CPU: 2, MEMORY: "2Gi", "ephemeral-storage": "100Mi"}, FITS),  # the node does not say any
        ("by pod", {CPU: 1, MEMORY: "1Gi"}, FITS),
        ("odd zone", {CPU: 2, MEMORY: "4Gi"}, FITS),  # all of the zone that counts
    ],
)
def test_a_guaranteed_container_needs_one_zone_for_all_of_it(host: str, amounts: Amounts, expected: str) -> None:
    assert verdict(HOSTS[host], amounts) == expected


@pytest.mark.parametrize(
    ("host", "cores", "expected"), [("by pod", 3, NO_POD), ("by pod", 1, FITS), ("odd zone", 1, NO_POD)]
)
def test_three_containers_need_one_zone_together(host: str, cores: int, expected: str) -> None:
    container = {CPU: cores, MEMORY: "1Gi", NO_NIC: 0}

    assert verdict(HOSTS[host], container, container, container) == expected


@pytest.mark.parametrize(
    ("host", "amounts", "expected"),
    [
        ("by pod", {NIC: 5}, FITS),
        ("by pod", {NIC: 20}, NO_POD),
        ("huge pages", {NIC: 5}, FITS),
        ("by container", {NIC: 20}, NO_CONTAINER),
        ("extended", {EXTENDED: 1, NIC: 10}, FITS),
        ("extended", {EXTENDED: 1, CPU: 4, NIC: 3}, FITS),
        ("huge pages", {CPU: 4, NIC: 3}, FITS),
    ],
)
def test_pods_that_are_not_guaranteed_are_looked_at_for_their_devices(
    host: str, amounts: Amounts, expected: str
) -> None:
    assert verdict(HOSTS[host], amounts) == expected


@pytest.mark.parametrize(
    "wishes",
    [
        {CPU: 2},
        {CPU: 20},  # more than a zone has
        {MEMORY: "2Gi"},
        {MEMORY: "5Gi"},
        {CPU: 2, MEMORY: "2Gi"},
        {CPU: 20, MEMORY: "6Gi"},
    ],
)
@pytest.mark.parametrize(
    ("host", "devices", "expected"),
    [
        ("by pod", 5, FITS),
        ("by pod", 6, NO_POD),
        ("huge pages", 5, FITS),
        ("huge pages", 11, NO_CONTAINER),
    ],
)
def test_cores_and_memory_of_a_burstable_pod_need_no_zone(
    host: str, devices: int, expected: str, wishes: Amounts
) -> None:
    assert verdict(HOSTS[host], {**wishes, NIC: devices}, guaranteed=False) == expected


def test_a_pod_without_containers_fits() -> None:
    assert verdict(HOSTS["by container"]) == FITS


@pytest.mark.parametrize(
    ("second", "third", "expected"),
    [
        ({CPU: 4, MEMORY: "8Gi"}, {CPU: 26, MEMORY: "32Gi", HUGE: "512Mi", NIC: 26}, FITS),
        ({CPU: 8, MEMORY: "8Gi"}, {CPU: 26, MEMORY: "26Gi", HUGE: "52Mi", NIC: 26}, NO_POD),
        ({CPU: 4, MEMORY: "18Gi"}, {CPU: 26, MEMORY: "52Gi", HUGE: "52Mi", NIC: 26}, NO_POD),
        ({CPU: 4, MEMORY: "8Gi"}, {CPU: 26, MEMORY: "32Gi", HUGE: "3328Mi", NIC: 26}, NO_POD),
        ({CPU: 4, MEMORY: "8Gi"}, {CPU: 26, MEMORY: "26Gi", HUGE: "52Mi", NIC: 52}, NO_POD),
    ],
)
def test_what_the_pod_asks_for_in_sum_comes_from_one_zone(second: Amounts, third: Amounts, expected: str) -> None:
    assert verdict(HOSTS["pod of many"], {CPU: 2, MEMORY: "2Gi"}, second, third) == expected


def of(*amounts: tuple[Any, str]) -> list[Amounts]:
    """Containers by cores and memory."""
    return [{CPU: cores, MEMORY: memory} for cores, memory in amounts]


HALVES: Final = of((20, "40G"), (20, "40G"))


@pytest.mark.parametrize(
    ("init", "containers", "expected"),
    [
        ([], of((2, "4G")), FITS),
        ([], of((40, "4G")), NO_CONTAINER),
        ([], of((2, "100G")), NO_CONTAINER),
        ([], of((40, "100G")), NO_CONTAINER),
        ([], HALVES, FITS),
        ([], [{CPU: 2, MEMORY: "6G", HUGE: "500Mi", NIC: 16}, {CPU: 2, MEMORY: "6G", HUGE: "50Mi", NIC: 8}], FITS),
        (of((40, "40G")), of((1, "4G"), (1, "4G")), NO_INIT_CONTAINER),
        (of((4, "70G")), of((1, "4G"), (1, "4G")), NO_INIT_CONTAINER),
        (of((4, "10G")), HALVES, FITS),
        (of((4, "10G")) * 3, HALVES + of((6, "10G")), FITS),
        (of((30, "10G")) * 2, HALVES + of((20, "6G")), NO_CONTAINER),
        (of((30, "10G")) * 2, of((35, "40G")), NO_CONTAINER),
        (of((30, "10G")) * 2, HALVES, FITS),
        (of((30, "10G")) * 3, HALVES + of((2, "6G")), FITS),  # init containers run one after another
        (of((3, "50G")) * 3, HALVES + of((2, "6G")), FITS),
        (of((40, "50G"), (3, "50G"), (3, "50G")), of((20, "40G"), (2, "6G")), NO_INIT_CONTAINER),
        (of((20, "50G"), (40, "50G"), (3, "50G")), of((20, "40G"), (2, "6G")), NO_INIT_CONTAINER),
    ],
)
def test_each_container_takes_what_it_needs_from_one_zone(
    init: list[Amounts], containers: list[Amounts], expected: str
) -> None:
    assert verdict(HOSTS_OF_CONTAINERS, *containers, init=init) == expected
