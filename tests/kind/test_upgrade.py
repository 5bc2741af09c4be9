"""From the release before to this one and back, by Helm, while pods keep coming."""

import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, Final, Self

import pytest

from tests.chart import CHART, Helm
from tests.chart.earlier import release_before
from tests.controlplane import Client, wait_until
from tests.kind import earlier_image, image
from tests.kind.cluster import NODES, KindCluster
from tests.kind.release import NAMESPACE, RELEASE, run_helm
from tests.kind.scheduler import Scheduler
from tests.kind.workloads import HOST, a_pod, is_running

BEFORE: Final = release_before()
NAME: Final = "upgraded"
PROGRAM: Final = "/opt/loadmaster/bin/loadmaster"
NODE: Final = NODES[1]
VALUES: Final[dict[str, Any]] = {
    "nodeSelector": {HOST: NODE},  # one copy of the image is enough
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
def image_before(cluster: KindCluster) -> dict[str, str]:
    """The image of the release before, as its chart's values name it: the chart has the tag."""
    try:
        archive = earlier_image.ensure(cluster.engine, BEFORE)
    except earlier_image.NoHistoryError as error:
        pytest.skip(f"the image of {BEFORE.version} is built from its commit: {error}")
    cluster.load_archive(archive, [NODE])
    return {"repository": image.REPOSITORY}


@pytest.fixture
def upgraded(cluster: KindCluster, api: Client, helm: Helm, image_before: dict[str, str]) -> Iterator[Scheduler]:
    """A release of the chart before, with the image that it names, in a namespace of its own."""
    cluster.create_namespace(NAME)
    run_helm(helm, "install", NAME, str(BEFORE.chart), namespace=NAME, values=VALUES | {"image": image_before})
    yield Scheduler(cluster, api, NAME, NAME)
    run_helm(helm, "uninstall", NAME, namespace=NAME)
    cluster.kubectl("delete", "namespace", NAME, "--wait", "--timeout=170s", timeout=180)


def program(scheduler: Scheduler) -> str:
    """What the replica that leads says that it is."""
    return scheduler.execute(PROGRAM, "--version").strip()


def test_no_pod_is_lost_or_bound_twice_over_an_upgrade_and_a_rollback(
    image_now: dict[str, str], upgraded: Scheduler, helm: Helm, api: Client, namespace: str
) -> None:
    began_with = program(upgraded)

    with Load(api, namespace) as load:
        run_helm(helm, "upgrade", NAME, str(CHART), namespace=NAME, values=VALUES | {"image": image_now})
        went_on_with = program(upgraded)
        run_helm(helm, "rollback", NAME, namespace=NAME)
        ended_with = program(upgraded)
    wait_until(lambda: all(map(is_running, api.list("Pod", namespace))), 60, "all pods run", interval=0.5)

    events = api.list("events.k8s.io/v1/Event", namespace, fields="reason=Scheduled")
    bindings = Counter(event["regarding"]["name"] for event in events)
    print(f"{len(load.created)} pods were created meanwhile")
    assert began_with == ended_with == f"loadmaster {BEFORE.version}"
    assert went_on_with == f"loadmaster {version('loadmaster')}"
    assert len(load.created) > 10
    assert sorted(pod["metadata"]["name"] for pod in api.list("Pod", namespace)) == sorted(load.created)
    assert bindings == dict.fromkeys(load.created, 1)
