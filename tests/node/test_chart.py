"""The chart on a real node: installed, upgraded, rolled back and tested by helm."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane import Client
from tests.node.release import Release, install
from tests.node.workloads import a_deployment, a_running_pod, running, wait_running
from tests.realnode.node import RealNode


def values(seed: int) -> dict[str, Any]:
    """A release with a profile of its own."""
    return {
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "config": {"profiles": [{"schedulerName": "batch"}], "loadmaster": {"seed": seed}},
    }


@pytest.fixture(scope="module")
def release(node: RealNode, api: Client) -> Iterator[Release]:
    """A release in a namespace that enforces Pod Security `restricted`."""
    release = install(node, api, "strict", values(seed=1), {"pod-security.kubernetes.io/enforce": "restricted"})
    release.scheduler.wait_ready()
    yield release
    release.uninstall()


def test_in_a_restricted_namespace_it_schedules_for_its_own_profile(
    release: Release, api: Client, namespace: str
) -> None:
    api.create(a_deployment("web", 3, scheduler="batch"), namespace)

    wait_running(api, namespace, 3)


def test_helm_test_passes_once_it_has_placed_the_test_pod(release: Release, api: Client) -> None:
    told = release.test()

    assert "Phase:          Succeeded" in told


def test_pods_that_wait_over_an_upgrade_and_a_rollback_are_placed(
    release: Release, api: Client, namespace: str
) -> None:
    before = release.scheduler.pod_name
    gates = [{"name": "example.com/wait"}]
    for name in ("gated-1", "gated-2"):
        api.create(a_running_pod(name, scheduler="batch", schedulingGates=gates), namespace)

    release.scheduler.kubectl("scale", f"deployment/{release.scheduler.name}", "--replicas=0")
    api.create(a_deployment("upgraded", 3, scheduler="batch"), namespace)
    release.upgrade(**values(seed=2))
    wait_running(api, namespace, 3, "app=upgraded")
    upgraded = release.scheduler.pod_name
    open_gate(api, namespace, "gated-1")
    release.scheduler.kubectl("scale", f"deployment/{release.scheduler.name}", "--replicas=0")
    api.create(a_deployment("rolled-back", 3, scheduler="batch"), namespace)
    release.rollback()
    wait_running(api, namespace, 3, "app=rolled-back")
    open_gate(api, namespace, "gated-2")
    wait_running(api, namespace, 8)

    assert len({before, upgraded, release.scheduler.pod_name}) == 3
    assert "seed: 1" in release.scheduler.kubectl("get", "configmap", release.scheduler.name, "--output=yaml")
    assert {pod["status"]["containerStatuses"][0]["restartCount"] for pod in running(api, namespace)} == {0}


def open_gate(api: Client, namespace: str, name: str) -> None:
    api.patch("Pod", name, {"spec": {"schedulingGates": []}}, namespace)
