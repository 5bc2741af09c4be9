"""Loadmaster as users see it: a Deployment in a namespace, with a pod, and a log."""

import json
from typing import Any

from tests.cluster.replicas import LEASE
from tests.controlplane import ApiError, Client, Cluster, wait_until
from tests.controlplane.client import Object

READY_SECONDS = 60
"""Of which 15 pass before the first Lease is taken."""


class Scheduler:
    """One Deployment of Loadmaster: what is asked of it is asked of the replica that leads."""

    def __init__(self, cluster: Cluster, api: Client, namespace: str, name: str = "loadmaster") -> None:
        self.namespace = namespace
        self.name = name
        self.lease = name
        """The name of the Lease by which its replicas elect."""
        self._cluster = cluster
        self._api = api

    @property
    def pod(self) -> Object:
        """The newest that is not ready, otherwise the one that leads. Raises LookupError while there is none."""
        pods = sorted(self.pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        if not pods:
            raise LookupError(f"{self.namespace}/{self.name} has no pod")
        unready = [pod for pod in pods if not is_ready(pod)]
        holder = self.holder
        leading = [pod for pod in pods if holder.startswith(f"{pod['metadata']['name']}_")]
        return (unready or leading or pods)[-1]

    @property
    def pods(self) -> list[Object]:
        """All that are not on their way out."""
        pods = self._api.list("Pod", self.namespace, labels="app.kubernetes.io/name=loadmaster")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    @property
    def holder(self) -> str:
        """What the Lease says who leads: a pod's name, `_` and more. Empty if nobody does."""
        try:
            lease = self._api.get(LEASE, self.lease, self.namespace)
        except ApiError:
            return ""
        return str(lease["spec"].get("holderIdentity", ""))

    @property
    def pod_name(self) -> str:
        name: str = self.pod["metadata"]["name"]
        return name

    def is_ready(self) -> bool:
        """Whether all its pods are, and one of them leads."""
        pods, holder = self.pods, self.holder
        leads = any(holder.startswith(f"{pod['metadata']['name']}_") for pod in pods)
        return leads and all(is_ready(pod) for pod in pods)

    def wait_ready(self, timeout: float = READY_SECONDS) -> None:
        """Return when it is. Raises TimeoutError with the end of the log of a pod."""
        try:
            wait_until(self.is_ready, timeout, f"{self.namespace}/{self.name} is ready")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.describe()}\n{self.log()[-3000:]}") from None

    def log(self) -> str:
        """What its pod has logged since its container started last."""
        return self.kubectl("logs", f"pod/{self.pod_name}")

    def lines(self) -> list[dict[str, Any]]:
        """The log's lines of JSON."""
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]

    def describe(self) -> str:
        """What `kubectl describe pod` tells of its pod."""
        return self.kubectl("describe", "pod", self.pod_name)

    def execute(self, *command: str) -> str:
        """Run a command in its container."""
        return self.kubectl("exec", f"pod/{self.pod_name}", "--", *command)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """kubectl in its namespace."""
        return self._cluster.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin)


def container_of(pod: Object) -> Object:
    """The status of its container; empty before the kubelet has written one."""
    status: Object = (pod["status"].get("containerStatuses") or [{}])[0]
    return status


def is_ready(pod: Object) -> bool:
    return container_of(pod).get("ready", False) is True
