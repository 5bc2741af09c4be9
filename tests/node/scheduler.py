"""Loadmaster as users see it: a Deployment in a namespace, with a pod, a log and a port."""

import json
import os
import time
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.cluster.loadmaster import MANIFEST, http_get, metrics_token, sum_of
from tests.controlplane import Client, wait_until
from tests.controlplane.client import Object
from tests.realnode.node import RealNode

READY_SECONDS = 40
PORT = 10259
PROGRAM = "/opt/loadmaster/bin/loadmaster run"


class Scheduler:
    """One Deployment of Loadmaster with one replica."""

    def __init__(self, node: RealNode, api: Client, namespace: str, name: str = "loadmaster") -> None:
        self.namespace = namespace
        self.name = name
        self._node = node
        self._api = api

    @property
    def pod(self) -> Object:
        """Its pod, the newest if there are several. Raises LookupError while there is none."""
        labels = "app.kubernetes.io/name=loadmaster"
        pods = self._api.list("Pod", self.namespace, labels=labels)
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        if not alive:
            raise LookupError(f"{self.namespace}/{self.name} has no pod")
        return max(alive, key=lambda pod: pod["metadata"]["creationTimestamp"])

    @property
    def pod_name(self) -> str:
        name: str = self.pod["metadata"]["name"]
        return name

    @property
    def container(self) -> Object:
        """The status of its container; empty before the kubelet has written one."""
        statuses = self.pod["status"].get("containerStatuses") or [{}]
        status: Object = statuses[0]
        return status

    @property
    def restarts(self) -> int:
        count: int = self.container.get("restartCount", 0)
        return count

    def is_ready(self) -> bool:
        try:
            return self.container.get("ready", False) is True
        except LookupError:
            return False

    def wait_ready(self, timeout: float = READY_SECONDS) -> None:
        """Return when its newest pod is ready. Raises TimeoutError with the end of its log."""
        try:
            wait_until(self.is_ready, timeout, f"{self.namespace}/{self.name} is ready")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.describe()}\n{self.log()[-3000:]}") from None

    def log(self) -> str:
        """What its newest pod has logged since its container started last."""
        return self.kubectl("logs", f"deployment/{self.name}")

    def lines(self) -> list[dict[str, Any]]:
        """The log's lines of JSON."""
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]

    def describe(self) -> str:
        """What `kubectl describe pod` tells of its newest pod."""
        return self.kubectl("describe", "pod", self.pod_name)

    def execute(self, *command: str) -> str:
        """Run a command in its container."""
        return self.kubectl("exec", f"deployment/{self.name}", "--", *command)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples of a metric that have these labels."""
        return sum_of(self.get("/metrics")[1], name, **labels)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a GET to its port."""
        return http_get(PORT, path, self.pod["status"]["podIP"], token=self.token)

    @cached_property
    def token(self) -> str:
        """Of somebody who may see its metrics."""
        return metrics_token(self._node)

    @property
    def pid(self) -> int:
        """The process, as the namespace of the tests numbers it."""
        uid = self.pod["metadata"]["uid"]
        (pid,) = (pid for pid in self._node.pids(PROGRAM) if uid in Path(f"/proc/{pid}/cgroup").read_text())
        return pid

    def delete(self) -> None:
        """Delete what deploy/loadmaster.yaml made; return when the pod is gone."""
        self._node.kubectl("delete", "-f", str(MANIFEST), "--wait", "--timeout=60s", timeout=90)
        labels = "app.kubernetes.io/name=loadmaster"
        wait_until(lambda: not self._api.list("Pod", self.namespace, labels=labels), 60, "the pod is gone")

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """kubectl in its namespace."""
        return self._node.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin)


def apply_manifest(node: RealNode) -> None:
    """Install what is shipped, as the README says."""
    node.kubectl("apply", "-f", str(MANIFEST))


def started_at(pid: int) -> float:
    """When a process was started, in seconds since the epoch, from the kernel's books."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
