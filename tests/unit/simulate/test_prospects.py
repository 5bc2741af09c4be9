"""Whether groups fit now, later or never."""

from typing import Any

import pytest

from scheduler.config.types import Config
from scheduler.simulate.engine import adopted, simulate
from tests.fakes.config import config_with
from tests.unit.simulate.test_pod_groups import PLUGINS
from tests.unit.simulate.what_if.world import Json, a_node, a_pod, cluster_with, on


def config(**arguments: Any) -> Config:
    if not arguments:
        return config_with(PLUGINS, "Coscheduling")
    return config_with(PLUGINS, "Coscheduling", "CapacityScheduling", args={"CapacityScheduling": arguments})


def gang(name: str, pods: int, minimum: int = 0, **fields: Any) -> list[Json]:
    said = {"loadmaster.dev/pod-group": name, "loadmaster.dev/pod-group-min-available": f"{minimum or pods}"}
    made = [a_pod(f"{name}{number}", **fields) for number in range(pods)]
    for pod in made:
        pod["metadata"]["annotations"] = said
    return made


def fits(*objects: Json, each_alone: bool = False, **arguments: Any) -> dict[str, str]:
    cluster, its = cluster_with(*objects), config(**arguments)
    pods = tuple(adopted(cluster.pods, its))
    document = simulate(cluster.nodes, pods, its, PLUGINS, cluster.others, each_alone=each_alone)
    return {each["name"]: each["fits"] for each in document["groups"]}


CLAIM: Json = {"name": "gpu", "resourceClaimName": "missing"}


@pytest.mark.parametrize(
    ("running", "group", "expected"),
    [
        ([], gang("g", 4), "now"),
        ([], gang("g", 6, minimum=4), "now"),
        ([on("n1", "old")], gang("g", 4), "later"),
        ([on("n1", "daemon", "DaemonSet", "d")], gang("g", 4), "never"),
        ([], gang("g", 5), "never"),
        ([], gang("g", 2, nodeSelector={"example.com/kind": "gpu"}), "never"),
        ([], gang("g", 2, minimum=3), ""),
        ([], gang("g", 2, resourceClaims=[CLAIM]), ""),
    ],
    ids=["all", "minimum", "others", "daemons", "too large", "no such node", "too few", "claims"],
)
def test_a_group_fits_now_later_or_never(running: list[Json], group: list[Json], expected: str) -> None:
    assert fits(a_node("n1", 4), *running, *group) == {"g": expected}


def test_each_of_several_groups_is_tried_alone() -> None:
    groups = [*gang("a", 3), *gang("b", 3), *gang("c", 5)]

    assert fits(a_node("n1", 4), *groups) == {"a": "now", "b": "later", "c": "never"}


def test_of_groups_that_are_judged_alone_each_has_the_nodes_as_they_are() -> None:
    groups = [*gang("a", 3), *gang("b", 3), *gang("c", 4)]

    found = fits(a_node("n1", 4), on("n1", "old"), *groups, each_alone=True)

    assert found == {"a": "now", "b": "now", "c": "later"}


@pytest.mark.parametrize(("maximum", "expected"), [(3, "later"), (1, "never")])
def test_a_share_that_others_use_is_free_later(maximum: int, expected: str) -> None:
    share = {"name": "team", "maximum": {"cpu": maximum}, "namespaces": ["default"]}

    assert fits(a_node("n1", 8), on("n1", "old", cpu=2), *gang("g", 2), shares=[share]) == {"g": expected}
