"""Claims of a group of pods, with the feature gate DRAWorkloadResourceClaims.

Giving them back has the cases of kube-scheduler 1.37.2, TestPodGroupPostFilter in dynamicresources_test.go.
"""

import asyncio
import dataclasses
from typing import Any

import msgspec
import pytest

from plugins.dynamic_resources.claim_writer import DEALLOCATED, UNRESERVED
from plugins.dynamic_resources.gates import OF_GROUPS
from plugins.dynamic_resources.plugin import NOTHING_TO_DEALLOCATE, RELEASED, DynamicResources
from scheduler import framework as fw
from scheduler.api.devices import ResourceClaim
from scheduler.api.objects import OwnerReference, PodResourceClaim
from scheduler.framework.cycle_state import GroupCycleState
from scheduler.framework.groups.pod_groups import NO_MEMBERS, GroupMembers, PodGroups
from scheduler.state.objects import ObjectStore
from scheduler.testing import pod_from_dict, started
from tests.fakes import settle
from tests.unit.plugins.devices import Attempt, a_claim, a_device, a_slice, a_world, allocated

GPUS = a_slice("n1", a_device("d0"), a_device("d1"))
SHARED = PodResourceClaim(name="shared", resource_claim_name="ours")
FROM_TEMPLATE = PodResourceClaim(name="made", resource_claim_template_name="template")
OF_THE_GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "job", "uid": "uid-of-job"}


class Groups(PodGroups):
    """One group, which has two claims; `placed` of its pods have nodes."""

    def __init__(self, placed: int = 0, *, has_constraints: bool = False, minimum_groups: int = 0) -> None:
        self.placed = placed
        self.group = fw.PodGroup(
            "default",
            "job",
            "uid-of-job",
            fw.POD_GROUP,
            claims=(SHARED, FROM_TEMPLATE),
            has_constraints=has_constraints,
            minimum_groups=minimum_groups,
        )

    def key_of(self, pod: fw.Pod) -> fw.GroupKey:
        return self.group.key

    def of(self, pod: fw.Pod) -> fw.PodGroup:
        return self.group

    def members(self, pod: fw.Pod) -> GroupMembers:
        class Members(type(NO_MEMBERS)):  # type: ignore[misc]
            scheduled_count = self.placed

        return Members()


def member(name: str, *claims: PodResourceClaim, made: str = "") -> fw.Pod:
    """A pod of the group; `made`: the claim that there is for its template."""
    written: list[dict[str, Any]] = [
        {
            "name": each.name,
            "resourceClaimName": each.resource_claim_name,
            "resourceClaimTemplateName": each.resource_claim_template_name,
        }
        for each in claims
    ]
    status = {"resourceClaimStatuses": [{"name": "made", "resourceClaimName": made}]} if made else {}
    spec = {"containers": [], "schedulingGroup": {"podGroupName": "job"}, "resourceClaims": written}
    return pod_from_dict(
        {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec, "status": status}
    )


def a_plugin(
    *objects: Any, groups: Groups | None = None, gates: frozenset[str] = frozenset({OF_GROUPS})
) -> tuple[DynamicResources, ObjectStore]:
    handle, store, _ = a_world(*objects)
    handle = dataclasses.replace(handle, pod_groups=groups or Groups(), feature_gates=gates)
    return started(DynamicResources(), handle), store


def consumers(store: ObjectStore, name: str = "ours") -> list[tuple[str, str]]:
    claim: Any = store.get(fw.RESOURCE_CLAIM, name, "default")
    return [(each.resource, each.name) for each in claim.status.reserved_for or ()]


def owned(name: str, owner: OwnerReference) -> ResourceClaim:
    claim = a_claim(name)
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, owner_references=(owner,)))


async def test_a_claim_of_the_group_is_reserved_for_the_group_once() -> None:
    plugin, store = a_plugin(GPUS, a_claim("ours"), a_claim("own"))
    own = PodResourceClaim(name="own", resource_claim_name="own")
    attempts = []
    for name in ("p1", "p2"):
        attempts.append(attempt := Attempt(plugin, member(name, SHARED, own), with_its_group=True))
        attempt.filter("n1")
        attempt.reserve("n1")

    await asyncio.gather(*(each.pre_bind("n1") for each in attempts))

    assert consumers(store) == [("podgroups", "job")]
    assert consumers(store, "own") == [("pods", "p1"), ("pods", "p2")]
    later = Attempt(plugin, member("p3", SHARED))
    await later.pre_bind("n1")
    later.unreserve("n1")
    await settle()
    assert consumers(store) == [("podgroups", "job")]


