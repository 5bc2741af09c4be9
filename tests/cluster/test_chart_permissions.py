"""The account that the chart makes: it may do what the enabled plugins need, and nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins import IN_TREE
from plugins.contrib import CONTRIB
from scheduler.config.feature_gates import FeatureGates, read_gates
from scheduler.config.load import config_from_dict
from scheduler.config.types import DEFAULT_GATES
from scheduler.framework import FilterPlugin
from scheduler.kube.permissions import Permission, permissions_for
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.engine import engine_of
from tests.chart import Helm, load_documents, schedulers_own
from tests.chart.helm import Values
from tests.chart.permissions import ASKED
from tests.chart.plugin_sets import OTHER_SETS, SETS
from tests.cluster.charted import configuration, scheduler_with
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import defined, metric, node_of
from tests.cluster.metrics_servers import MetricsServer
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until
from tests.controlplane.definitions import NODE_RESOURCE_TOPOLOGY
from tests.fakes.plugins import a_plugin

OUT = Path(__file__).parents[2] / "build" / "can-i"
"""Where what `kubectl auth can-i --list` says is kept, for readers."""


def needed_by(config: Any, gates: FeatureGates = DEFAULT_GATES) -> set[Permission]:
    """What the scheduler asks for at its start with this configuration, and what plugins ask for later."""
    own = a_plugin("GpuGuard", FilterPlugin)
    registry = {**IN_TREE, **CONTRIB, own.name: own}
    verbs: dict[tuple[str, str], set[str]] = {}
    read = config_from_dict(config, registry, gates=gates)
    with engine_of(SimulatedCluster((), ()), read, registry) as engine:
        resources = engine.profiles.resources
    for each in permissions_for(resources.watched.values(), resources.written):
        verbs.setdefault((each.group, each.resource), set()).update(each.verbs)
    for plugin in {name for spec in read.profiles for name in spec.enabled} & ASKED.keys():
        for resource, asked in ASKED[plugin].items():
            verbs.setdefault(resource, set()).update(asked)
    return {Permission(*resource, tuple(sorted(these))) for resource, these in verbs.items()}


@pytest.mark.parametrize("values", [*SETS.values(), *OTHER_SETS.values()], ids=[*SETS, *OTHER_SETS])
def test_the_cluster_role_has_what_the_enabled_plugins_need_and_nothing_else(helm: Helm, values: Values) -> None:
    documents = load_documents(helm.render(values))
    (role,) = (each for each in schedulers_own(documents) if each["kind"] == "ClusterRole")

    granted = [
        Permission(group, resource, tuple(rule["verbs"]))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]

    assert len(granted) == len(set(granted))
    flags = [each for each in values.get("extraArgs", ()) if each.startswith("--feature-gates=")]
    gates, _ = read_gates([each.partition("=")[2] for each in flags])
    assert set(granted) == needed_by(configuration(documents), gates)


def test_each_rule_has_its_reasons_above_it(helm: Helm) -> None:
    lines = helm.render(SETS["small"]).splitlines()
    (at,) = (number for number, line in enumerate(lines) if "resources: [deviceclasses]" in line)

    assert lines[at - 2 : at] == [
        "  # list, watch: which devices there are, and which extended resources they stand for (NodeResourcesFit)",
        '  - apiGroups: ["resource.k8s.io"]',
    ]


@pytest.fixture
def what_contrib_reads(cluster: Cluster, metrics_api: MetricsServer) -> Iterator[None]:
    """A metrics.k8s.io and the definition of NodeResourceTopology."""
    with defined(cluster, NODE_RESOURCE_TOPOLOGY):
        yield


@pytest.fixture(params=SETS)
def plugin_set(request: pytest.FixtureRequest) -> str:
    if request.param == "contrib":
        request.getfixturevalue("what_contrib_reads")
    return str(request.param)


@pytest.fixture
def scheduler(cluster: Cluster, helm: Helm, namespace: str, plugin_set: str, tmp_path: Path) -> Iterator[Component]:
    """A scheduler with the account and the configuration that the chart makes for a set of plugins."""
    with scheduler_with(cluster, helm, namespace, SETS[plugin_set], tmp_path) as process:
        yield process


def test_the_scheduler_works_with_exactly_that_account(
    cluster: Cluster, scheduler: Component, api: Client, namespace: str, make_nodes: MakeNodes, plugin_set: str
) -> None:
    (node,) = make_nodes(cpu="1")
    low, high = a_pod("low"), a_pod("high")
    for pod, priority in ((low, "system-cluster-critical"), (high, "system-node-critical")):
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "800m"}}
        pod["spec"]["priorityClassName"] = priority

    api.create(low, namespace)
    wait_until(lambda: node_of(api.get("Pod", "low", namespace)) == node, 20, "the first pod is bound")
    api.create(high, namespace)
    wait_until(lambda: node_of(api.get("Pod", "high", namespace)) == node, 30, "it is preempted for the second one")
    account = f"--as=system:serviceaccount:{namespace}:loadmaster"
    may = cluster.kubectl("auth", "can-i", "--list", account, f"--namespace={namespace}")

    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{plugin_set}.txt").write_text(may)
    assert metric(scheduler.port, "loadmaster_api_calls_total", code="403") == 0
    assert metric(scheduler.port, "loadmaster_plugin_data_faults_total", reason="HTTP 4xx") == 0
    assert ("persistentvolumes" in may, "resourceclaims" in may) == (plugin_set != "small", plugin_set != "small")
    assert ("metrics.k8s.io" in may, "topology.node.k8s.io" in may) == (plugin_set == "contrib",) * 2
    assert "secrets" not in may
