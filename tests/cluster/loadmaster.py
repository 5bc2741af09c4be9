"""`loadmaster run` beside the cluster under test, with the manifest, the account and the RBAC that are shipped."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.chart.permissions import declared_by
from tests.cluster.https import http_get as http_get
from tests.controlplane import Client, Cluster, Component, condition
from tests.controlplane.client import Object

MANIFEST = Path(__file__).parents[2] / "deploy" / "loadmaster.yaml"
METRICS_READER = Path(__file__).parents[2] / "docs" / "examples" / "metrics-reader.yaml"
IMPATIENT = Path(__file__).with_name("impatient_scheduler.py")
"""A program: what takes the scheduler up to a minute takes this one seconds."""

NAMESPACE = "kube-system"
ACCOUNT = "loadmaster"
RBAC = "rbac.authorization.k8s.io/v1"


def install_rbac(cluster: Cluster) -> None:
    """Apply what is shipped, without the Deployment: the process runs here, not in a pod."""
    with cluster.client() as api:
        for obj in yaml.load_all(MANIFEST.read_bytes(), yaml.CSafeLoader):
            if obj["kind"] not in ("Deployment", "Service", "PodDisruptionBudget"):
                api.apply(obj)


def allow_groups(cluster: Cluster) -> None:
    """The same with the rules that the chart adds with the feature gates of groups of pods."""
    install_rbac(cluster)
    grant(cluster, "loadmaster-pod-groups", "GangScheduling", "scheduling.k8s.io")


@contextmanager
def granted(cluster: Cluster, plugin: str, *groups: str) -> Iterator[None]:
    """Give the shipped account the rules for some API groups that the chart adds while a profile enables a plugin."""
    role = f"loadmaster-{plugin.lower()}"
    install_rbac(cluster)
    grant(cluster, role, plugin, *groups)
    yield
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", role)


@contextmanager
def defined(cluster: Cluster, *definitions: Object) -> Iterator[None]:
    """Have definitions of objects within a `with` block."""
    define(cluster, *definitions)
    yield
    undefine(cluster, *definitions)


def define(cluster: Cluster, *definitions: Object) -> None:
    for each in definitions:
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(each))
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{each['metadata']['name']}", "--timeout=20s")


def undefine(cluster: Cluster, *definitions: Object) -> None:
    cluster.kubectl("delete", "crd", *(each["metadata"]["name"] for each in definitions), "--ignore-not-found")


@contextmanager
def prioritised(cluster: Cluster, priorities: Mapping[str, int]) -> Iterator[None]:
    """Have PriorityClasses, name → value, within a `with` block."""
    for name, value in priorities.items():
        a_class = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps({**a_class, "metadata": {"name": name}}))
    yield
    cluster.kubectl("delete", "priorityclass", *priorities)


def grant(cluster: Cluster, role: str, plugin: str, *groups: str) -> None:
    """Grant the shipped account what a plugin needs of some API groups."""
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
        for (group, resource), verbs in declared_by(plugin).items()
        if group in groups
    ]
    made: Object = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": role}, "rules": rules}
    binding: Object = {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
    for each in (made, binding):
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(each))


def with_plugin(
    directory: Path,
    plugin: str,
    arguments: Mapping[str, object] | None = None,
    also: Sequence[str] = (),
    /,
    **settings: object,
) -> str:
    """Write a configuration whose profile enables a plugin, with `settings` of our own; return the option for it.

    `also`: further plugins, without arguments.
    """
    enabled = {"multiPoint": {"enabled": [{"name": each} for each in (plugin, *also)]}}
    of_plugin = [{"name": plugin, "args": arguments}] if arguments else []
    return _configured(directory, {"plugins": enabled, "pluginConfig": of_plugin}, settings)


def with_plugin_instead(directory: Path, plugin: str, other: str) -> str:
    """Write a configuration whose profile has one plugin in the place of another; return the option for it."""
    plugins = {"multiPoint": {"enabled": [{"name": plugin}], "disabled": [{"name": other}]}}
    return _configured(directory, {"plugins": plugins}, {})


def _configured(directory: Path, profile: Mapping[str, object], settings: Mapping[str, object]) -> str:
    config = directory / "config.json"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profiles = [{"schedulerName": "loadmaster", **profile}]
    config.write_text(json.dumps({**kind, "profiles": profiles, "loadmaster": settings}))
    return f"--config={config}"


def start(
    cluster: Cluster,
    *options: str,
    name: str = "loadmaster",
    program: Sequence[str] = ("-m", "scheduler"),
    env: dict[str, str] | None = None,
) -> Component:
    """Start the scheduler as its shipped account and wait until it is ready. A context manager.

    It takes part in no election, unless `options` say so: a test would wait for the Lease of the one before.

    `program`: what Python is to run, with `env` added to its environment.
    """
    kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)

    def argv(port: int) -> list[str]:
        common = [f"--kubeconfig={kubeconfig}", *serving(port), "-v", "2", "--leader-elect=false"]
        return [sys.executable, *program, "run", *common, *options]

    return cluster.spawn(name, argv, is_ready, env)


def serving(port: int) -> list[str]:
    """The flags with which a scheduler on this machine serves what `http_get` and `metric` ask for."""
    # Without a token for each look: many tests look at metrics, also while the API server is away.
    open_to_all = "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics"
    return ["--bind-address=127.0.0.1", f"--secure-port={port}", open_to_all]


def bound(api: Client, namespace: str, prefix: str = "") -> list[str]:
    """The names of the pods that have a node and a name that begins so, sorted."""
    names = [pod["metadata"]["name"] for pod in api.list("Pod", namespace) if node_of(pod)]
    return sorted(name for name in names if name.startswith(prefix))


def notes(api: Client, namespace: str, reason: str, about: str = "") -> list[str]:
    """The texts of the events of that reason, about the pod of that name if there is one."""
    events = [each for each in api.list("events.k8s.io/v1/Event", namespace) if each["reason"] == reason]
    return [str(each.get("note", "")) for each in events if about in ("", each["regarding"]["name"])]


def message(api: Client, pod: str, namespace: str) -> str:
    """Why a pod waits, as its owner is told; empty while nothing is said."""
    scheduled = condition(api.get("Pod", pod, namespace), "PodScheduled")
    return str(scheduled.get("message", "")) if scheduled else ""


def metrics_token(cluster: Cluster) -> str:
    """A token of the account that may see metrics by the example in the documentation."""
    account = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "prometheus", "namespace": "monitoring"}},
    ]
    for each in account:
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(each))
    cluster.kubectl("apply", "-f", str(METRICS_READER))
    return cluster.kubectl("create", "token", "prometheus", "--namespace=monitoring", "--duration=24h").strip()


def is_ready(port: int) -> bool:
    return http_get(port, "/readyz")[0] == 200


def metric(port: int, name: str, /, **labels: str) -> float:
    """The sum of all samples of a metric that have these labels, of a scheduler on this machine."""
    return sum_of(http_get(port, "/metrics")[1], name, **labels)


def sum_of(exposition: str, name: str, /, **labels: str) -> float:
    """The sum of all samples of a metric that have these labels, in what /metrics answered."""
    return sum(value for its, value in samples_of(exposition, name) if labels.items() <= its.items())


def samples_of(exposition: str, name: str) -> Iterator[tuple[Mapping[str, str], float]]:
    """Labels and value of each sample of a metric. The other lines are not parsed: tests that wait ask all the time."""
    from prometheus_client.parser import text_string_to_metric_families

    lines = "".join(line for line in exposition.splitlines(keepends=True) if line.startswith(name))
    for family in text_string_to_metric_families(lines):
        yield from ((sample.labels, sample.value) for sample in family.samples if sample.name == name)


def node_of(pod: Object) -> str:
    """The node that a pod is bound to, or an empty string."""
    node: str = pod["spec"].get("nodeName", "")
    return node
