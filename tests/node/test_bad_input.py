"""What a user sees who got something wrong: in `kubectl describe pod`, where everybody looks first."""

import json
from collections.abc import Iterator

import pytest

from tests.controlplane import Client, wait_until
from tests.node.release import install
from tests.node.scheduler import Scheduler, apply_manifest
from tests.node.workloads import a_running_pod, wait_running
from tests.realnode.node import RealNode


@pytest.fixture
def restored(node: RealNode, loadmaster: Scheduler) -> Iterator[Scheduler]:
    """Loadmaster, whose objects are applied again and ready afterwards."""
    yield loadmaster
    apply_manifest(node)
    replace_pod(loadmaster)
    loadmaster.wait_ready()


def replace_pod(loadmaster: Scheduler) -> None:
    """Delete its pod, so that the next one mounts what there is now; do not wait for the next."""
    loadmaster.kubectl("delete", "pod", loadmaster.pod_name, "--wait", "--timeout=40s")


def test_a_wrong_configuration_is_told_with_its_path_and_mended_by_the_right_one(
    node: RealNode, restored: Scheduler, api: Client, namespace: str
) -> None:
    wrong = "profiles: [{schedulerName: loadmaster, plugins: {score: {enabled: [{name: NodeResourceFit}]}}}]\n"
    header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    patch = json.dumps({"data": {"config.yaml": header + wrong}})
    restored.kubectl("patch", "configmap", "loadmaster", "--type=merge", f"--patch={patch}")
    replace_pod(restored)

    code, message = wait_ended(restored)

    assert code == 2
    assert 'profiles[0].plugins.score.enabled[0]: unknown plugin "NodeResourceFit"' in message
    assert "NodeResourceFit" in restored.describe()
    apply_manifest(node)
    restored.wait_ready(60)
    api.create(a_running_pod("after"), namespace)
    wait_running(api, namespace, 1)


def test_a_configmap_that_is_missing_is_named(restored: Scheduler) -> None:
    restored.kubectl("delete", "configmap", "loadmaster")
    replace_pod(restored)

    told = 'configmap "loadmaster" not found'
    wait_until(lambda: told in restored.describe(), 30, "the kubelet's event")


def test_an_account_without_permissions_is_told_what_it_may_not_do(node: RealNode, api: Client) -> None:
    values = {
        "rbac": {"create": False},
        "serviceAccount": {"create": False, "name": "default"},
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}},
    }
    release = install(node, api, "powerless", values)

    code, message = wait_ended(release.scheduler)

    release.uninstall()
    assert code == 2
    assert "\nmay not list, watch nodes (core)\n" in message, "all of it, after a line or two of the log"
    assert "may not create pods/binding (core)" in message
    assert "Traceback" not in message


def wait_ended(scheduler: Scheduler) -> tuple[int, str]:
    """Return the exit code and the message with which the container of the newest pod ended, once it has."""

    def ended() -> tuple[int, str] | None:
        try:
            container = scheduler.container
        except LookupError:
            return None
        states = [container.get(name, {}).get("terminated", {}) for name in ("state", "lastState")]
        return next(((state["exitCode"], state["message"]) for state in states if state.get("message")), None)

    answer = wait_until(ended, 40, "the container's end, with a message")
    assert answer is not None
    return answer
