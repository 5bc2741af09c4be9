"""Which pods are of one class, and how often plugins are asked about them."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
import pytest

from scheduler import framework as fw
from scheduler.api.objects import ContainerStatus, PersistentVolumeClaimVolumeSource, PodStatus, Toleration, Volume
from scheduler.framework.diagnosis import Diagnosis
from scheduler.runtime.framework import Framework
from scheduler.testing import a_pod
from tests.fakes import a_framework
from tests.unit.runtime.fakes import Filter, a, nodes


class Signs(Filter, fw.SignPlugin):
    """Signs by what the pod asks for."""

    aspects: ClassVar[fw.Aspect] = fw.Aspect.NODE
    signs_spec: ClassVar[bool] = True

    def sign(self, pod: fw.Pod) -> Hashable | None:
        self.log.append(pod.name)
        return frozenset(pod.requests.items())


class SignsByLabel(Signs):
    signs_spec: ClassVar[bool] = False

    def sign(self, pod: fw.Pod) -> Hashable | None:
        self.log.append(pod.name)
        return pod.labels.get("app")


class Picky(fw.PreFilterPlugin, fw.PreScorePlugin, fw.ScoreNodesPlugin):
    """Is concerned by pods with a node selector."""

    name: ClassVar[str] = "Picky"

    def __init__(self) -> None:
        self.log: list[str] = []

    def concerns(self, pod: fw.Pod) -> bool:
        self.log.append(pod.name)
        return pod.spec.node_selector is not None

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        return fw.SKIP if pod.spec.node_selector is None else None

    def concerns_score(self, pod: fw.Pod) -> bool:
        return self.concerns(pod)

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Status | None:
        return self.pre_filter(state, pod, nodes)

    def score_nodes(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> None:
        """Rate all nodes the same."""


def seen(framework: Framework, *pods: fw.Pod) -> list[bool]:
    """Decide on pods in turn; return for each whether it is of the class of the first."""
    classes = []
    for pod in pods:
        state = fw.CycleState()
        framework.run_pre_filter(state, pod, Diagnosis(1))
        classes.append(state.known_spec.pod_class)
    return [each is classes[0] for each in classes]


def claiming(name: str) -> fw.Pod:
    return a_pod(name, volumes=[Volume(persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))])


ONE = a_pod("one")
STATUS = PodStatus(container_statuses=(ContainerStatus(name="main"),))


@pytest.mark.parametrize(
    ("pods", "alike", "signed"),
    [
        pytest.param([ONE, a_pod("two", labels={"app": "web"})], True, ["one"], id="one spec"),
        pytest.param([ONE, a_pod("two", requests={"cpu": "1"})], False, ["one", "two"], id="other signatures"),
        pytest.param([ONE, a_pod("two", priority=7)], True, ["one", "two"], id="equal signatures of other specs"),
        pytest.param(
            [a_pod(name, volumes=[Volume(name=f"kube-api-access-{name}")]) for name in ("one", "two")],
            True,
            ["one"],
            id="names of volumes of unknown sources",
        ),
        pytest.param([claiming("one"), claiming("two")], True, ["one", "two"], id="volumes with a source"),
        pytest.param([a_pod(name, group=f"of {name}") for name in ("one", "two")], True, ["one"], id="groups"),
        pytest.param([ONE, a_pod("two", status=STATUS)], True, ["one", "two"], id="a status that tells of resources"),
    ],
)
def test_pods_are_of_one_class_where_their_signatures_are_equal_and_signed_once_a_spec(
    pods: list[fw.Pod], alike: bool, signed: list[str]
) -> None:
    signs, picky = a(Signs), Picky()

    assert seen(a_framework(signs, picky), *pods) == [True, alike]
    assert signs.log == picky.log == signed


def test_each_pod_is_signed_where_a_plugin_looks_at_more_than_the_spec() -> None:
    signs = a(SignsByLabel)
    pods = [a_pod("one", labels={"app": "web"}), a_pod("two", labels={"app": "db"})]

    assert seen(a_framework(a(Signs, "Other"), signs), *pods) == [True, False]
    assert signs.log == ["one", "two"]


def test_a_long_spec_is_known_by_a_digest() -> None:
    long = [tuple(Toleration(key=f"example.com/{i}-{n}", operator="Exists") for n in range(1_000)) for i in range(2)]
    signs = a(Signs)
    framework, state = a_framework(signs), fw.CycleState()

    seen(framework, a_pod("one", tolerations=long[0]), a_pod("two", tolerations=long[0]))
    framework.run_pre_filter(state, a_pod("three", tolerations=long[1]), Diagnosis(1))

    assert signs.log == ["one", "three"]
    assert isinstance(state.known_spec.key, bytes)
    assert len(state.known_spec.key) == 64


def test_a_pod_that_two_schedulers_see_is_signed_by_each() -> None:
    pod, signers = a_pod("one"), [a(Signs), a(Signs)]

    classes = [a_framework(signs).pod_classes.of(pod).pod_class for signs in signers]

    assert classes[0] is not classes[1]
    assert [signs.log for signs in signers] == [["one"], ["one"]]


@pytest.mark.parametrize("selector", [None, {"zone": "a"}])
def test_plugins_say_once_a_spec_whether_pods_concern_them(selector: dict[str, str] | None) -> None:
    picky = Picky()
    framework = a_framework(picky, a(Signs), table=nodes("n"))

    states: Sequence[fw.CycleState] = [fw.CycleState() for _ in range(4)]
    for number, state in enumerate(states):
        pod = a_pod(f"pod-{number}", node_selector=selector)
        framework.run_pre_filter(state, pod, Diagnosis(1))
        framework.run_score(state, pod, np.array([0]))

    skipping = [set() if selector else {"Picky"}] * 4
    assert [state.skip_filter for state in states] == skipping
    assert [state.skip_score for state in states] == skipping
    assert picky.log == ["pod-0", "pod-0"]  # before Filter and before Score
