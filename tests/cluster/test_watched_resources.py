"""A plugin of somebody else's that watches a custom resource, with the shipped RBAC and one rule more."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import (
    ACCOUNT,
    NAMESPACE,
    define,
    install_rbac,
    message,
    metric,
    node_of,
    start,
    undefine,
    with_plugin,
)
from tests.controlplane import Client, Cluster, Component, a_pod, definitions, wait_until
from tests.controlplane.client import Object

PROGRAM = Path(__file__).with_name("team_budget_scheduler.py")
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

BUDGET = "example.com/v1/Budget"
BUDGETS = "budgets.v1.example.com"
PROMISED = 0.5
"""Seconds from a change of a custom object to the binding of the pod that waits for it."""

PICKED_UP = 10.0
"""Seconds from the creation of a definition until its objects are seen."""


@pytest.fixture(scope="module", autouse=True)
def rbac(cluster: Cluster) -> Iterator[None]:
    """What is shipped, and the rule that docs/plugins.md tells to add."""
    install_rbac(cluster)
    rule = "--verb=list,watch", "--resource=budgets.example.com"
    # kubectl looks the resource up, and it is not defined yet.
    define(cluster, definitions.BUDGET)
    cluster.kubectl("create", "clusterrole", "budgets", *rule)
    cluster.kubectl(
        "create", "clusterrolebinding", "budgets", "--clusterrole=budgets", f"--serviceaccount={NAMESPACE}:{ACCOUNT}"
    )
    yield
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", "budgets")
    undefine(cluster, definitions.BUDGET)


@pytest.fixture
def definition(cluster: Cluster) -> None:
    define(cluster, definitions.BUDGET)


@pytest.fixture
def no_definition(cluster: Cluster) -> None:
    undefine(cluster, definitions.BUDGET)


@pytest.fixture
def loadmaster(cluster: Cluster, tmp_path: Path) -> Iterator[Component]:
    with start(
        cluster, with_plugin(tmp_path, "TeamBudget"), program=(str(PROGRAM),), env={"PYTHONPATH": str(EXAMPLES)}
    ) as process:
        yield process


def a_budget(team: str, pool: str) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Budget", "metadata": {"name": team}, "spec": {"pool": pool}}


def is_bound(api: Client, pod: str, namespace: str) -> bool:
    return bool(node_of(api.get("Pod", pod, namespace)))


def seconds_to_bind(api: Client, pod: str, namespace: str, since: float) -> float:
    wait_until(lambda: is_bound(api, pod, namespace), 20, f"{pod} is bound", interval=0.005)
    return time.monotonic() - since


def test_a_pod_that_waits_for_a_custom_object_is_bound_when_it_appears(
    definition: None, loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, labels={"pool": "blue"})
    api.create(a_pod("web", labels={"team": "shop"}), namespace)
    expected = "0/1 nodes are available: no budget for the pod's team."
    wait_until(lambda: message(api, "web", namespace).startswith(expected), 10, "the pod is told why it waits")

    created = time.monotonic()
    api.create(a_budget("shop", "blue"), namespace)
    taken = seconds_to_bind(api, "web", namespace, created)

    print(f"custom object added → bound: {taken * 1000:.0f} ms")
    assert taken < PROMISED


def test_a_definition_that_comes_after_the_start_and_goes_again_is_noticed(
    no_definition: None,
    loadmaster: Component,
    cluster: Cluster,
    api: Client,
    namespace: str,
    make_nodes: MakeNodes,
) -> None:
    make_nodes(1, labels={"pool": "blue"})
    api.create(a_pod("without-team"), namespace)
    wait_until(lambda: is_bound(api, "without-team", namespace), 10, "a pod that needs no budget is bound")
    api.create(a_pod("web", labels={"team": "shop"}), namespace)
    wait_until(lambda: message(api, "web", namespace), 10, "the pod is told why it waits")
    assert absences(loadmaster) == 1

    defined = time.monotonic()
    define(cluster, definitions.BUDGET)
    wait_until(lambda: created(api, a_budget("shop", "blue"), namespace), 20, "a budget can be made")
    taken = seconds_to_bind(api, "web", namespace, defined)

    print(f"definition added → bound: {taken:.1f} s")
    assert taken < PICKED_UP

    undefine(cluster, definitions.BUDGET)
    wait_until(lambda: absences(loadmaster) == 2, 20, "the scheduler noticed that the resource is gone")
    api.create(a_pod("late", labels={"team": "shop"}), namespace)
    wait_until(lambda: "no budget" in message(api, "late", namespace), 10, "the pod waits for a budget")
    api.create(a_pod("also-without-team"), namespace)
    wait_until(lambda: is_bound(api, "also-without-team", namespace), 10, "other pods are bound as ever")


def absences(loadmaster: Component) -> float:
    return metric(loadmaster.port, "loadmaster_watch_errors_total", resource=BUDGETS, reason="absent")


def created(api: Client, obj: Object, namespace: str) -> bool:
    """Whether it could be created: a definition is established a moment before its objects can be made."""
    try:
        api.create(obj, namespace)
    except Exception as error:
        if "404" in str(error):
            return False
        raise
    return True
