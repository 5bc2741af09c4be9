"""What users run: pods and Deployments that do nothing, or what a program of agnhost does, applied by kubectl."""

import json
from typing import Any, Final

from tests.controlplane import Client, Cluster, wait_until
from tests.controlplane.client import Object, Objects
from tests.kind.cluster import PAUSE
from tests.kind.workload_images import AGNHOST

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
SOON: Final = 120.0
"""Seconds until a container runs, on a machine that runs all nodes of a cluster."""


def a_template(app: str, *program: str, cpu: str = "10m", scheduler: str = "loadmaster", **spec: Any) -> Object:
    """A pod's metadata and spec. `program`: of agnhost, with its arguments; more of the spec by the API's own names."""
    container: Object = {"name": "main", "image": PAUSE, "resources": {"requests": {"cpu": cpu}}}
    if program:
        container |= {"image": AGNHOST, "args": list(program)}
    common = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"metadata": {"labels": {"app": app}}, "spec": common | spec}


def a_pod(name: str, *program: str, **spec: Any) -> Object:
    """A pod by itself."""
    template = a_template(name, *program, **spec)
    template["metadata"]["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **template}


def a_deployment(name: str, replicas: int, *program: str, **spec: Any) -> Object:
    """A Deployment of such pods."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": a_template(name, *program, **spec),
        },
    }


def spread_over(key: str, app: str, when_unsatisfiable: str = "DoNotSchedule") -> Object:
    """A constraint that spreads the pods of an app evenly over the nodes that would take them."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": when_unsatisfiable,
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def apply(cluster: Cluster, namespace: str, *objects: Object) -> None:
    """`kubectl apply` of objects in a namespace."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    cluster.kubectl("apply", f"--namespace={namespace}", "--filename=-", stdin=json.dumps(listed))


def rollout(cluster: Cluster, namespace: str, name: str, seconds: int = 180) -> None:
    """Return when `kubectl rollout status` is content. Raises KubectlError."""
    command = ("rollout", "status", name, f"--namespace={namespace}", f"--timeout={seconds}s")
    cluster.kubectl(*command, timeout=seconds + 10)


def pods_of(api: Client, namespace: str, app: str) -> Objects:
    """The pods of an app that are not on their way out."""
    pods = api.list("Pod", namespace, labels=f"app={app}")
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def nodes_of(pods: Objects) -> list[str]:
    """Where pods are, those without a node left out."""
    return [pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]]


def is_running(pod: Object) -> bool:
    return bool(pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"])


def wait_running(api: Client, namespace: str, app: str, count: int, timeout: float = SOON) -> Objects:
    """Return the pods of an app once exactly `count` of them run. Raises TimeoutError."""

    def running() -> Objects | None:
        found = [pod for pod in pods_of(api, namespace, app) if is_running(pod)]
        return found if len(found) == count else None

    found = wait_until(running, timeout, f"{count} pods of {app} run", interval=0.2)
    assert found is not None
    return found


def schedulers_of(api: Client, namespace: str) -> list[str]:
    """Who bound the pods of a namespace, an entry for each binding."""
    events = api.list("events.k8s.io/v1/Event", namespace, fields="reason=Scheduled")
    return [event["reportingController"] for event in events]


def why_pending(api: Client, namespace: str, app: str) -> str:
    """What the conditions of its pods say; empty while nothing is said."""
    conditions = [each for pod in pods_of(api, namespace, app) for each in pod["status"].get("conditions", ())]
    return "\n".join(each.get("message", "") for each in conditions if each["type"] == "PodScheduled")
