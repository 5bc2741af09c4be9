"""Groups of groups on a real API server that has them: beside kube-scheduler, with the same feature gates."""

import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tests.chart.permissions import FOR_COMPOSITES
from tests.cluster import native_groups
from tests.cluster.loadmaster import allow_groups, grant, node_of, start
from tests.cluster.native_groups import API, COMPOSITE, COMPOSITE_APIS, CONDITION, GROUP
from tests.cluster.native_groups import COMPOSITE_GATES as GATES
from tests.controlplane import Client, ControlPlane, Settings, a_node, a_pod, condition, wait_until
from tests.controlplane.client import Object

pytestmark = native_groups.compared

SCHEDULERS: Final = ("default-scheduler", "loadmaster")

ALONE: Final = "0 scheduled, 1 remaining"
TOGETHER: Final = "1 scheduled, 0 remaining"

TREES: Final[Mapping[str, tuple[int, Mapping[str, tuple[str, str]]]]] = {
    "all fit": (2, {"pg1": ("1", ""), "pg2": ("1", "")}),
    "enough fit": (1, {"pg1": ("1", ""), "pg2": ("9", ALONE)}),
    "too few fit": (2, {"pg1": ("1", TOGETHER), "pg2": ("9", ALONE)}),
}
"""How many groups have to fit; what each of the two pods of each asks for, and how the group's condition ends."""


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane that has groups of groups."""
    settings = Settings(controller_manager=True, kwok=True).with_feature_gates(GATES, COMPOSITE_APIS)
    with ControlPlane(settings) as plane:
        yield plane


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Iterator[Client]:
    with plane.client() as client:
        client.create(a_node("node", cpu="4"))
        yield client


@pytest.fixture(scope="module", autouse=True)
def schedulers(plane: ControlPlane, admin: Client) -> Iterator[None]:
    """Both schedulers, each for the pods that name it."""
    allow_groups(plane)
    grant(plane, "loadmaster-composite", FOR_COMPOSITES, "scheduling.k8s.io")
    with (
        plane.start_kube_scheduler(further=[f"--feature-gates={GATES}"]),
        start(plane, f"--feature-gates={GATES}"),
    ):
        yield


@pytest.mark.parametrize(("minimum", "groups"), TREES.values(), ids=TREES)
def test_a_tree_of_groups_ends_as_with_kube_scheduler(
    plane: ControlPlane, admin: Client, minimum: int, groups: Mapping[str, tuple[str, str]]
) -> None:
    ends = [played(plane, admin, scheduler, minimum, groups) for scheduler in SCHEDULERS]

    assert ends[0] == ends[1]


def played(
    plane: ControlPlane, api: Client, scheduler: str, minimum: int, groups: Mapping[str, tuple[str, str]]
) -> Mapping[str, Any]:
    """Return group → its condition, and how many of its pods have a node; nothing is left in the cluster."""
    namespace = f"{scheduler}-{secrets.token_hex(3)}"
    plane.create_namespace(namespace)
    referred = {"workloadRef": {"workloadName": "w", "templateName": "t"}}
    root = {**referred, "schedulingPolicy": {"gang": {"minGroupCount": minimum}}}
    _create(api, namespace, COMPOSITE, "CompositePodGroup", "root", root)
    for name in groups:
        gang = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        spec = {**referred, "parentCompositePodGroupName": "root", **gang}
        _create(api, namespace, API, "PodGroup", name, spec)
    for name, (cpu, _) in groups.items():
        grouped: Object = {"schedulingGroup": {"podGroupName": name}}
        api.create_many(
            [a_pod(f"{name}-{number}", namespace, cpu=cpu, scheduler=scheduler, **grouped) for number in range(2)]
        )

    def said(name: str) -> tuple[str, str, str]:
        """Without what is said of preemption, which depends on how often the tree was tried."""
        found = condition(api.get(GROUP, name, namespace), CONDITION) or {"status": "", "reason": "", "message": "-"}
        return found["status"], found["reason"], found["message"].partition(", pod group preemption: ")[0]

    wait_until(
        lambda: all(
            said(name)[2].endswith(end) and bool(said(name)[2]) == bool(end) for name, (_, end) in groups.items()
        ),
        30,
        "each group has its condition",
    )
    conditions = {name: said(name) for name in groups}
    bound = [pod["metadata"]["name"] for pod in api.list("Pod", namespace) if node_of(pod)]
    api.delete_all("Pod", namespace)
    wait_until(lambda: not api.list("Pod", namespace), 30, "the pods are gone")
    return {"conditions": conditions, "bound": sorted(bound)}


def _create(api: Client, namespace: str, version: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
    api.create({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}, namespace)
