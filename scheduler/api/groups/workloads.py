"""The kinds of workloads whose pods may start together, and how many of these run at once: one table.

    Job, StatefulSet                 Kubernetes
    JobSet, LeaderWorkerSet          its own projects; a TrainJob of Kubeflow makes a JobSet
    MPIJob, PyTorchJob, …            Kubeflow
    RayCluster                       KubeRay; a RayJob makes one

Only a few numbers of each object are read. A SparkApplication is not here: its driver creates the executors while it
runs.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from scheduler.api.objects import Wire

GANG_ANNOTATION: Final = "loadmaster.dev/gang"
"""The annotation of pods that start together with all others of their workload; namespaces have it as a label."""

REPLICATED_JOB: Final = "replicated-job"
"""Its value for pods that start together with those of their replicated job only."""

WatchedKind: TypeAlias = Literal[
    "Job",
    "JobSet",
    "StatefulSet",
    "MPIJob",
    "PyTorchJob",
    "TFJob",
    "XGBoostJob",
    "PaddleJob",
    "JAXJob",
    "RayCluster",
]
"""The kinds whose objects say how many pods they have."""

GangKind: TypeAlias = Literal[WatchedKind, "LeaderWorkerSet"]
"""The kinds that can be gangs: the pods of a LeaderWorkerSet say themselves how many they are."""

JOB: Final = "jobs.v1.batch"
JOB_SET: Final = "jobsets.v1alpha2.jobset.x-k8s.io"
RAY_CLUSTER: Final = "rayclusters.v1.ray.io"

LEADER_WORKER_SET: Final = "LeaderWorkerSet"


class Size(NamedTuple):
    """The number of pods of a workload that start together, or why they cannot."""

    minimum: int
    problem: str = ""


class WorkloadKind(NamedTuple):
    """A kind of workload whose objects are read."""

    api_version: str
    resource: str
    parts: Sequence[str]
    """The parts of its objects that are read."""

    struct: type[Any]
    size_of: Callable[[Any, str], Size]
    """Object and part of it → its size."""


class JobSpec(Wire, frozen=True):
    parallelism: int | None = None
    completions: int | None = None

    @property
    def at_once(self) -> int:
        """How many pods run at once."""
        return self.left(0)

    def left(self, ended: int) -> int:
        """Return how many pods run at once when so many completions are done with."""
        parallelism = 1 if self.parallelism is None else max(0, self.parallelism)
        return parallelism if self.completions is None else min(parallelism, max(0, self.completions - ended))


class JobStatus(Wire, frozen=True):
    succeeded: int = 0
    failed_indexes: str = ""
    """Those that are not tried again, such as `1,3-5`."""

    @property
    def ended(self) -> int:
        """How many completions need no pod any more."""
        ranges = (each.groups() for each in _RANGE.finditer(self.failed_indexes))
        return self.succeeded + sum(int(last or first) - int(first) + 1 for first, last in ranges)


_RANGE: Final = re.compile(r"(?<![^,])(\d{1,10})(?:-(\d{1,10}))?(?![^,])", re.ASCII)


class Job(Wire, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


def _size_of_job(job: Job, _: str) -> Size:
    return Size(job.spec.left(job.status.ended))


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


def _size_of_job_set(job_set: JobSet, part: str) -> Size:
    """Return that of all its jobs which have not succeeded, or of one of its replicated jobs."""
    jobs = [each for each in job_set.spec.replicated_jobs or () if part in ("", each.name)]
    policy = job_set.spec.startup_policy
    in_order = policy is not None and policy.startup_policy_order == "InOrder"
    if not part and len(jobs) > 1 and (in_order or any(each.depends_on for each in jobs)):
        return Size(
            0,
            "the replicated jobs of its JobSet start one after the other (startupPolicy InOrder or dependsOn), so they "
            f"cannot start together: {GANG_ANNOTATION}: {REPLICATED_JOB} starts each of them as a whole",
        )
    succeeded = {each.name: each.succeeded for each in job_set.status.replicated_jobs_status or ()}
    return Size(sum(max(0, each.replicas - succeeded.get(each.name, 0)) * each.template.spec.at_once for each in jobs))


class StatefulSetSpec(Wire, frozen=True):
    replicas: int | None = None
    pod_management_policy: str = ""


class StatefulSet(Wire, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()


def _size_of_stateful_set(stateful_set: StatefulSet, _: str) -> Size:
    spec = stateful_set.spec
    replicas = 1 if spec.replicas is None else max(0, spec.replicas)
    if replicas > 1 and spec.pod_management_policy != "Parallel":
        return Size(
            0,
            "its StatefulSet creates one pod after the other, so they cannot start together: podManagementPolicy must "
            "be Parallel",
        )
    return Size(replicas)


class Replicas(Wire, frozen=True):
    replicas: int | None = None


class SchedulingPolicy(Wire, frozen=True):
    min_available: int | None = None


class RunPolicy(Wire, frozen=True):
    scheduling_policy: SchedulingPolicy | None = None


class ElasticPolicy(Wire, frozen=True):
    min_replicas: int | None = None


class KubeflowSpec(Wire, frozen=True):
    """Each kind has the replicas of its roles in a field of its own."""

    mpi_replica_specs: Mapping[str, Replicas] | None = None
    pytorch_replica_specs: Mapping[str, Replicas] | None = None
    tf_replica_specs: Mapping[str, Replicas] | None = None
    xgb_replica_specs: Mapping[str, Replicas] | None = None
    paddle_replica_specs: Mapping[str, Replicas] | None = None
    jax_replica_specs: Mapping[str, Replicas] | None = None
    run_policy: RunPolicy | None = None
    elastic_policy: ElasticPolicy | None = None
    launcher_creation_policy: str = ""

    @property
    def replicas(self) -> Mapping[str, int]:
        """Role → number of pods. Without a number, the operator makes one pod, but no worker of an MPIJob."""
        several = (self.pytorch_replica_specs, self.tf_replica_specs, self.xgb_replica_specs, self.paddle_replica_specs)
        roles = next((each for each in (*several, self.jax_replica_specs) if each is not None), None)
        default = {} if roles is not None else {"Worker": 0}
        found = (self.mpi_replica_specs or {}) if roles is None else roles
        return {
            role: max(0, default.get(role, 1) if each.replicas is None else each.replicas)
            for role, each in found.items()
        }


class KubeflowJob(Wire, frozen=True):
    spec: KubeflowSpec = KubeflowSpec()


def _size_of_kubeflow_job(job: KubeflowJob, _: str) -> Size:
    """Return its `minAvailable`, or all pods that are there at once: a launcher may come after its workers."""
    spec, replicas = job.spec, dict(job.spec.replicas)
    policy = None if spec.run_policy is None else spec.run_policy.scheduling_policy
    if policy is not None and policy.min_available is not None:
        return Size(max(0, policy.min_available))
    if spec.launcher_creation_policy == "WaitForWorkersReady":
        replicas.pop("Launcher", None)
    if spec.elastic_policy is not None and spec.elastic_policy.min_replicas is not None:
        replicas["Worker"] = max(0, spec.elastic_policy.min_replicas)
    return Size(sum(replicas.values()))


class WorkerGroup(Wire, frozen=True):
    replicas: int | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    num_of_hosts: int = 1
    suspend: bool | None = None

    def at_once(self, *, is_scaled: bool) -> int:
        """Return how many pods there are at once; `is_scaled`: by an autoscaler, which begins with the fewest."""
        least, most = self.min_replicas or 0, 2**31 - 1 if self.max_replicas is None else self.max_replicas
        wanted = least if is_scaled or self.replicas is None else min(max(self.replicas, least), most)
        return 0 if self.suspend else max(0, wanted) * max(1, self.num_of_hosts)


class RayClusterSpec(Wire, frozen=True):
    worker_group_specs: tuple[WorkerGroup, ...] | None = None
    enable_in_tree_autoscaling: bool | None = None


class RayCluster(Wire, frozen=True):
    spec: RayClusterSpec = RayClusterSpec()


def _size_of_ray_cluster(cluster: RayCluster, _: str) -> Size:
    """Return its head and its workers. Rule: batchscheduler/volcano/volcano_scheduler.go of KubeRay v1.5.0."""
    groups, is_scaled = cluster.spec.worker_group_specs or (), bool(cluster.spec.enable_in_tree_autoscaling)
    return Size(1 + sum(each.at_once(is_scaled=is_scaled) for each in groups))


_RUN_POLICY: Final = ("spec.runPolicy.schedulingPolicy.minAvailable", "spec.elasticPolicy.minReplicas")


def _of_kubeflow(
    plural: str, field: str, *roles: str, version: str = "v1", further: Sequence[str] = ()
) -> WorkloadKind:
    numbers = [f"spec.{field}.{role}.replicas" for role in roles]
    parts = (*numbers, *_RUN_POLICY, *further)
    resource = f"{plural}.{version}.kubeflow.org"
    return WorkloadKind(f"kubeflow.org/{version}", resource, parts, KubeflowJob, _size_of_kubeflow_job)


WORKLOADS: Final[Mapping[str, WorkloadKind]] = {
    "Job": WorkloadKind(
        "batch/v1",
        JOB,
        ("spec.parallelism", "spec.completions", "status.succeeded", "status.failedIndexes"),
        Job,
        _size_of_job,
    ),
    "JobSet": WorkloadKind(
        "jobset.x-k8s.io/v1alpha2",
        JOB_SET,
        (
            *(f"spec.replicatedJobs.{each}" for each in ("name", "replicas", "dependsOn")),
            *(f"spec.replicatedJobs.template.spec.{each}" for each in ("parallelism", "completions")),
            "spec.startupPolicy",
            "status.replicatedJobsStatus",
        ),
        JobSet,
        _size_of_job_set,
    ),
    "StatefulSet": WorkloadKind(
        "apps/v1",
        "apps/StatefulSet",
        ("spec.replicas", "spec.podManagementPolicy"),
        StatefulSet,
        _size_of_stateful_set,
    ),
    "MPIJob": _of_kubeflow(
        "mpijobs",
        "mpiReplicaSpecs",
        "Launcher",
        "Worker",
        version="v2beta1",
        further=("spec.launcherCreationPolicy",),
    ),
    "PyTorchJob": _of_kubeflow("pytorchjobs", "pytorchReplicaSpecs", "Master", "Worker"),
    "TFJob": _of_kubeflow("tfjobs", "tfReplicaSpecs", "PS", "Chief", "Master", "Worker", "Evaluator"),
    "XGBoostJob": _of_kubeflow("xgboostjobs", "xgbReplicaSpecs", "Master", "Worker"),
    "PaddleJob": _of_kubeflow("paddlejobs", "paddleReplicaSpecs", "Master", "Worker"),
    "JAXJob": _of_kubeflow("jaxjobs", "jaxReplicaSpecs", "Worker"),
    "RayCluster": WorkloadKind(
        "ray.io/v1",
        RAY_CLUSTER,
        (
            *(
                f"spec.workerGroupSpecs.{each}"
                for each in ("replicas", "minReplicas", "maxReplicas", "numOfHosts", "suspend")
            ),
            "spec.enableInTreeAutoscaling",
        ),
        RayCluster,
        _size_of_ray_cluster,
    ),
}
"""Kind → the fields that are read. Of a LeaderWorkerSet none are: its pods say how many they are."""

KIND_OF: Final = {each.resource: kind for kind, each in WORKLOADS.items()}
"""Resource → kind."""
