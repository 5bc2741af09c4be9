"""Loadmaster as the only scheduler: kube-scheduler is stopped, and pods that name no scheduler are Loadmaster's.

Kubernetes' own specs of [sig-scheduling] name none either, so this is how they judge Loadmaster.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.chart import Helm
from tests.controlplane import Client, wait_until
from tests.controlplane.client import Object
from tests.kind import specs
from tests.kind.cluster import NODES, KindCluster
from tests.kind.release import HELM_SECONDS, upgraded
from tests.kind.scheduler import Scheduler
from tests.kind.workloads import a_deployment, a_template, apply, rollout, schedulers_of

CONTROL_PLANE: Final = NODES[0]
RUNNING: Final = "/etc/kubernetes/manifests/kube-scheduler.yaml"
STOPPED: Final = "/etc/kubernetes/kube-scheduler.yaml.stopped"
LEASE: Final = "kube-scheduler"
VALUES: Final = {
    "config": {
        "leaderElection": {"resourceName": LEASE, "resourceNamespace": "kube-system"},
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "loadmaster"}],
    }
}
"""As docs/operations/only-scheduler.md has them."""
IN_KUBE_SYSTEM: Final = "--namespace=kube-system"


@pytest.fixture(scope="module", autouse=True)
def only(cluster: KindCluster, helm: Helm, api: Client, loadmaster: Scheduler) -> Iterator[None]:
    """Have Loadmaster stand by for kube-scheduler, and stop that; afterwards all is as before."""
    with upgraded(helm, VALUES):
        cluster.engine("exec", CONTROL_PLANE, "mv", RUNNING, STOPPED)
        try:
            loadmaster.lease = LEASE
            loadmaster.wait_ready(HELM_SECONDS)
            wait_until(lambda: not kube_schedulers(api), 90, "kube-scheduler's pod is gone", interval=0.5)
            yield
        finally:
            loadmaster.lease = loadmaster.name
            cluster.engine("exec", CONTROL_PLANE, "mv", STOPPED, RUNNING)
            wait_until(lambda: kube_schedulers(api), 90, "kube-scheduler is back", interval=0.5)


def kube_schedulers(api: Client) -> list[str]:
    """The names of kube-scheduler's pods."""
    return [pod["metadata"]["name"] for pod in api.list("Pod", "kube-system", labels="component=kube-scheduler")]


def test_pods_that_name_no_scheduler_are_placed(cluster: KindCluster, api: Client, namespace: str) -> None:
    deployment = a_deployment("web", 3)
    del deployment["spec"]["template"]["spec"]["schedulerName"]

    apply(cluster, namespace, deployment)
    rollout(cluster, namespace, "deployment/web")

    assert schedulers_of(api, namespace) == ["default-scheduler"] * 3


@pytest.mark.parametrize("name", ["coredns", "loadmaster"])
def test_pods_of_the_system_and_its_own_are_replaced(cluster: KindCluster, loadmaster: Scheduler, name: str) -> None:
    cluster.kubectl("rollout", "restart", f"deployment/{name}", IN_KUBE_SYSTEM)

    rollout(cluster, "kube-system", f"deployment/{name}")

    loadmaster.wait_ready(HELM_SECONDS)


def test_each_spec_that_is_left_out_exists() -> None:
    assert specs.left_out().keys() <= set(specs.names())


@pytest.fixture
def add_ons(cluster: KindCluster) -> Iterator[None]:
    """Pods on each node that are called as add-ons of Kubernetes' own test clusters, and do nothing.

    Ten of the specs wait a minute each for such pods before they begin, and then go on without them
    (`requiredPerNodePods` of test/e2e/framework/node).
    """
    daemon_sets = [a_daemon_set(name) for name in ("fluentd-elasticsearch", "node-problem-detector")]
    apply(cluster, "kube-system", *daemon_sets)
    for each in daemon_sets:
        rollout(cluster, "kube-system", f"daemonset/{each['metadata']['name']}")
    yield
    cluster.kubectl("delete", "daemonset", *(each["metadata"]["name"] for each in daemon_sets), IN_KUBE_SYSTEM)


def a_daemon_set(name: str) -> Object:
    template = a_template(name, cpu="0", scheduler="default-scheduler", tolerations=[{"operator": "Exists"}])
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": spec}


@pytest.mark.usefixtures("add_ons")
def test_the_specs_of_kubernetes_pass(cluster: KindCluster, tmp_path: Path) -> None:
    expected = set(specs.names()) - specs.left_out().keys()

    results = specs.run(cluster, tmp_path)

    for name, seconds in results.seconds.items():
        print(f"{seconds:5.0f} s  {name}")
    assert results.failed == ()
    assert results.skipped == ()
    assert set(results.passed) == expected
