"""A release in a namespace of its own: the chart's test, plugins that come by a ConfigMap, and what a mistake tells."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.chart import CHART, Helm
from tests.controlplane import Client, wait_until
from tests.kind.cluster import KindCluster
from tests.kind.release import HELM_SECONDS, NAMESPACE, RELEASE, run_helm
from tests.kind.scheduler import Scheduler, container_of
from tests.kind.workloads import a_pod, apply, wait_running, why_pending

NAME: Final = "configured"
TAKEN_OVER: Final = 180.0
"""Seconds until what was changed is in the pods: a kubelet looks once a minute."""

WISHES: Final = """\
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


def values(image: str, word: str = "", **settings: Any) -> dict[str, Any]:
    """A release with a profile of its own, and with a plugin if there is a word that pods must say."""
    repository, _, tag = image.rpartition(":")
    enabled = [{"name": "Wishes"}] if word else []
    profile = {"schedulerName": NAME, "plugins": {"multiPoint": {"enabled": enabled}}}
    return {
        "image": {"repository": repository, "tag": tag},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
        "config": {"profiles": [profile], "loadmaster": settings},
        "plugins": {"files": files(word) if word else {}},
    }


def files(word: str) -> dict[str, str]:
    """Two that only make sense together."""
    return {"wishes.py": WISHES.replace("WORD", f"WORD_{word}"), "_words.py": f'WORD_{word} = "{word}"\n'}


@pytest.fixture(scope="module")
def image(api: Client) -> str:
    """The image of the release that `make kind` installed."""
    deployment = api.get("apps/v1/Deployment", RELEASE, NAMESPACE)
    name: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    return name


@pytest.fixture(scope="module")
def release(cluster: KindCluster, api: Client, helm: Helm, image: str) -> Iterator[Scheduler]:
    """A release without plugins, in a namespace that enforces Pod Security `restricted`."""
    cluster.create_namespace(NAME)
    cluster.kubectl("label", "namespace", NAME, "pod-security.kubernetes.io/enforce=restricted")
    run_helm(helm, "install", NAME, str(CHART), namespace=NAME, values=values(image))
    scheduler = Scheduler(cluster, api, NAME, NAME)
    scheduler.wait_ready(HELM_SECONDS)
    yield scheduler
    run_helm(helm, "uninstall", NAME, namespace=NAME)
    cluster.kubectl("delete", "namespace", NAME, "--wait", "--timeout=170s", timeout=180)


def create(cluster: KindCluster, namespace: str, name: str, wish: str) -> None:
    pod = a_pod(name, scheduler=NAME)
    pod["metadata"]["annotations"] = {"example.com/wish": wish}
    apply(cluster, namespace, pod)


def processes(release: Scheduler) -> set[tuple[str, int]]:
    """Its pods, and how often each was restarted."""
    return {(pod["metadata"]["name"], container_of(pod)["restartCount"]) for pod in release.pods}


def test_helm_test_passes_once_it_has_placed_the_test_pod(release: Scheduler, helm: Helm) -> None:
    assert "Phase:          Succeeded" in helm.run("test", NAME, f"--namespace={NAME}", "--timeout=170s", timeout=180)


def said(release: Scheduler, message: str) -> int:
    """How often the replica that leads has logged this."""
    return sum(line["msg"] == message for line in release.lines())


CHANGED: Final = "The configuration has changed"
REFUSED: Final = "The configuration is refused; the last good one stays in use"


def test_the_first_plugin_and_its_next_version_place_pods_without_a_restart(
    cluster: KindCluster, release: Scheduler, helm: Helm, api: Client, namespace: str, image: str
) -> None:
    before = processes(release)

    run_helm(helm, "upgrade", NAME, str(CHART), namespace=NAME, values=values(image, "please"))
    wait_until(lambda: said(release, CHANGED) >= 1, TAKEN_OVER, "the plugin is taken over", interval=0.5)
    create(cluster, namespace, "grateful", "thanks")
    create(cluster, namespace, "polite", "please")
    wait_running(api, namespace, "polite", 1)
    wait_until(lambda: "a wish other than please" in why_pending(api, namespace, "grateful"), 30, "it is refused")
    taken, refused = said(release, CHANGED), said(release, REFUSED)

    # As an engineer without helm would do it. Both files change, and neither goes with the other's old version.
    patch = json.dumps({"data": files("thanks")})
    release.kubectl("patch", "configmap", f"{NAME}-plugins", "--patch", patch)

    wait_running(api, namespace, "grateful", 1, TAKEN_OVER)
    assert (said(release, CHANGED), said(release, REFUSED)) == (taken + 1, refused), "one reload for two files"
    assert processes(release) == before


def test_what_needs_a_start_replaces_the_pods_and_they_begin_with_the_new_plugin(
    cluster: KindCluster, release: Scheduler, helm: Helm, api: Client, namespace: str, image: str
) -> None:
    before = processes(release)

    changed = values(image, "again", bindTimeoutSeconds=20)
    run_helm(helm, "upgrade", NAME, str(CHART), namespace=NAME, values=changed)  # returns when all are replaced
    create(cluster, namespace, "insistent", "again")

    wait_running(api, namespace, "insistent", 1)
    after = processes(release)
    assert not {name for name, _ in before} & {name for name, _ in after}
    assert {restarts for _, restarts in after} == {0}


def test_a_wrong_configuration_is_told_with_its_path_and_mended_by_the_right_one(
    cluster: KindCluster, release: Scheduler, helm: Helm, api: Client, namespace: str, image: str
) -> None:
    wrong = f"profiles: [{{schedulerName: {NAME}, plugins: {{score: {{enabled: [{{name: NodeResourceFit}}]}}}}}}]\n"
    header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    release.kubectl("patch", "configmap", NAME, "--type=merge", f"--patch={configuration(header + wrong)}")
    release.kubectl("delete", "pod", release.pod_name, "--wait", "--timeout=60s")

    code, message = wait_ended(release)

    assert code == 2
    assert 'profiles[0].plugins.score.enabled[0]: unknown plugin "NodeResourceFit"' in message
    assert "NodeResourceFit" in release.describe()
    run_helm(helm, "upgrade", NAME, str(CHART), namespace=NAME, values=values(image))
    release.wait_ready(HELM_SECONDS)
    apply(cluster, namespace, a_pod("after", scheduler=NAME))
    wait_running(api, namespace, "after", 1)


def configuration(text: str) -> str:
    """A patch of the ConfigMap."""
    return json.dumps({"data": {"config.yaml": text}})


def wait_ended(release: Scheduler) -> tuple[int, str]:
    """Return the exit code and the message with which the container of the newest pod ended, once it has."""

    def ended() -> tuple[int, str] | None:
        try:
            container = container_of(release.pod)
        except LookupError:
            return None
        states = [container.get(name, {}).get("terminated", {}) for name in ("state", "lastState")]
        return next(((state["exitCode"], state["message"]) for state in states if state.get("message")), None)

    answer = wait_until(ended, 60, "the container's end, with a message", interval=0.5)
    assert answer is not None
    return answer
