"""Loadmaster as users see it: a Deployment in a namespace, with a pod, a log and a port."""

import json
import os
import time
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.cluster.loadmaster import MANIFEST, http_get, metrics_token, sum_of
from tests.cluster.replicas import LEASE
from tests.controlplane import ApiError, Client, Cluster, wait_until
from tests.controlplane.client import Object
from tests.realnode.node import RealNode

READY_SECONDS = 60
"""Of which 15 pass before the first Lease is taken."""
PORT = 10259
PROGRAM = "/opt/loadmaster/bin/loadmaster run"


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

    @property
    def container(self) -> Object:
        """The status of its container; empty before the kubelet has written one."""
        return container_of(self.pod)

    @property
    def restarts(self) -> int:
        count: int = self.container.get("restartCount", 0)
        return count

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

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples of a metric that have these labels."""
        return sum_of(self.get("/metrics")[1], name, **labels)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a GET to its port."""
        return http_get(PORT, path, self.pod["status"]["podIP"], token=self.token)

    @cached_property
    def token(self) -> str:
        """Of somebody who may see its metrics."""
        return metrics_token(self._cluster)

    def delete(self) -> None:
        """Delete what deploy/loadmaster.yaml made; return when it is gone."""
        self.stop()
        self._cluster.kubectl("delete", "-f", str(MANIFEST), "--wait", "--timeout=60s", timeout=90)

    def stop(self) -> None:
        """End all its replicas; return when they are gone.

        Before its permissions are deleted, so that no test sees a call that was forbidden for that reason only.
        """
        self.kubectl("scale", f"deployment/{self.name}", "--replicas=0")
        labels = "app.kubernetes.io/name=loadmaster"
        wait_until(lambda: not self._api.list("Pod", self.namespace, labels=labels), 60, "the pods are gone")

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """kubectl in its namespace."""
        return self._cluster.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin)


def container_of(pod: Object) -> Object:
    """The status of its container; empty before the kubelet has written one."""
    status: Object = (pod["status"].get("containerStatuses") or [{}])[0]
    return status


def is_ready(pod: Object) -> bool:
    return container_of(pod).get("ready", False) is True


def pid_of(scheduler: Scheduler, node: RealNode) -> int:
    """The process of its pod, as the namespace of the tests numbers it."""
    uid = scheduler.pod["metadata"]["uid"]
    (pid,) = (pid for pid in node.pids(PROGRAM) if uid in Path(f"/proc/{pid}/cgroup").read_text())
    return pid


def apply_manifest(node: RealNode) -> None:
    """Install what is shipped, as the README says."""
    node.kubectl("apply", "-f", str(MANIFEST))


def started_at(pid: int) -> float:
    """When a process was started, in seconds since the epoch, from the kernel's books."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
