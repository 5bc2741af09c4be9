"""Groups of `scheduling.k8s.io`, in the versions that clusters serve."""

import logging
from typing import Any

import msgspec
import pytest

from scheduler.api.pod_groups import PodGroup
from scheduler.framework.events import POD_GROUP, POD_GROUP_V1BETA1
from scheduler.groups.apis.kubernetes import VERSIONS, KubernetesGroups
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_pod

MEMBER = a_pod("p")


def groups_of(resource: str, **spec: Any) -> KubernetesGroups:
    """The groups of a cluster that has one, in the version of `resource`."""
    objects = ObjectStore()
    objects.watch(VERSIONS)
    metadata = {"name": "g", "namespace": "default", "uid": "1"}
    objects.set(resource, msgspec.convert({"metadata": metadata, "spec": spec}, PodGroup))
    return KubernetesGroups(objects)


GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 3}}, "priority": 7}


@pytest.mark.parametrize("resource", [POD_GROUP, POD_GROUP_V1BETA1])
def test_a_group_is_the_same_in_either_version(resource: str) -> None:
    group = groups_of(resource, **GANG).find("default", "g", MEMBER, None)

    assert group is not None
    assert (group.minimum, group.priority, group.source) == (3, 7, resource)


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


def test_a_group_that_no_version_has_is_none() -> None:
    assert groups_of(POD_GROUP, **GANG).find("default", "other", MEMBER, None) is None
