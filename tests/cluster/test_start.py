"""What a start loads, and what stops it: each mistake is one line that names its place, and exit code 2."""

import re
import subprocess
import sys

from tests.cluster.loadmaster import NAMESPACE, install_rbac, start
from tests.controlplane import Cluster

OFF = (
    "cel_expr_python",
    "kubernetes.client.",
    "opentelemetry",
    "pydantic",
    "requests",
    "scheduler.assembly.shadow",
    "scheduler.groups.algorithm",
    "scheduler.groups.cycle",
    "scheduler.groups.records",
    "scheduler.explain.explainer",
    "scheduler.explain.pod_groups",
    "scheduler.kube.election.elector",
    "scheduler.replay",
    "scheduler.serve.page",
    "scheduler.simulate",
    "scheduler.snapshots",
    "scheduler.tracing.export",
)
"""Code of what nobody has asked for: devices, leader election, traces, the page, shadow, explanations,
recordings, decisions about groups of pods."""


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scheduler", "run", "--secure-port=0", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


def test_what_nobody_has_asked_for_is_not_loaded(cluster: Cluster) -> None:
    install_rbac(cluster)

    with start(cluster, name="imports", program=("-X", "importtime", "-m", "scheduler")) as scheduler:
        loaded = re.findall(r"^import time:.*\| +(\S+)$", scheduler.log.read_text(), re.MULTILINE)

    assert "scheduler.cycle.loop" in loaded
    assert [name for name in loaded if name.startswith(OFF)] == []


def test_a_missing_permission_is_named(cluster: Cluster) -> None:
    install_rbac(cluster)
    cluster.kubectl("create", "serviceaccount", "powerless", "-n", NAMESPACE)
    try:
        kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, "powerless")

        ended = run(f"--kubeconfig={kubeconfig}")
    finally:
        cluster.kubectl("delete", "serviceaccount", "powerless", "-n", NAMESPACE)

    assert ended.returncode == 2
    lines = ended.stderr.splitlines()
    assert any("create pods/binding" in line for line in lines), lines
    assert any("watch nodes" in line for line in lines), lines
    assert "Traceback" not in ended.stderr
    assert lines[-1].startswith(f"{kubeconfig}: grant this account the ClusterRole"), lines
