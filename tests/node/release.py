"""Releases of the chart, by the real helm."""

from typing import Any

from tests.chart import CHART, Helm
from tests.controlplane import Client, Cluster
from tests.node.scheduler import Scheduler

WAIT = ("--wait", "--timeout=55s")


class Release:
    """A release in a namespace of its own, which has the same name."""

    def __init__(self, cluster: Cluster, api: Client, name: str) -> None:
        self.name = name
        self.scheduler = Scheduler(cluster, api, name, name)
        self._helm = Helm(cluster.directory / "helm", cluster.kubeconfig())

    def install(self, **values: Any) -> None:
        """Install the chart; do not wait."""
        self._run("install", self.name, str(CHART), values=values)

    def upgrade(self, **values: Any) -> None:
        """Upgrade, and wait until it is ready."""
        self._run("upgrade", self.name, str(CHART), *WAIT, values=values)

    def rollback(self) -> None:
        """Go back to the revision before, and wait until it is ready."""
        self._run("rollback", self.name, *WAIT)

    def test(self) -> str:
        """Run the chart's own tests; return what helm says."""
        return self._run("test", self.name, "--timeout=55s")

    def uninstall(self) -> None:
        """Uninstall, and wait until its objects are gone."""
        self.scheduler.stop()
        self._run("uninstall", self.name, *WAIT)

    def _run(self, *command: str, values: dict[str, Any] | None = None) -> str:
        return self._helm.run(*command, f"--namespace={self.name}", values=values)


def install(
    cluster: Cluster, api: Client, name: str, values: dict[str, Any], labels: dict[str, str] | None = None
) -> Release:
    """Make a namespace with these labels and install the chart in it, both called `name`."""
    cluster.create_namespace(name)
    for key, value in (labels or {}).items():
        cluster.kubectl("label", "namespace", name, f"{key}={value}")
    release = Release(cluster, api, name)
    release.install(**values)
    return release
