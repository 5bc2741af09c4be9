"""scheduler-plugins' own integration test of PreemptionToleration, played with Loadmaster on a real API server.

The 8 cases of test/integration/preemption_toleration_test.go at 277b6bdec18f8a9e9ccd1bfeaf4b66495bfc6f92. A node holds
one pod; one of a class of priority 1000 has it, and another pod wants it.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from plugins.contrib.preemption_toleration import PREFIX
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import granted, node_of, start, with_plugin_instead
from tests.controlplane import Client, Cluster, Component, a_pod, condition, wait_until

MINIMUM: Final = f"{PREFIX}minimum-preemptable-priority"
SECONDS: Final = f"{PREFIX}toleration-seconds"
LONG_AGO: Final = timedelta(days=50 * 365)


@pytest.fixture(scope="module", autouse=True)
def loadmaster(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Component]:
    directory = tmp_path_factory.mktemp("toleration")
    config = with_plugin_instead(directory, "PreemptionToleration", "DefaultPreemption")
    with granted(cluster, "PreemptionToleration", "scheduling.k8s.io"), start(cluster, config) as component:
        yield component


@pytest.fixture
def classes(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.kubectl("delete", "priorityclass", "victim", "preemptor")


@pytest.mark.parametrize(
    ("annotations", "priority", "policy", "placed", "tolerates"),
    [
        ({MINIMUM: "1010"}, 1010, None, timedelta(), False),
        ({MINIMUM: "1010", SECONDS: "30"}, 1010, None, timedelta(), False),
        ({MINIMUM: "1010"}, 1009, None, timedelta(), False),
        ({MINIMUM: "1010", SECONDS: "-1"}, 1009, None, LONG_AGO, True),
        ({MINIMUM: "1010", SECONDS: "30"}, 1005, None, timedelta(), True),
        ({MINIMUM: "1010", SECONDS: "5"}, 1005, None, timedelta(seconds=10), False),
        ({MINIMUM: "a"}, 1001, "PreemptLowerPriority", timedelta(), False),
        ({MINIMUM: "a"}, 1001, "Never", LONG_AGO, True),
    ],
    ids=[
        "a preemptor of the minimum",
        "the time is no matter to it",
        "without a time there is no toleration",
        "for ever",
        "within the time",
        "after the time",
        "what cannot be read exempts nobody",
        "nor does it from a preemptor that evicts nobody",
    ],
)
def test_a_pod_stays_or_goes_as_in_scheduler_plugins(
    cluster: Cluster,
    api: Client,
    namespace: str,
    make_nodes: MakeNodes,
    classes: None,
    annotations: dict[str, str],
    priority: int,
    policy: str | None,
    placed: timedelta,
    tolerates: bool,
) -> None:
    make_nodes(1, cpu="3")
    make_class(cluster, "victim", 1000, annotations)
    make_class(cluster, "preemptor", priority, {}, **({"preemptionPolicy": policy} if policy else {}))
    api.create(wanting("victim"), namespace)
    wait_until(lambda: node_of(api.get("Pod", "victim", namespace)) != "", 60, "it has the node")
    when = (datetime.now(UTC) - placed).strftime("%Y-%m-%dT%H:%M:%SZ")
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": when}
    patch = json.dumps({"status": {"conditions": [scheduled]}})
    cluster.kubectl("patch", "pod", "victim", "-n", namespace, "--subresource=status", "-p", patch)

    api.create(wanting("preemptor"), namespace)

    if tolerates:
        wait_until(lambda: is_refused(api, namespace), 60, "it is refused")
        assert node_of(api.get("Pod", "victim", namespace))
        assert "deletionTimestamp" not in api.get("Pod", "victim", namespace)["metadata"]
    else:
        wait_until(lambda: node_of(api.get("Pod", "preemptor", namespace)) != "", 60, "it has the node now")
        assert [pod["metadata"]["name"] for pod in api.list("Pod", namespace)] == ["preemptor"]


def make_class(cluster: Cluster, name: str, value: int, annotations: dict[str, str], **more: Any) -> None:
    metadata = {"name": name, "annotations": annotations}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({**kind, **more}))


def wanting(name: str) -> dict[str, Any]:
    """A pod of the class of its name that needs more than half of a node."""
    return a_pod(name, cpu="2", priorityClassName=name, terminationGracePeriodSeconds=0)


def is_refused(api: Client, namespace: str) -> bool:
    found = condition(api.get("Pod", "preemptor", namespace), "PodScheduled")
    return found is not None and (found["status"], found.get("reason")) == ("False", "Unschedulable")
