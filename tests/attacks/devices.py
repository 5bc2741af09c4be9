"""Attacks on extended resources that a DeviceClass stands for. Classes and devices are the administrator's."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.attacks.attack import Attack, Object, Target
from tests.controlplane import a_pod

DRIVER: Final = "hostile.example.com"
CLASS_COUNT: Final = 10
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
HUGE: Final = "9223372036854775807"
"""Two of them are negative in an int64, so no node has too little."""

MUCH: Final = "9000000000000001"
"""About as much as a pod may ask for of what is counted in whole ones. A thousand and a few times it is beyond an
int64, and a claim for that would end kube-scheduler."""

RESOURCES: Final = tuple(f"hostile.example.com/r-{number}" for number in range(CLASS_COUNT))


def cluster(target: Target) -> Iterator[Object]:
    """Classes, and 32 devices on one node."""
    for number, resource in enumerate(RESOURCES):
        yield _object("DeviceClass", f"hostile-{number}", {"extendedResourceName": resource})
    node = target.nodes[0]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"device-{number}"} for number in range(32)]
    yield _object("ResourceSlice", "hostile", {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices})


def names(target: Target) -> Iterator[Object]:
    yield from cluster(target)
    for pod in range(4):
        asked = {RESOURCES[pod]: "1"} | {f"{IMPLICIT}absent-{pod}-{number}": HUGE for number in range(4_000)}
        yield asking(f"hostile-{pod}", [asked, dict.fromkeys(list(asked)[1:], "1")])


def amounts(target: Target) -> Iterator[Object]:
    yield from cluster(target)
    yield asking("overflowing", [{RESOURCES[0]: MUCH}] * 1_100)
    for pod, amount in enumerate((HUGE, MUCH, "1000000", "33")):
        yield asking(f"hostile-{pod}", [dict.fromkeys(RESOURCES, amount)] * 2)
        yield asking(f"starting-{pod}", [dict.fromkeys(RESOURCES, "1")], [dict.fromkeys(RESOURCES, amount)] * 2)


def containers(target: Target) -> Iterator[Object]:
    yield from cluster(target)
    for pod in range(4):
        yield asking(f"hostile-{pod}", [dict.fromkeys(RESOURCES, "1")] * 1_000)
        yield asking(f"starting-{pod}", [{RESOURCES[0]: "1"}] * 8, [{RESOURCES[0]: "32"}] * 2_000)


def asking(
    name: str, containers: Sequence[Mapping[str, str]], init_containers: Sequence[Mapping[str, str]] = ()
) -> Object:
    """A pod of which each container asks for these resources."""
    made: dict[str, Any] = {
        kind: [
            {"name": f"{kind[0]}-{number}", "image": "pause", "resources": {"limits": asked, "requests": asked}}
            for number, asked in enumerate(each)
        ]
        for kind, each in (("containers", containers), ("initContainers", init_containers))
    }
    return a_pod(name, **made)


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


ATTACKS: Final = (
    Attack("device-names", "Pods ask for a device, and for 4,000 resources that no class stands for.", names),
    Attack("device-amounts", "Pods ask for devices of ten classes in numbers that overflow.", amounts),
    Attack("device-containers", "Thousands of containers ask for devices.", containers),
)
