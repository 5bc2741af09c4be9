"""Plugins that exit, or loop without end, in a real scheduler: what is told, and what goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.faulty_plugins_scheduler import END
from tests.cluster.loadmaster import http_get, install_rbac, node_of, start
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until

PROGRAM = Path(__file__).with_name("faulty_plugins_scheduler.py")
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: loadmaster
    plugins:
      multiPoint:
        enabled: [{name: Misbehaving}]
"""


@pytest.fixture(scope="module")
def end_of_loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loop") / "end"


@pytest.fixture(scope="module")
def loadmaster(cluster: Cluster, end_of_loop: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Component]:
    install_rbac(cluster)
    config = tmp_path_factory.mktemp("config") / "loadmaster.yaml"
    config.write_text(CONFIG)
    env = {END: str(end_of_loop)}
    with start(cluster, f"--config={config}", name="misbehaving", program=(str(PROGRAM),), env=env) as process:
        yield process


def a_pod_that(does: str) -> dict[str, object]:
    pod = a_pod(does)
    pod["metadata"]["labels"] = {"does": does}
    return pod


def is_bound(api: Client, namespace: str, pod: str) -> bool:
    return bool(node_of(api.get("Pod", pod, namespace)))


def test_an_endless_loop_is_told_with_its_stack_and_livez_gets_no_answer_until_it_ends(
    loadmaster: Component, end_of_loop: Path, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1)
    assert http_get(loadmaster.port, "/livez")[0] == 200

    api.create(a_pod_that("loop"), namespace)
    log = wait_until(lambda: found(loadmaster, "The event loop hangs"), 30, "the watchdog tells")
    unanswered, _ = http_get(loadmaster.port, "/livez")
    end_of_loop.touch()
    wait_until(lambda: http_get(loadmaster.port, "/livez")[0] == 200, 20, "/livez answers again")
    wait_until(lambda: is_bound(api, namespace, "loop"), 20, "the pod is bound")

    assert unanswered == 0, "a probe of the kubelet ends by its time limit, and counts as failed"
    told = log.partition("The event loop hangs")[2]
    assert f'plugin="Misbehaving" extensionPoint="Filter" pod="{namespace}/loop"' in told
    assert 'while does == "loop" and not end.exists():' in told
    assert "scheduler/runtime" not in told
    wait_until(lambda: found(loadmaster, "The event loop goes on"), 10, "the watchdog tells that, too")


def found(loadmaster: Component, message: str) -> str:
    """The log, if it has the message."""
    log = loadmaster.log_tail(400)
    return log if message in log else ""
