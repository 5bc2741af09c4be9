"""Objects in files that plugins look up."""

from collections import Counter
from typing import Any

import pytest
from team_budget import BUDGETS, TeamBudget

from plugins import IN_TREE
from scheduler.framework.errors import ConfigError
from scheduler.framework.nodes.resources import KNOWN, parse_resource
from scheduler.plugin_loading.registry import PluginRegistry
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.engine import simulate
from scheduler.simulate.other_objects import OtherObject, OtherObjects, guessed_plural
from tests.fakes.config import config_with
from tests.unit.simulate.what_if.world import read

REGISTRY = PluginRegistry(IN_TREE, {"TeamBudget": TeamBudget})
CONFIG = config_with(REGISTRY, "TeamBudget", name="loadmaster")
ROOM = {"allocatable": {"pods": "10"}}
NODE = {"kind": "Node", "metadata": {"name": "n", "labels": {"pool": "blue"}}, "status": ROOM}
POD = {
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "web", "labels": {"team": "shop"}},
    "spec": {"schedulerName": "loadmaster", "containers": [{"name": "c"}]},
}


def a_budget(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Budget", "metadata": metadata, "spec": {"pool": "blue"}}


def cluster_of_all(*objects: Any) -> SimulatedCluster:
    cluster, problems = read(*objects)
    assert problems == []
    return cluster


def node_of_pod(*objects: Any) -> str | None:
    cluster = cluster_of_all(NODE, {**NODE, "metadata": {"name": "other"}}, POD, *objects)
    (result,) = simulate(cluster.nodes, cluster.pods, CONFIG, REGISTRY, cluster.others)["pods"]
    node: str | None = result["node"]
    return node


@pytest.mark.parametrize(
    ("objects", "node"),
    [
        pytest.param([], None, id="no budget"),
        pytest.param([a_budget(name="shop", namespace="web")], "n", id="one by one"),
        pytest.param([a_budget(name="shop", namespace="elsewhere")], None, id="in another namespace"),
        pytest.param(
            [
                {
                    "apiVersion": "example.com/v1",
                    "kind": "BudgetList",
                    "items": [{"metadata": {"name": "shop", "namespace": "web"}, "spec": {"pool": "blue"}}],
                }
            ],
            "n",
            id="in a typed list",
        ),
    ],
)
def test_plugins_see_the_objects_in_the_files(objects: list[Any], node: str | None) -> None:
    assert node_of_pod(*objects) == node


def test_what_no_plugin_looks_up_is_left_out_and_may_look_as_it_likes() -> None:
    cluster = cluster_of_all(NODE, a_budget(name="shop"), {"kind": "Service"}, {"kind": "Service", "metadata": 3})

    taken = cluster.others.take({BUDGETS: parse_resource(BUDGETS)})

    assert [(name, each.name, each.metadata.uid) for name, each in taken] == [(BUDGETS, "shop", f"{BUDGETS}//shop")]
    assert Counter(each.label for each in cluster.others.left_out()) == {"Service": 2}


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        pytest.param({}, "metadata.name: Required value", id="no name"),
        pytest.param({"name": 3}, r"metadata.name: expected str, got int", id="wrong type"),
    ],
)
def test_an_object_that_is_looked_up_and_cannot_be_read_is_reported_with_its_place(
    metadata: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=f"f:4: {problem}"):
        node_of_pod(a_budget(**metadata))


def test_claims_without_a_namespace_are_in_the_default_one() -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": None}}
    others = OtherObjects([OtherObject("f:1", "PersistentVolumeClaim", claim)])

    ((_, found),) = others.take({"PersistentVolumeClaim": KNOWN["PersistentVolumeClaim"]})

    assert found.namespace == "default"


def test_the_plural_of_every_known_kind_is_guessed_right() -> None:
    for name, resource in KNOWN.items():
        if name == f"{resource.plural}.{resource.version}.{resource.group}":
            continue  # an older or newer version of another one, which has no name of its own
        assert guessed_plural(name.rpartition("/")[2]) == resource.plural
    assert guessed_plural("NetworkPolicy") == "networkpolicies"
    assert guessed_plural("Endpoints") == "endpoints"