@pytest.mark.parametrize(
    "written",
    [
        PodResourceClaim(name="other", resource_claim_name="ours"),
        PodResourceClaim(name="shared", resource_claim_template_name="ours"),
    ],
)
async def test_a_claim_that_the_group_names_otherwise_is_the_pods(written: PodResourceClaim) -> None:
    owner = OwnerReference(api_version="v1", kind="Pod", name="p1", uid="p1", controller=True)
    plugin, store = a_plugin(GPUS, owned("ours", owner))
    pod = member("p1", written)
    if written.resource_claim_template_name:
        status = msgspec.structs.replace(pod.status, resource_claim_statuses=(pod_status("shared", "ours"),))
        pod = msgspec.structs.replace(pod, status=status)
    attempt = Attempt(plugin, pod)
    attempt.filter("n1")
    attempt.reserve("n1")

    await attempt.pre_bind("n1")

    assert consumers(store) == [("pods", "p1")]


def pod_status(name: str, claim: str) -> Any:
    found = member("p", made=claim).status.resource_claim_statuses
    assert found is not None
    return msgspec.structs.replace(found[0], name=name)


@pytest.mark.parametrize(
    ("api_version", "kind", "name", "gates", "problem"),
    [
        ("scheduling.k8s.io/v1beta1", "PodGroup", "job", {OF_GROUPS}, ""),
        ("scheduling.k8s.io/v1beta1", "PodGroup", "job", set(), "Pod is not owner"),
        ("scheduling.k8s.io/v1beta1", "PodGroup", "no", {OF_GROUPS}, "neither Pod nor PodGroup job is the owner"),
        ("scheduling.x-k8s.io/v1", "PodGroup", "job", {OF_GROUPS}, "neither Pod nor PodGroup job is the owner"),
        ("scheduling.k8s.io/v1beta1", "Workload", "job", {OF_GROUPS}, "neither Pod nor PodGroup job is the owner"),
    ],
)
def test_a_claim_from_a_template_may_be_owned_by_the_group(
    api_version: str, kind: str, name: str, gates: set[str], problem: str
) -> None:
    owner = OwnerReference(api_version=api_version, kind=kind, name=name, uid="some", controller=True)
    plugin, _ = a_plugin(owned("made-1", owner), gates=frozenset(gates))

    found = plugin.pre_enqueue(member("p1", FROM_TEMPLATE, made="made-1"))

    text = f"ResourceClaim default/made-1 was not created for Pod default/p1 ({problem})"
    assert found == (fw.unresolvable(text) if problem else None)


@pytest.mark.parametrize(
    ("reserved", "is_there", "groups", "gates", "said", "left"),
    [
        pytest.param(["pod"], False, Groups(), {OF_GROUPS}, RELEASED, (False, []), id="only the pod's"),
        pytest.param(["group"], False, Groups(), {OF_GROUPS}, DEALLOCATED, (False, []), id="only the group's"),
        pytest.param(["group"], True, Groups(), {OF_GROUPS}, UNRESERVED, (True, []), id="usable"),
        pytest.param(["group", "x"], False, Groups(), {OF_GROUPS}, UNRESERVED, (True, ["x"]), id="others use it, too"),
        pytest.param(["group"], False, Groups(1), {OF_GROUPS}, RELEASED, (True, ["group"]), id="a pod has a node"),
        pytest.param(["group"], False, Groups(), set(), RELEASED, (True, ["group"]), id="gate is off"),
        pytest.param(
            ["group"],
            False,
            Groups(has_constraints=True),
            {OF_GROUPS},
            NOTHING_TO_DEALLOCATE,
            (True, ["group"]),
            id="topology",
        ),
        pytest.param(
            ["group"],
            False,
            Groups(minimum_groups=1),
            {OF_GROUPS},
            NOTHING_TO_DEALLOCATE,
            (True, ["group"]),
            id="a group of groups",
        ),
    ],
)
async def test_a_group_that_does_not_fit_gives_back_one_claim(
    reserved: list[str],
    is_there: bool,
    groups: Groups,
    gates: set[str],
    said: fw.Status,
    left: tuple[bool, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Groups, "are_tried_in_placements", True)
    references = {"pod": {"resource": "pods", "name": "p1", "uid": "p1"}, "group": OF_THE_GROUP}
    status = allocated("n1/d0", node="n1" if is_there else "elsewhere")
    status["reservedFor"] = [references.get(each, {"resource": "pods", "name": each, "uid": each}) for each in reserved]
    plugin, store = a_plugin(GPUS, a_claim("ours", status=status), groups=groups, gates=frozenset(gates))
    members = [Attempt(plugin, member("p1", SHARED), with_its_group=True)]
    for each in members:
        each.filter("n1")

    found = plugin.release_for_pod_group(groups.group, [(each.state, each.pod) for each in members])
    await settle()

    claim: Any = store.get(fw.RESOURCE_CLAIM, "ours", "default")
    names = {"job": "group", "p1": "pod"}
    assert found == said
    assert (claim.status.allocation is not None, [names.get(name, name) for _, name in consumers(store)]) == left


def test_a_group_of_which_no_pod_was_looked_at_gives_back_nothing() -> None:
    plugin, _ = a_plugin()

    assert plugin.release_for_pod_group(Groups().group, [(GroupCycleState(), member("p1"))]) == RELEASED
