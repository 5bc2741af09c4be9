"""Gangs without a word in the template of their pods: by a label of the namespace, or by an argument of the profile."""

from dataclasses import dataclass
from typing import Any

import pytest

from plugins.contrib.coscheduling.plugin import Coscheduling, GangArguments
from scheduler import framework as fw
from scheduler.api.groups.workloads import JOB, JOB_SET
from scheduler.framework.nodes.resources import STATEFUL_SET
from tests.unit.groups.apis.test_owners import JOBS, Owned, owned_by

IN_ORDER = {"replicatedJobs": JOBS, "startupPolicy": {"startupPolicyOrder": "InOrder"}}
OF_JOB_SET = {"jobset.sigs.k8s.io/jobset-name": "w", "jobset.sigs.k8s.io/replicatedjob-name": "driver"}


OF_JOBS = GangArguments(("Job", "JobSet"))


@dataclass
class GangsOfJobs(Coscheduling):
    """With another argument."""

    gangs: GangArguments = OF_JOBS


class Labelled(Owned):
    """With a namespace."""

    def label(self, gang: str = "") -> None:
        """Let the watch show the namespace of all pods, with this label or without any."""
        self.show_written(fw.NAMESPACE, {"name": "default", "labels": {"loadmaster.dev/gang": gang} if gang else {}})

    def group_name(self, pod: fw.Pod) -> str:
        return self.under_test.framework.handle.pod_groups.name_of(pod)


async def test_all_jobs_of_a_labelled_namespace_start_as_a_whole() -> None:
    stage = Labelled()
    stage.label("owner")
    stage.workload(JOB, "train", {"parallelism": 3})
    stage.replicated(2, annotations={})
    await stage.schedule()
    assert stage.bound == {}

    stage.replicated(1, first=2, annotations={})
    await stage.schedule()

    assert len(stage.bound) == 3


async def test_pods_that_wait_become_a_gang_and_stop_being_one_as_the_label_says() -> None:
    stage = Labelled(nodes=0)
    stage.workload(JOB, "train", {"parallelism": 3})
    (pod,) = stage.replicated(1, annotations={})
    assert stage.group_name(pod) == ""

    stage.label("owner")
    assert "minMember of group: 3" in stage.refusal(pod)
    stage.check()

    stage.label("none")
    assert stage.group_name(pod) == ""


async def test_all_workloads_of_a_kind_are_gangs_where_the_profile_says_so() -> None:
    stage = Labelled(plugin=GangsOfJobs)
    stage.workload(JOB, "train", {"parallelism": 2})
    (pod,) = stage.replicated(1, annotations={})
    (other,) = stage.replicated(1, prefix="s", owner=owned_by("StatefulSet", "db"), annotations={})

    assert (stage.group_name(pod), stage.group_name(other)) == ("job/train", "")

    stage.label("none")
    assert stage.group_name(pod) == ""


def test_a_template_may_leave_the_gangs_of_its_namespace() -> None:
    stage = Labelled()
    stage.label("owner")
    stage.workload(JOB, "train", {"parallelism": 2})
    (pod,) = stage.replicated(1, annotations={"loadmaster.dev/gang": "none"})

    assert stage.group_name(pod) == ""


@pytest.mark.parametrize(
    ("label", "kind", "resource", "spec", "name", "minimum"),
    [
        ("owner", "StatefulSet", STATEFUL_SET, {"replicas": 2}, "statefulset/w", 1),
        ("owner", "JobSet", JOB_SET, IN_ORDER, "jobset/w", 1),
        ("replicated-job", "JobSet", JOB_SET, IN_ORDER, "jobset/w/driver", 1),
        ("replicated-job", "Job", JOB, {"parallelism": 2}, "job/w", 2),
    ],
)
def test_a_workload_that_did_not_ask_is_never_refused(
    label: str, kind: str, resource: str, spec: dict[str, Any], name: str, minimum: int
) -> None:
    stage = Labelled()
    stage.label(label)
    stage.workload(resource, "w", spec)
    labels = OF_JOB_SET if kind == "JobSet" else {}
    (pod,) = stage.replicated(1, owner=owned_by("Job" if labels else kind, "w"), labels=labels, annotations={})

    group = stage.group_of(pod)

    assert (group.name, group.minimum, group.problem) == (name, minimum, "")


@pytest.mark.parametrize("kind", ["ReplicaSet", "RayCluster"])
def test_pods_of_other_workloads_in_a_labelled_namespace_have_no_group(kind: str) -> None:
    stage = Labelled()
    stage.label("owner")
    (pod,) = stage.replicated(1, owner=owned_by(kind, "w"), annotations={})

    assert stage.group_name(pod) == ""


def test_the_kinds_of_a_profile_are_watched() -> None:
    plugin = Coscheduling(gangs=GangArguments(("RayCluster", "LeaderWorkerSet", "Job")))

    assert {JOB, "rayclusters.v1.ray.io"} <= set(plugin.reads)
    assert "mpijobs.v2beta1.kubeflow.org" not in plugin.reads
