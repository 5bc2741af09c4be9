"""What people ask a scheduler that runs on a cluster: `kubectl loadmaster explain`, and the page in a browser."""

import pytest

from tests.controlplane import Client, wait_until
from tests.kind.cluster import NODES, KindCluster
from tests.kind.plugin import kubectl_loadmaster
from tests.kind.scheduler import Scheduler
from tests.kind.workloads import SOON, a_pod, apply, why_pending


@pytest.fixture
def pending(cluster: KindCluster, api: Client, loadmaster: Scheduler, namespace: str) -> str:
    """A pod that fits nowhere, as `explain` is asked for it."""
    apply(cluster, namespace, a_pod("huge", cpu="900"))
    wait_until(lambda: why_pending(api, namespace, "huge"), SOON, "the scheduler's verdict")
    return f"{namespace}/huge"


def test_kubectl_explains_why_a_pod_is_pending(cluster: KindCluster, pending: str) -> None:
    told = kubectl_loadmaster(cluster, "explain", pending)

    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith(f"{pending}  unschedulable\n")
    assert f"none of {len(NODES)} nodes takes it" in told.stdout
    assert "WHAT WOULD HELP" in told.stdout
    assert "attempt 1: unschedulable" in told.stdout, "the running scheduler was asked, which has the history"
