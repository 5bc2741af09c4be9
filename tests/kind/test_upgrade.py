"""From the release before to this one and back, by Helm, while pods keep coming."""

import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

import pytest

from tests.chart import CHART, Helm
from tests.controlplane import Client, wait_until
from tests.kind.cluster import KindCluster
from tests.kind.release import NAMESPACE, RELEASE, run_helm
from tests.kind.workloads import a_pod, is_running
from tests.node.scheduler import Scheduler

RELEASES: Final = Path(__file__).parents[1] / "chart" / "releases"
BEFORE: Final = "0.1.0"
NAME: Final = "upgraded"
VALUES: Final[dict[str, Any]] = {
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    "config": {"profiles": [{"schedulerName": NAME}]},
}
BETWEEN_PODS: Final = 1.0
"""Seconds."""


class Load:
    """Pods that are created one after the other, from a thread. A context manager."""

    def __init__(self, api: Client, namespace: str) -> None:
        self.created: list[str] = []
        self._api = api
        self._namespace = namespace
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        for number in itertools.count():
            pod = a_pod(f"pod-{number}", scheduler=NAME)
            self._api.create(pod, self._namespace)
            self.created.append(pod["metadata"]["name"])
            if self._ended.wait(BETWEEN_PODS):
                return


@pytest.fixture
def image_now(api: Client) -> dict[str, str]:
    """The image of the release that `make kind` installed, as the chart's values name it."""
    deployment = api.get("apps/v1/Deployment", RELEASE, NAMESPACE)
    repository, _, tag = deployment["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")
    return {"repository": repository, "tag": tag}


@pytest.fixture
def image_before(cluster: KindCluster, image_now: dict[str, str]) -> dict[str, str]:
    """What the chart before names. The program is that of now: of the one before there is no image to be had."""
    repository, tag = image_now["repository"], image_now["tag"]
    cluster.engine("tag", f"{repository}:{tag}", f"{repository}:{BEFORE}")
    cluster.load(f"{repository}:{BEFORE}")
    return {"repository": repository}


@pytest.fixture
def upgraded(cluster: KindCluster, api: Client, helm: Helm, image_before: dict[str, str]) -> Iterator[Scheduler]:
    """A release of the chart before, with the image that it names, in a namespace of its own."""
    cluster.create_namespace(NAME)
    chart = RELEASES / f"loadmaster-{BEFORE}.tgz"
    run_helm(helm, "install", NAME, str(chart), namespace=NAME, values=VALUES | {"image": image_before})
    yield Scheduler(cluster, api, NAME, NAME)
    run_helm(helm, "uninstall", NAME, namespace=NAME)
    cluster.kubectl("delete", "namespace", NAME, "--wait", "--timeout=170s", timeout=180)


def images(scheduler: Scheduler) -> set[str]:
    """What its pods run."""
    return {str(pod["spec"]["containers"][0]["image"]) for pod in scheduler.pods}


def test_no_pod_is_lost_or_bound_twice_over_an_upgrade_and_a_rollback(
    image_now: dict[str, str], upgraded: Scheduler, helm: Helm, api: Client, namespace: str
) -> None:
    began_with = images(upgraded)

    with Load(api, namespace) as load:
        run_helm(helm, "upgrade", NAME, str(CHART), namespace=NAME, values=VALUES | {"image": image_now})
        went_on_with = images(upgraded)
        run_helm(helm, "rollback", NAME, namespace=NAME)
        ended_with = images(upgraded)
    wait_until(lambda: all(map(is_running, api.list("Pod", namespace))), 60, "all pods run", interval=0.5)

    events = api.list("events.k8s.io/v1/Event", namespace, fields="reason=Scheduled")
    bindings = Counter(event["regarding"]["name"] for event in events)
    print(f"{len(load.created)} pods were created meanwhile")
    assert began_with == ended_with == {f"{image_now['repository']}:{BEFORE}"}
    assert went_on_with == {f"{image_now['repository']}:{image_now['tag']}"}
    assert len(load.created) > 10
    assert sorted(pod["metadata"]["name"] for pod in api.list("Pod", namespace)) == sorted(load.created)
    assert bindings == dict.fromkeys(load.created, 1)
