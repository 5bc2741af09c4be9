"""Owners, groups and pods that contradict themselves: one Event, at most one line in the log; all others start."""

from collections.abc import Callable
from typing import Any

import pytest

from scheduler.api.groups.workloads import JOB, JOB_SET
from tests.unit.groups.apis.test_owners import JOBS, Owned, WithRay, owned_by
from tests.unit.groups.apis.test_volcano import Volcano

MPI_JOB = "mpijobs.v2beta1.kubeflow.org"


class Stage(Owned, Volcano):
    """With the reports on groups that are refused."""

    def __init__(self) -> None:
        super().__init__(plugin=WithRay)
        self.refusals = self.engine.group_parts.refusals
        self.refusals._is_running = True

    def job_set(self, **of_second: Any) -> None:
        """A JobSet with two pods, of which the second is different."""
        self.workload(JOB_SET, "js", {"replicatedJobs": JOBS})
        labels = {"jobset.sigs.k8s.io/jobset-name": "js"}
        for number, fields in enumerate(({}, of_second)):
            owner = owned_by("Job", f"js-worker-{number}", "batch/v1")
            self.replicated(1, first=number, owner=owner, labels=labels, **fields)


def gone(stage: Stage) -> None:
    stage.replicated(1)


def unreadable(stage: Stage) -> None:
    stage.workload(JOB, "train", {"parallelism": "many"})
    stage.replicated(1)


def of_a_kind_that_is_not_watched(stage: Stage) -> None:
    stage.replicated(1, owner=owned_by("PyTorchJob", "torch", "kubeflow.org/v1"))


def two_groups(stage: Stage) -> None:
    stage.workload(JOB, "train", {"parallelism": 1})
    stage.create("g", minimum=1)
    stage.replicated(1, labels={"scheduling.x-k8s.io/pod-group": "g"})


def more_than_its_parallelism(stage: Stage) -> None:
    stage.workload(JOB, "train", {"parallelism": 2})
    said = {"loadmaster.dev/pod-group": "a", "loadmaster.dev/pod-group-min-available": "3"}
    stage.replicated(2, annotations=said)


def more_than_its_replicas(stage: Stage) -> None:
    policy = {"schedulingPolicy": {"minAvailable": 3}}
    stage.workload(MPI_JOB, "pi", {"runPolicy": policy, "mpiReplicaSpecs": {"Worker": {"replicas": 2}}})
    stage.replicated(2, owner=owned_by("MPIJob", "pi", "kubeflow.org/v2beta1"))


def jobs_of_two_schedulers(stage: Stage) -> None:
    stage.job_set(scheduler_name="other")


def jobs_of_two_priorities(stage: Stage) -> None:
    stage.job_set(priority=5)


def a_queue_that_does_not_exist(stage: Stage) -> None:
    stage.queue("default")
    stage.group(minimum=1, queue="ml")
    stage.members(1)


FEW = "cannot find enough sibling pods, current pods number: 2, minMember of group: 3"


@pytest.mark.parametrize(
    ("bad", "about", "text", "lines"),
    [
        (gone, "default/job/train", 'waiting for the workload "job/train" of the pod to appear', 0),
        (unreadable, "Job train", "its owner cannot be read: Expected `int | null`", 1),
        (of_a_kind_that_is_not_watched, "default/pytorchjob/torch", "no PyTorchJob is watched, see `workloads`", 1),
        (two_groups, "default/g", 'a pod names the groups "g" and "job/train"', 1),
        (more_than_its_parallelism, "default/a", FEW, 0),
        (more_than_its_replicas, "MPIJob pi", FEW, 0),
        (jobs_of_two_schedulers, "JobSet js", "p1 is for the scheduler 'other'", 0),
        (jobs_of_two_priorities, "JobSet js", "should have the same .spec.priority", 1),
        (a_queue_that_does_not_exist, "default/pg", 'the queue "ml" of the PodGroup does not exist', 1),
    ],
)
async def test_bad_input_is_said_once_and_costs_no_other_pod(
    bad: Callable[[Stage], None], about: str, text: str, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage()
    bad(stage)
    stage.see(["another"])
    await stage.schedule()

    for _ in range(4):
        stage.refusals.report()

    assert stage.bound.keys() == {"another"}
    (event,) = stage.under_test.world.group_events
    assert (event.of, event.type, event.reason) == (about, "Warning", "FailedScheduling")
    assert text in event.note
    assert len(caplog.records) == lines
