"""What the plugin Coscheduling needs on a cluster: its rules, and a configuration that enables it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chart.permissions import declared_by
from tests.cluster.loadmaster import ACCOUNT, NAMESPACE, install_rbac, start
from tests.controlplane import Cluster, Component
from tests.controlplane.client import Object

ROLE = "loadmaster-coscheduling"
RBAC = "rbac.authorization.k8s.io/v1"
GROUP = "scheduling.x-k8s.io"


@contextmanager
def allowed(cluster: Cluster) -> Iterator[None]:
    """Give the shipped account the rules that the chart adds while a profile enables the plugin."""
    install_rbac(cluster)
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
        for (group, resource), verbs in declared_by("Coscheduling").items()
        if group == GROUP
    ]
    role: Object = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": ROLE}, "rules": rules}
    binding: Object = {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
    for each in (role, binding):
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(each))
    yield
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", ROLE)


def started(cluster: Cluster, directory: Path, name: str = "loadmaster", **settings: object) -> Component:
    """Start the scheduler with a profile that has the plugin, and `settings` of our own."""
    profile = {
        "schedulerName": "loadmaster",
        "plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}},
        "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}],
    }
    config = directory / "config.json"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**kind, "profiles": [profile], "loadmaster": settings}))
    return start(cluster, f"--config={config}", name=name)
