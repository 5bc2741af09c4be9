"""Loadmaster on the cluster by its chart, and the example workloads, as users install them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.chart import CHART, Helm
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
    run_helm(cluster.helm, "upgrade", "--install", RELEASE, str(CHART), values=values)


def run_helm(helm: Helm, *command: str, namespace: str = NAMESPACE, values: dict[str, Any] | None = None) -> None:
    """Run a command, and wait until what it does is done. Raises HelmError."""
    helm.run(*command, f"--namespace={namespace}", *WAIT, values=values, timeout=HELM_SECONDS)


@contextmanager
def upgraded(helm: Helm, values: dict[str, Any]) -> Iterator[None]:
    """Loadmaster with further values; afterwards rolled back to those that it had."""
    run_helm(helm, "upgrade", RELEASE, str(CHART), "--reuse-values", values=values)
    try:
        yield
    finally:
        run_helm(helm, "rollback", RELEASE)


def install_example(cluster: KindCluster) -> None:
    """Apply a Deployment over all zones, and a pod that fits nowhere; return when the Deployment runs."""
    cluster.kubectl("apply", f"--filename={SPREAD}", f"--filename={TOO_LARGE}")
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout=120s", timeout=130)


def remove_example(cluster: KindCluster) -> None:
    """Delete the same, if it is there: Kubernetes' own specs wait for ten minutes until each pod has a node."""
    cluster.kubectl("delete", "--ignore-not-found", f"--filename={SPREAD}", f"--filename={TOO_LARGE}")
