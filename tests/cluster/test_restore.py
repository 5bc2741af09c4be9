"""etcd is restored from a backup: the API server goes back in time, under a scheduler that has seen what came after."""

import json
import shutil
import signal
from collections.abc import Iterator

import pytest

from tests.cluster.loadmaster import install_rbac, node_of, start
from tests.controlplane import Component, ControlPlane, Settings, a_node, a_pod, wait_until


@pytest.fixture
def own() -> Iterator[ControlPlane]:
    """A control plane of the test's own: nothing else may go back in time with it."""
    with ControlPlane(Settings()) as controlplane:
        yield controlplane


def back_up(own: ControlPlane) -> None:
    own.etcd.stop()
    shutil.copytree(own.directory / "etcd", own.directory / "backup")
    own.etcd.start()
    own.apiserver.kill()
    own.apiserver.start()


def bring_back(own: ControlPlane) -> None:
    own.apiserver.kill()
    own.etcd.stop()
    shutil.rmtree(own.directory / "etcd")
    shutil.copytree(own.directory / "backup", own.directory / "etcd")
    own.etcd.start()
    own.apiserver.start()


def comparison(loadmaster: Component) -> str:
    """What the debugger says of the tables, as the line of the log."""
    before = loadmaster.log.read_text().count("Cache comparer")
    loadmaster.send_signal(signal.SIGUSR2)
    wait_until(lambda: loadmaster.log.read_text().count("Cache comparer") > before, 20, "the tables are compared")
    return [line for line in loadmaster.log.read_text().splitlines() if "Cache comparer" in line][-1]


def test_a_restore_ends_the_scheduler_and_its_restart_heals_all(own: ControlPlane) -> None:
    install_rbac(own)
    with own.client() as api, start(own, "--logging-format", "json", name="loadmaster-restored") as loadmaster:
        api.create(a_node("old", cpu="2"))
        api.create(a_pod("kept"), "default")
        wait_until(lambda: node_of(api.get("Pod", "kept", "default")) == "old", 20, "a pod is bound")
        back_up(own)
        with own.client() as then:
            for name in (f"new-{number}" for number in range(20)):
                then.create(a_node(name, cpu="1"))
            then.create(a_pod("lost", cpu="1", nodeSelector={"kubernetes.io/hostname": "new-3"}), "default")
            wait_until(lambda: node_of(then.get("Pod", "lost", "default")) == "new-3", 30, "another pod is bound")

        bring_back(own)
        wait_until(lambda: not loadmaster.running, 60, "the scheduler has noticed and ended")
        assert loadmaster.exit_code == 1
        told = [json.loads(line) for line in loadmaster.log.read_text().splitlines() if "gone back in time" in line]
        assert told, "each list that notices it says so"

        loadmaster.start()  # as the kubelet does
        with own.client() as now:
            now.create(a_pod("later", cpu="1"), "default")
            wait_until(lambda: node_of(now.get("Pod", "later", "default")) == "old", 30, "a new pod is bound")
            assert {node["metadata"]["name"] for node in now.list("Node")} == {"old"}
        assert json.loads(comparison(loadmaster))["mismatch"] is False
