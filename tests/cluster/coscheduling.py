"""The configuration that enables the plugin Coscheduling on a cluster."""

from pathlib import Path

from tests.cluster.loadmaster import start, with_plugin
from tests.controlplane import Cluster, Component

GROUPS = ("scheduling.x-k8s.io", "scheduling.volcano.sh", "batch", "jobset.x-k8s.io")
"""The API groups of what the plugin reads and writes, in addition to what all schedulers do."""


def started(cluster: Cluster, directory: Path, name: str = "loadmaster", **settings: object) -> Component:
    """Start the scheduler with a profile that has the plugin, and `settings` of our own."""
    config = with_plugin(directory, "Coscheduling", {"permitWaitingTimeSeconds": 10}, **settings)
    return start(cluster, config, name=name)
