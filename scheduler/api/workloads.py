"""The workloads that replicate pods, as far as they say how many of these run at once."""

from collections.abc import Mapping
from typing import Any, Final

from scheduler.api.objects import Wire

GANG_ANNOTATION: Final = "loadmaster.dev/gang"
"""The annotation of pods that start together with all others of their workload."""

JOB: Final = "jobs.v1.batch"
JOB_SET: Final = "jobsets.v1alpha2.jobset.x-k8s.io"

WORKLOADS: Final = {"Job": JOB, "JobSet": JOB_SET, "StatefulSet": "apps/StatefulSet"}
"""Kind → resource."""

WORKLOAD_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    JOB: ("spec.parallelism", "spec.completions", "status.succeeded"),
    JOB_SET: ("spec.replicatedJobs", "spec.startupPolicy", "status.replicatedJobsStatus"),
    "apps/StatefulSet": ("spec.replicas", "spec.podManagementPolicy"),
}
"""Resource → the parts of its objects that are read."""


class JobSpec(Wire, frozen=True):
    parallelism: int | None = None
    completions: int | None = None


class JobStatus(Wire, frozen=True):
    succeeded: int = 0


class Job(Wire, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(Wire, frozen=True):
    spec: JobSpec = JobSpec()


class ReplicatedJob(Wire, frozen=True):
    name: str = ""
    replicas: int = 1
    template: JobTemplate = JobTemplate()
    depends_on: tuple[Any, ...] | None = None


class ReplicatedJobStatus(Wire, frozen=True):
    name: str = ""
    succeeded: int = 0


class StartupPolicy(Wire, frozen=True):
    startup_policy_order: str = ""


class JobSetSpec(Wire, frozen=True):
    replicated_jobs: tuple[ReplicatedJob, ...] | None = None
    startup_policy: StartupPolicy | None = None


class JobSetStatus(Wire, frozen=True):
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] | None = None


class JobSet(Wire, frozen=True):
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


class StatefulSetSpec(Wire, frozen=True):
    replicas: int | None = None
    pod_management_policy: str = ""


class StatefulSet(Wire, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()
