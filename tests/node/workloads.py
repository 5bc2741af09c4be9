"""Pods that a kubelet can really run: their images are on the node."""

from typing import Any

from tests.controlplane import Client, wait_until
from tests.controlplane.client import Object, Objects
from tests.realnode.images import PAUSE


def a_running_pod(
    name: str,
    cpu: str = "10m",
    *,
    scheduler: str = "loadmaster",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A pod that does nothing; more of its spec by the API's own names."""
    container = {
        "name": "main",
        "image": PAUSE,
        "imagePullPolicy": "Never",
        "resources": {"requests": {"cpu": cpu}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def a_deployment(name: str, replicas: int, cpu: str = "10m", *, scheduler: str = "loadmaster") -> Object:
    """A Deployment of pods that do nothing."""
    pod = a_running_pod(name, cpu, scheduler=scheduler, labels={"app": name})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]},
        },
    }


def running(api: Client, namespace: str, labels: str = "") -> Objects:
    """The pods that run."""
    return [pod for pod in api.list("Pod", namespace, labels=labels) if pod["status"].get("phase") == "Running"]


def wait_running(api: Client, namespace: str, count: int, labels: str = "", timeout: float = 30) -> None:
    """Return when `count` pods run. Raises TimeoutError."""
    wait_until(lambda: len(running(api, namespace, labels)) == count, timeout, f"{count} pods run")
