"""A plugin is one file: helm puts it into a ConfigMap, the kubelet into pods that run, and they place pods by it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane import Client, condition, wait_until
from tests.node.release import Release, install
from tests.node.workloads import a_running_pod, wait_running
from tests.realnode.node import RealNode

PROFILE = "plugged"
TAKEN_OVER = 60.0
"""Seconds until what was changed is in the pods, tried out and taken over, on a busy machine."""

WISHES = """\
from scheduler import framework as fw
from ._words import WORD


class Wishes(fw.FilterPlugin):
    name = "Wishes"
    reads_raw_pods = True

    def events_to_register(self):
        return ()

    def filter(self, state, pod, node):
        wish = pod.annotations.get("example.com/wish")
        return None if wish == WORD else fw.unschedulable(f"a wish other than {WORD}")
"""


def values(word: str = "", **settings: Any) -> dict[str, Any]:
    """A release with a profile of its own, and with a plugin if there is a word that pods must say."""
    enabled = [{"name": "Wishes"}] if word else []
    profile = {"schedulerName": PROFILE, "plugins": {"multiPoint": {"enabled": enabled}}}
    return {
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "config": {"profiles": [profile], "loadmaster": settings},
        "plugins": {"files": files(word) if word else {}},
    }


def files(word: str) -> dict[str, str]:
    """Two that only make sense together."""
    return {"wishes.py": WISHES.replace("WORD", f"WORD_{word}"), "_words.py": f'WORD_{word} = "{word}"\n'}


@pytest.fixture(scope="module")
def release(node: RealNode, api: Client) -> Iterator[Release]:
    """A release without plugins, ready."""
    release = install(node, api, "reloaded", values())
    release.scheduler.wait_ready()
    yield release
    release.uninstall()


def create(api: Client, namespace: str, name: str, wish: str) -> None:
    pod = a_running_pod(name, scheduler=PROFILE)
    pod["metadata"]["annotations"] = {"example.com/wish": wish}
    api.create(pod, namespace)


def said(api: Client, namespace: str, name: str) -> str:
    """Why a pod has found no node; empty if nothing was said of it."""
    scheduled = condition(api.get("Pod", name, namespace), "PodScheduled")
    return str(scheduled.get("message", "")) if scheduled else ""


def until_refused(api: Client, namespace: str, name: str, why: str) -> None:
    wait_until(lambda: why in said(api, namespace, name), TAKEN_OVER, f"{name} is refused with {why!r}")


def processes(release: Release) -> set[tuple[str, int]]:
    """Its pods, and how often each was restarted."""
    return {
        (pod["metadata"]["name"], status["restartCount"])
        for pod in release.scheduler.pods
        for status in pod["status"]["containerStatuses"]
    }


def reloads(release: Release, result: str) -> float:
    return release.scheduler.metric("loadmaster_config_reloads_total", result=result)


def test_the_first_plugin_and_its_next_version_place_pods_without_a_restart(
    release: Release, api: Client, namespace: str
) -> None:
    before = processes(release)
    create(api, namespace, "plain", "anything")
    wait_running(api, namespace, 1)

    release.upgrade(**values("please"))
    wait_until(lambda: release.scheduler.metric("loadmaster_config_is_current") == 1, TAKEN_OVER, "it is current")
    wait_until(lambda: reloads(release, "success") >= 1, TAKEN_OVER, "the plugin is taken over")
    create(api, namespace, "polite", "please")
    create(api, namespace, "grateful", "thanks")
    wait_running(api, namespace, 2)
    until_refused(api, namespace, "grateful", "a wish other than please")
    taken, refused = reloads(release, "success"), reloads(release, "error")

    # As an engineer without helm would do it. Both files change, and neither goes with the other's old version.
    patch = json.dumps({"data": files("thanks")})
    release.scheduler.kubectl("patch", "configmap", f"{release.name}-plugins", "--patch", patch)

    wait_running(api, namespace, 3, timeout=TAKEN_OVER)
    assert (reloads(release, "success"), reloads(release, "error")) == (taken + 1, refused), "one reload for two files"
    assert processes(release) == before


def test_what_needs_a_start_replaces_the_pods_and_they_begin_with_the_new_plugin(
    release: Release, api: Client, namespace: str
) -> None:
    before = processes(release)

    release.upgrade(**values("again", bindTimeoutSeconds=20))  # returns when all are replaced
    create(api, namespace, "insistent", "again")

    wait_running(api, namespace, 1)
    after = processes(release)
    assert not {name for name, _ in before} & {name for name, _ in after}
    assert {restarts for _, restarts in after} == {0}
