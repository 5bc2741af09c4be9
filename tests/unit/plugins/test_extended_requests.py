"""What containers ask for in extended resources, as requests of one claim."""

import pytest

from plugins.dynamic_resources.extended.requests import claimed_devices
from scheduler.api.objects import Container
from scheduler.testing import a_container, a_pod

GPU, NIC = "example.com/gpu", "example.com/nic"
CLASSES = {GPU: "gpu", NIC: "nic"}


def sidecar(name: str, gpus: str) -> Container:
    return a_container(name, requests={GPU: gpus}, sidecar=True)


def asking(name: str, gpus: str) -> Container:
    return a_container(name, requests={GPU: gpus})


def claimed(*init_containers: Container, containers: tuple[Container, ...]) -> tuple[dict[str, int], list[str]]:
    """Request → count, and `container: request` for each mapping."""
    found = claimed_devices(a_pod(init_containers=init_containers, containers=containers), CLASSES)
    counts = {each.name: each.exactly.count for each in found.requests if each.exactly is not None}
    return counts, [f"{each.container}: {each.request}" for each in found.mappings]


def test_each_container_has_a_request_for_each_resource() -> None:
    first = a_container("a", requests={"cpu": "1", GPU: "2", NIC: "1"})
    second = a_container("b", requests={NIC: "3", "memory": "1Gi"})

    found = claimed_devices(a_pod(containers=(first, second)), CLASSES)

    assert [
        (each.name, each.exactly and (each.exactly.device_class_name, each.exactly.count)) for each in found.requests
    ] == [
        ("container-0-request-1", ("gpu", 2)),
        ("container-0-request-2", ("nic", 1)),
        ("container-1-request-0", ("nic", 3)),
    ]
    assert [each.written() for each in found.mappings] == [
        {"containerName": "a", "resourceName": GPU, "requestName": "container-0-request-1"},
        {"containerName": "a", "resourceName": NIC, "requestName": "container-0-request-2"},
        {"containerName": "b", "resourceName": NIC, "requestName": "container-1-request-0"},
    ]


@pytest.mark.parametrize(
    ("init_containers", "counts", "mappings"),
    [
        pytest.param(
            (asking("i", "1"),),
            {"container-1-request-0": 2},
            ["main: container-1-request-0", "i: container-1-request-0"],
            id="an init container gets by with the devices of those that come later",
        ),
        pytest.param(
            (asking("i", "3"), asking("j", "5"), asking("k", "4")),
            {"container-1-request-0": 3, "container-3-request-0": 2},
            [
                "main: container-3-request-0",
                *(
                    each
                    for name in "ijk"
                    for each in (f"{name}: container-3-request-0", f"{name}: container-1-request-0")
                ),
            ],
            id="init containers share what the largest of them needs",
        ),
        pytest.param(
            (sidecar("s", "1"), asking("i", "3")),
            {"container-0-request-0": 1, "container-1-request-0": 1, "container-2-request-0": 2},
            [
                "s: container-0-request-0",
                "main: container-2-request-0",
                "i: container-2-request-0",
                "i: container-1-request-0",
            ],
            id="a sidecar that started before keeps its devices",
        ),
    ],
)
def test_init_containers_use_what_is_idle_then(
    init_containers: tuple[Container, ...], counts: dict[str, int], mappings: list[str]
) -> None:
    found = claimed(*init_containers, containers=(asking("main", "2"),))

    assert found == (counts, mappings)


def test_a_request_of_nothing_is_none() -> None:
    assert claimed(containers=(asking("main", "0"),)) == ({}, [])


def test_thousands_of_containers_that_ask_for_too_much_are_counted_and_not_mapped() -> None:
    init_containers = tuple(asking(f"i{i}", "999999999999999999") for i in range(2000))
    containers = tuple(asking(f"c{i}", "1") for i in range(2000))

    counts, mappings = claimed(*init_containers, containers=containers)

    assert sum(counts.values()) == 999999999999999999
    assert mappings == []
