"""Groups of `scheduling.k8s.io`, in the versions that clusters serve."""

import logging
from typing import Any

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.api.groups.pod_groups import PodGroup
from scheduler.framework.events import POD_GROUP, POD_GROUP_V1BETA1
from scheduler.framework.groups.pod_groups import GroupKey
from scheduler.groups.apis.kubernetes import VERSIONS, KubernetesGroups
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_pod

MEMBER = a_pod("p")


def groups_of(resource: str, have_policies: bool = False, **spec: Any) -> KubernetesGroups:
    """The groups of a cluster that has one, in the version of `resource`."""
    objects = ObjectStore()
    objects.watch(VERSIONS)
    metadata = {"name": "g", "namespace": "default", "uid": "1"}
    objects.set(resource, msgspec.convert({"metadata": metadata, "spec": spec}, PodGroup))
    return KubernetesGroups(objects, have_policies=have_policies)


GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 3}}, "priority": 7}


@pytest.mark.parametrize("resource", [POD_GROUP, POD_GROUP_V1BETA1])
def test_a_group_is_the_same_in_either_version(resource: str) -> None:
    group = groups_of(resource, **GANG).find("default", "g", MEMBER, None)

    assert group is not None
    assert (group.minimum, group.priority, group.source) == (3, 7, resource)
    assert group.key == GroupKey("default", POD_GROUP, "g")


@pytest.mark.parametrize(
    ("resource", "mode", "together"),
    [
        (POD_GROUP, "PodGroup", True),
        (POD_GROUP, "Pod", False),
        (POD_GROUP_V1BETA1, {"all": {}}, True),
        (POD_GROUP_V1BETA1, {"single": {}}, False),
    ],
)
def test_a_group_is_disrupted_as_its_version_says(resource: str, mode: Any, together: bool) -> None:
    group = groups_of(resource, **GANG, disruptionMode=mode).find("default", "g", MEMBER, None)

    assert group is not None
    assert group.is_disrupted_together is together


def test_what_is_ignored_of_a_newer_version_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    groups = groups_of(POD_GROUP_V1BETA1, **GANG, parentCompositePodGroupName="parent", preemptionPolicy="Never")

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            groups.find("default", "g", MEMBER, None)

    (record,) = caplog.records
    assert record.__dict__["podGroup"] == "default/g"
    assert record.__dict__["fields"] == "parentCompositePodGroupName, preemptionPolicy"


@pytest.mark.parametrize(
    ("have_policies", "said", "of_pods", "may"),
    [
        (False, "Never", (None,), True),
        (False, None, (None, "Never"), False),
        (True, "Never", (None,), False),
        (True, "PreemptLowerPriority", ("Never",), True),
        (True, None, ("Never",), True),
    ],
)
def test_whether_a_group_may_preempt_is_said_by_its_pods_or_with_the_gate_by_itself(
    have_policies: bool, said: str | None, of_pods: tuple[str | None, ...], may: bool
) -> None:
    groups = groups_of(POD_GROUP_V1BETA1, have_policies, **GANG, preemptionPolicy=said)
    group = groups.find("default", "g", MEMBER, None)
    specs = [msgspec.structs.replace(MEMBER.spec, preemption_policy=policy) for policy in of_pods]

    assert group is not None
    assert group.may_preempt(fw.Pod(metadata=MEMBER.metadata, spec=spec) for spec in specs) is may


def test_a_group_that_no_version_has_is_none() -> None:
    assert groups_of(POD_GROUP, **GANG).find("default", "other", MEMBER, None) is None
