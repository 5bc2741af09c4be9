"""Workloads whose pods start together: how many they are is read from the workload."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from plugins.contrib.coscheduling.plugin import Coscheduling
from scheduler import framework as fw
from scheduler.api.groups.workloads import JOB, JOB_SET, RAY_CLUSTER, WatchedKind
from scheduler.api.objects import OwnerReference
from scheduler.explain.explainer import Explainer
from scheduler.framework.nodes.resources import STATEFUL_SET
from scheduler.testing import a_pod
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.coscheduling import Coscheduled

GANG = {"loadmaster.dev/gang": "owner"}
JOB_OWNER = OwnerReference(api_version="batch/v1", kind="Job", name="train", uid="u-job", controller=True)


@dataclass
class WithRay(Coscheduling):
    """Knows more kinds by default."""

    workloads: Sequence[WatchedKind] = ("Job", "JobSet", "RayCluster", "MPIJob")


class Owned(Coscheduled):
    """With workloads, and pods that they replicate."""

    def workload(self, resource: str, name: str, spec: dict[str, Any], made_by: str = "", **status: Any) -> None:
        """Let the watch show a workload, or its new version; `made_by`: kind/name of its owner."""
        kind, _, maker = made_by.partition("/")
        owner = {"apiVersion": "v1", "kind": kind, "name": maker, "uid": "u", "controller": True}
        metadata = {"name": name, "namespace": "default", "ownerReferences": [owner] if made_by else []}
        self.show_written(resource, metadata, spec=spec, status=status)

    def replicated(
        self, count: int, first: int = 0, owner: OwnerReference = JOB_OWNER, prefix: str = "p", **fields: Any
    ) -> list[fw.Pod]:
        """Let the watch show pods of an owner."""
        fields = {"annotations": GANG, "requests": {"cpu": "1"}, "scheduler_name": PROFILE, **fields}
        made = [a_pod(f"{prefix}{number}", **fields) for number in range(first, first + count)]
        made = [newer(pod, owner_references=(owner,)) for pod in made]
        self.under_test.see(*made)
        return made

    def group_of(self, pod: fw.Pod) -> fw.PodGroup:
        group = self.under_test.framework.handle.pod_groups.of(pod)
        assert group is not None
        return group


def owned_by(kind: str, name: str, api_version: str = "apps/v1") -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=f"u-{name}", controller=True)


async def test_a_job_starts_when_all_its_pods_are_there() -> None:
    stage = Owned()
    stage.workload(JOB, "train", {"parallelism": 3, "completions": 3})

    (first, _) = stage.replicated(2)
    await stage.schedule()
    assert (stage.bound, "minMember of group: 3" in stage.refusal(first)) == ({}, True)

    stage.replicated(1, first=2)
    await stage.schedule()
    assert stage.bound.keys() == {"p0", "p1", "p2"}


async def test_pods_wait_for_a_workload_that_was_not_seen_yet() -> None:
    stage = Owned()
    (pod,) = stage.replicated(1)
    await stage.schedule()
    assert stage.refusal(pod) == 'waiting for the workload "job/train" of the pod to appear'

    stage.workload(JOB, "train", {})
    await stage.schedule()

    assert stage.bound.keys() == {"p0"}


async def test_a_smaller_job_needs_fewer_pods() -> None:
    stage = Owned()
    stage.workload(JOB, "train", {"parallelism": 5})
    stage.replicated(3)
    await stage.schedule()
    assert stage.bound == {}

    stage.workload(JOB, "train", {"parallelism": 3})
    await stage.schedule()

    assert len(stage.bound) == 3


@pytest.mark.parametrize(
    ("spec", "succeeded", "needed"),
    [
        ({}, 0, 1),
        ({"parallelism": 4}, 0, 4),
        ({"parallelism": 4, "completions": 2}, 0, 2),
        ({"parallelism": 4, "completions": 10}, 8, 2),
        ({"parallelism": 4, "completions": 10}, 3, 4),
        ({"parallelism": 0, "completions": 10}, 0, 0),
    ],
)
def test_a_job_needs_what_runs_at_once(spec: dict[str, Any], succeeded: int, needed: int) -> None:
    stage = Owned()
    stage.workload(JOB, "train", spec, succeeded=succeeded)
    (pod,) = stage.replicated(1)

    assert stage.group_of(pod).minimum == needed


@pytest.mark.parametrize(
    ("failed", "needed"), [("", 4), ("7", 3), ("0,3-5", 0), ("1-2,9", 1), ("x,1", 3), ("9" * 5000, 4)]
)
def test_the_indexes_of_a_job_that_failed_for_good_are_not_waited_for(failed: str, needed: int) -> None:
    stage = Owned()
    stage.workload(JOB, "train", {"parallelism": 4, "completions": 6}, succeeded=2, failedIndexes=failed)
    (pod,) = stage.replicated(1)

    assert stage.group_of(pod).minimum == needed


@pytest.mark.parametrize(
    ("resource", "spec", "owner"),
    [
        (JOB, {"parallelism": 3, "completions": 3}, JOB_OWNER),
        (
            JOB_SET,
            {"replicatedJobs": [{"name": "w", "template": {"spec": {"parallelism": 3, "completions": 3}}}]},
            OwnerReference(api_version="batch/v1", kind="Job", name="train-w-0", uid="u-w", controller=True),
        ),
        (
            "mpijobs.v2beta1.kubeflow.org",
            {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}},
            OwnerReference(api_version="kubeflow.org/v2beta1", kind="MPIJob", name="train", uid="u-m", controller=True),
        ),
    ],
    ids=["Job", "JobSet", "MPIJob"],
)
async def test_a_pod_is_replaced_though_others_of_its_workload_have_succeeded(
    resource: str, spec: dict[str, Any], owner: OwnerReference
) -> None:
    stage = Owned(plugin=WithRay)
    stage.workload(resource, "train", spec)
    labels = {"jobset.sigs.k8s.io/jobset-name": "train"} if resource == JOB_SET else {}
    pods = stage.replicated(3, owner=owner, labels=labels)
    await stage.schedule()
    assert len(stage.bound) == 3

    for pod, phase in zip(pods, ("Succeeded", "Succeeded", "Failed"), strict=True):
        stage.engine.handlers.pod_deleted(newer(pod.bound_to("n0"), phase=phase))
    if resource == JOB:
        stage.workload(resource, "train", spec, succeeded=2)
    stage.replicated(1, first=3, owner=owner, labels=labels)
    await stage.schedule()

    assert "p3" in stage.bound


JOBS = [
    {"name": "driver", "template": {"spec": {}}},
    {"name": "worker", "replicas": 2, "template": {"spec": {"parallelism": 4, "completions": 4}}},
]


@pytest.mark.parametrize(
    ("annotation", "status", "name", "needed"),
    [
        ("owner", [], "jobset/js", 9),
        ("owner", [{"name": "worker", "succeeded": 1}], "jobset/js", 5),
        ("replicated-job", [], "jobset/js/worker", 8),
    ],
)
def test_a_job_set_needs_all_its_jobs_or_one_of_them(annotation: str, status: Any, name: str, needed: int) -> None:
    stage = Owned()
    stage.workload(JOB_SET, "js", {"replicatedJobs": JOBS}, replicatedJobsStatus=status)
    labels = {"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/replicatedjob-name": "worker"}
    owner = owned_by("Job", "js-worker-0", "batch/v1")
    (pod,) = stage.replicated(1, owner=owner, labels=labels, annotations={"loadmaster.dev/gang": annotation})

    group = stage.group_of(pod)

    assert (group.name, group.minimum) == (name, needed)


async def test_each_group_of_a_leader_worker_set_starts_as_a_whole() -> None:
    stage = Owned(nodes=2)
    for index, owner in (("0", "lws"), ("1", "lws-1")):
        labels = {"leaderworkerset.sigs.k8s.io/name": "lws", "leaderworkerset.sigs.k8s.io/group-index": index}
        annotations = {**GANG, "leaderworkerset.sigs.k8s.io/size": "3"}
        owned = owned_by("StatefulSet", owner)
        stage.replicated(3, owner=owned, prefix=f"g{index}-", labels=labels, annotations=annotations)

    await stage.schedule()

    assert {name[:2] for name in stage.bound} in ({"g0"}, {"g1"})
    assert len(stage.bound) == 3


async def test_a_parallel_stateful_set_starts_as_a_whole() -> None:
    stage = Owned()
    stage.workload(STATEFUL_SET, "db", {"replicas": 2, "podManagementPolicy": "Parallel"})
    stage.replicated(1, owner=owned_by("StatefulSet", "db"))
    await stage.schedule()
    assert stage.bound == {}

    stage.replicated(1, first=1, owner=owned_by("StatefulSet", "db"))
    await stage.schedule()

    assert len(stage.bound) == 2


@pytest.mark.parametrize(
    ("kind", "resource", "spec", "annotation", "problem"),
    [
        ("StatefulSet", STATEFUL_SET, {"replicas": 2}, "owner", "podManagementPolicy must be Parallel"),
        ("Job", JOB, {"parallelism": "many"}, "owner", "its owner cannot be read: Expected `int | null`"),
        ("Job", JOB, {}, "replicated-job", "is for pods of JobSets, this one is of a Job"),
        ("Job", JOB, {}, "all", 'is "all", not "owner" or "replicated-job"'),
        ("ReplicaSet", None, {}, "owner", "this one is of a ReplicaSet: name its"),
        (
            "JobSet",
            JOB_SET,
            {"replicatedJobs": JOBS, "startupPolicy": {"startupPolicyOrder": "InOrder"}},
            "owner",
            "one after",
        ),
    ],
)
def test_what_cannot_start_together_says_why(
    kind: str, resource: str | None, spec: dict[str, Any], annotation: str, problem: str
) -> None:
    stage = Owned()
    if resource is not None:
        stage.workload(resource, "w", spec)
    owner = owned_by("Job" if kind == "JobSet" else kind, "w")
    labels = {"jobset.sigs.k8s.io/jobset-name": "w"} if kind == "JobSet" else {}
    (pod,) = stage.replicated(1, owner=owner, labels=labels, annotations={"loadmaster.dev/gang": annotation})

    assert problem in stage.refusal(pod)


async def test_what_a_group_waits_for_is_said_at_its_owner() -> None:
    stage = Owned(nodes=1)
    stage.workload(JOB, "train", {"parallelism": 3})
    (pod, *_) = stage.replicated(3)

    group = stage.group_of(pod)

    assert group.owner == ("batch/v1", "Job", "train", "u-train")


@pytest.mark.parametrize("name", ["jobset/js", "js", "js-worker-0"])
async def test_a_gang_is_found_by_the_name_of_its_workload(name: str) -> None:
    stage = Owned(nodes=1)
    stage.workload(JOB_SET, "js", {"replicatedJobs": JOBS})
    labels = {"jobset.sigs.k8s.io/jobset-name": "js"}
    stage.replicated(1, owner=owned_by("Job", "js-worker-0", "batch/v1"), labels=labels)

    report = await Explainer(stage.engine, stage.under_test.clock).about_group("default", name)

    assert (report.name, report.state) == ("jobset/js", "incomplete")


async def test_a_gang_is_found_by_the_name_of_what_made_its_workload() -> None:
    stage = Owned(plugin=WithRay)
    stage.workload(RAY_CLUSTER, "tune-x7k2p", {"workerGroupSpecs": [{"replicas": 2}]}, made_by="RayJob/tune")
    stage.replicated(2, owner=owned_by("RayCluster", "tune-x7k2p", "ray.io/v1"))

    report = await Explainer(stage.engine, stage.under_test.clock).about_group("default", "tune")

    assert (report.name, report.needed) == ("raycluster/tune-x7k2p", 3)


async def test_the_launcher_of_an_mpi_job_starts_with_its_workers() -> None:
    stage = Owned(plugin=WithRay)
    roles = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}}
    stage.workload("mpijobs.v2beta1.kubeflow.org", "pi", {"mpiReplicaSpecs": roles})
    labels = {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "pi"}
    stage.replicated(2, owner=owned_by("MPIJob", "pi"), labels=labels)
    await stage.schedule()
    assert stage.bound == {}

    stage.replicated(1, prefix="launcher", owner=owned_by("Job", "pi-launcher", "batch/v1"), labels=labels)
    await stage.schedule()

    assert len(stage.bound) == 3
