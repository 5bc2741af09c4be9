"""Loadmaster on the cluster by its chart, and the example workloads, as users install them."""

from pathlib import Path
from typing import Final

from tests.chart import CHART
from tests.kind.cluster import KindCluster

RELEASE: Final = "loadmaster"
NAMESPACE: Final = "kube-system"
SPREAD: Final = CHART.parents[1] / "deploy" / "examples" / "spread"
TOO_LARGE: Final = Path(__file__).parent / "too-large.yaml"
WAIT: Final = ("--wait", "--timeout=180s")
HELM_SECONDS: Final = 200


def install_loadmaster(cluster: KindCluster, image: str) -> None:
    """Install the chart, or upgrade to what it is now, with two replicas; return when they are ready."""
    repository, _, tag = image.rpartition(":")
    values = {"image": {"repository": repository, "tag": tag}, "page": {"enabled": True}}
    command = ("upgrade", "--install", RELEASE, str(CHART), f"--namespace={NAMESPACE}", *WAIT)
    cluster.helm.run(*command, values=values, timeout=HELM_SECONDS)


def install_example(cluster: KindCluster) -> None:
    """Apply a Deployment over all zones, and a pod that fits nowhere; return when the Deployment runs."""
    cluster.kubectl("apply", f"--filename={SPREAD}", f"--filename={TOO_LARGE}")
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout=120s", timeout=130)
