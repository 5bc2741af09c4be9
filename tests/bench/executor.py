"""Carries out the operations of a workload, in their order, as scheduler_perf's executor.go does.

It differs in what it waits for: not for a number of pods of a namespace but for those the operation has made, each
once seen bound. So a pod that is deleted afterwards has still been scheduled.
"""

import fnmatch
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench import operations as ops
from tests.bench.api import Api, Object, create, fetch, merge, must, replace
from tests.bench.background import Churning, Deleting, Threads
from tests.bench.board import Board, Group, PodRecord
from tests.bench.claims import allocations
from tests.bench.objects import (
    BASE_POD,
    Names,
    bound_volume,
    for_scheduler,
    gangs_of,
    group_name,
    make,
    nodes_of,
    resource_slice,
    with_claim,
)
from tests.bench.progress import Progress
from tests.bench.wire import Job, Request
from tests.bench.workloads import Workload

POLL: Final = 0.05
"""Seconds between two looks at what the observer has seen."""

LIST_EVERY: Final = 1.0
"""Seconds between two lists of pods, for the barriers that need them: scheduler_perf's interval."""

CONFLICT: Final = 409


class WorkloadFailed(Exception):
    """The workload did not come to its end. The text says why."""


@dataclass(slots=True)
class Collection:
    """The measured part of a workload: when, and which pods."""

    namespaces: Sequence[str]
    labels: Mapping[str, str]
    start: float
    stop: float = 0.0


@dataclass
class Executor:
    """Runs one workload once."""

    workload: Workload
    scheduler_name: str
    api: Api
    board: Board
    background: Threads
    progress: Progress
    check: Callable[[], None]
    """Raises WorkloadFailed if the scheduler or the observer has ended, or the time is up."""
    begin: Callable[[], None]
    """Called when the measured part begins."""
    stall_seconds: float = 60.0
    """A wait is given up when for so long no pod got on."""

    def __post_init__(self) -> None:
        self.collection: Collection | None = None
        """Of the last startCollectingMetrics, or createPods with collectMetrics."""
        self._names = Names()
        self._node_names: list[str] = []
        self._namespaces: set[str] = set()
        self._groups: list[tuple[str, Group]] = []
        """Of the pods that a later barrier waits for, with their namespace."""
        self._collecting = False

    def run(self) -> None:
        """All operations. Raises WorkloadFailed, Refused or WireError."""
        for number, operation in enumerate(self.workload.operations):
            self.check()
            self._run(number, operation)
        if self.collection is None:
            raise WorkloadFailed("nothing was measured: no operation collects metrics")

    def _run(self, number: int, operation: ops.Operation) -> None:
        match operation:
            case ops.CreateNodes():
                self._create_nodes(operation)
            case ops.CreateNamespaces():
                self._create_namespaces(operation)
            case ops.CreatePods():
                self._create_pods(number, operation)
            case ops.DeletePods():
                self._delete_pods(operation)
            case ops.Churn():
                namespace = self._namespace(operation.namespace or f"namespace-{number}")
                churning = Churning(self.api, operation, namespace, self.scheduler_name, self._names)
                self.background.every(operation.interval_milliseconds / 1000, churning.beat)
            case ops.Barrier():
                self._barrier(operation)
            case ops.Sleep():
                time.sleep(operation.duration)
            case ops.StartCollecting():
                self._start_collecting(operation.namespaces, operation.label_selector)
            case ops.StopCollecting():
                self._stop_collecting()
            case _:
                self._run_any(operation)

    def _run_any(self, operation: ops.Operation) -> None:
        match operation:
            case ops.CreateAny() | ops.CreateResourceClaims():
                self._create_any(operation.template_path, operation.namespace, operation.count)
            case ops.CreatePodGroups():
                self._create_pod_groups(operation)
            case ops.UpdateAny():
                self._update_any(operation)
            case ops.CreateResourceDriver():
                self._create_driver(operation)
            case ops.AllocateClaims():
                self._allocate(operation)
            case _:
                raise AssertionError(operation)

    # --- what is made ---

    def _create_nodes(self, operation: ops.CreateNodes) -> None:
        jobs: list[Job] = []
        for made in nodes_of(operation, self._names):
            self._node_names.append(made[0]["metadata"]["name"])
            jobs.append([create(self.api, obj, strict=not jobs) for obj in made])
        self._bulk("createNodes", jobs)

    def _create_namespaces(self, operation: ops.CreateNamespaces) -> None:
        for number in range(operation.count):
            self._namespace(
                f"{operation.prefix}-{number}",
                make(operation.namespace_template_path, {"apiVersion": "v1", "kind": "Namespace"}),
            )

    def _namespace(self, name: str, template: Object | None = None) -> str:
        """The namespace, created if this workload has not done so; `default` is there."""
        if name not in self._namespaces:
            obj: Object = template or {"apiVersion": "v1", "kind": "Namespace"}
            obj["metadata"] = {**obj.get("metadata", {}), "name": name}
            request = create(self.api, obj, strict=True)
            answer = self.api.send(request)
            if not answer.ok and answer.status != CONFLICT:
                raise WorkloadFailed(f"namespace {name}: {answer.status} {answer.body[:300]!r}")
            self._namespaces.add(name)
        return name

    def _create_pod_groups(self, operation: ops.CreatePodGroups) -> None:
        namespace = self._namespace(operation.namespace)
        jobs = [[create(self.api, gang, namespace, strict=True)] for gang in gangs_of(operation)]
        self._bulk("createPodGroups", jobs)

    def _create_any(self, path: Path, namespace: str, count: int) -> None:
        objects = [for_scheduler(make(path, {}, index, count), self.scheduler_name) for index in range(count)]
        if namespace:
            self._namespace(namespace)
        self._bulk(f"create {path.stem}", [[create(self.api, obj, namespace, strict=True)] for obj in objects])

    def _update_any(self, operation: ops.UpdateAny) -> None:
        """Both the object and its status are written over, as there: what the template does not have is gone."""
        if operation.namespace:
            self._namespace(operation.namespace)
        self.progress.doing(f"update {operation.template_path.stem}", operation.count)
        due = time.monotonic()
        for index in range(operation.count):
            if operation.update_per_second:
                due = max(due + 1 / operation.update_per_second, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
            obj = for_scheduler(make(operation.template_path, {}, index, operation.count), self.scheduler_name)
            for subresource in ("/".join(operation.subresources), "status"):
                must(self.api, replace(self.api, obj, operation.namespace, subresource))
            self.progress.done(index + 1)
            self.check()

    def _create_driver(self, operation: ops.CreateResourceDriver) -> None:
        nodes = [name for name in self._node_names if fnmatch.fnmatchcase(name, operation.nodes)]
        slices = [resource_slice(operation.driver_name, node, operation.max_claims_per_node) for node in nodes]
        self._bulk("createResourceDriver", [[create(self.api, obj, strict=True)] for obj in slices])

    def _allocate(self, operation: ops.AllocateClaims) -> None:
        path, what = self.api.path("resource.k8s.io/v1/ResourceClaim", operation.namespace)
        claims = fetch(self.api, path, what)["items"]
        path, what = self.api.path("resource.k8s.io/v1/ResourceSlice")
        slices = fetch(self.api, path, what)["items"]
        jobs = []
        for claim, allocation in allocations(claims, slices):
            obj = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": claim["metadata"]}
            patch = {"status": {"allocation": allocation}}
            jobs.append([merge(self.api, obj, patch, claim["metadata"]["namespace"], "status")])
        self._bulk("allocResourceClaims", jobs)

    # --- pods ---

    def _create_pods(self, number: int, operation: ops.CreatePods) -> None:
        namespace = self._namespace(operation.namespace or f"namespace-{number}")
        if operation.collect_metrics:
            self._start_collecting([namespace], {})
        if operation.steady_state:
            self._steady_state(operation, namespace)
        else:
            group = self._make_pods(operation, namespace)
            if operation.skip_wait_to_completion:
                self._groups.append((namespace, group))
            else:
                self._await("createPods", len(group), lambda: group.bound)
        if operation.collect_metrics:
            self._stop_collecting()

    def _make_pods(self, operation: ops.CreatePods, namespace: str) -> Group:
        """Create the pods of an operation and return them."""
        group = Group()
        jobs: list[Job] = []
        for index in range(operation.count):
            template = operation.pod_template_path or self.workload.pod_template
            pod = for_scheduler(make(template, BASE_POD, index, operation.count), self.scheduler_name)
            name = self._names.give(pod)
            if operation.group_size:
                pod["spec"]["schedulingGroup"] = {"podGroupName": group_name(index, operation.group_size)}
            gated = bool(pod["spec"].get("schedulingGates"))
            self.board.expect(PodRecord(namespace, name, pod["metadata"].get("labels", {}), gated), group)
            before = self._volume(operation, pod, namespace, index)
            jobs.append([*before, create(self.api, pod, namespace, strict=not index)])

        def sent(index: int, at: float) -> None:
            group.pods[index].created = at

        self._bulk("createPods", jobs, sent)
        return group

    def _volume(self, operation: ops.CreatePods, pod: Object, namespace: str, index: int) -> list[Request]:
        """What comes before a pod with a volume: claim and volume, bound to each other."""
        if operation.persistent_volume_claim_template_path is None:
            return []
        assert operation.persistent_volume_template_path is not None
        volume, claim = bound_volume(
            make(operation.persistent_volume_template_path, {}),
            make(operation.persistent_volume_claim_template_path, {}),
            namespace,
            index,
        )
        with_claim(pod, claim)
        phase = {"status": {"phase": "Bound"}}
        return [
            create(self.api, claim, namespace),
            merge(self.api, claim, phase, namespace, "status"),
            create(self.api, volume),
            merge(self.api, volume, phase, "", "status"),
        ]

    def _steady_state(self, operation: ops.CreatePods, namespace: str) -> None:
        """Pods are deleted when all are bound, and as many created again, until the time is over."""
        end = time.monotonic() + operation.duration
        path, what = self.api.path("v1/Pod", namespace)
        while time.monotonic() < end:
            group = self._make_pods(operation, namespace)
            self._await("steady state", len(group), lambda group=group: group.bound, until=end)  # type: ignore[misc]
            if group.complete:
                must(self.api, Request("DELETE", f"{path}?gracePeriodSeconds=0", what, whole=True))

    def _delete_pods(self, operation: ops.DeletePods) -> None:
        pods = list(self.board.select([operation.namespace], operation.label_selector))
        if operation.delete_pods_per_second:
            deleting = Deleting(self.api, pods)
            interval = 1 / operation.delete_pods_per_second
            if operation.skip_wait_to_completion:
                self.background.every(interval, deleting.beat)
                return
            while deleting.beat():
                time.sleep(interval)
                self.check()
            return
        path, what = self.api.path("v1/Pod", operation.namespace)
        selector = ",".join(f"{key}%3D{value}" for key, value in operation.label_selector.items())
        must(self.api, Request("DELETE", f"{path}?labelSelector={selector}", what, whole=True))

    def _barrier(self, operation: ops.Barrier) -> None:
        waited = [
            pod
            for namespace, group in self._groups
            if not operation.namespaces or namespace in operation.namespaces
            for pod in group.pods
            if operation.label_selector.items() <= pod.labels.items()
        ]
        if operation.stage_requirement == "Attempted":
            self._await("barrier: attempted", len(waited), lambda: self._attempted(waited), every=LIST_EVERY)
            return
        self._await("barrier", len(waited), lambda: sum(pod.bound is not None for pod in waited))
        self._groups = [one for one in self._groups if operation.namespaces and one[0] not in operation.namespaces]

    def _attempted(self, pods: Sequence[PodRecord]) -> int:
        """How many are bound, or have been tried: those have a condition, gated ones from the beginning."""
        open_ones = [pod for pod in pods if pod.bound is None and not pod.gated]
        waiting: set[tuple[str, str]] = set()
        for namespace in {pod.namespace for pod in open_ones}:
            path, what = self.api.path("v1/Pod", namespace)
            for obj in fetch(self.api, f"{path}?fieldSelector=spec.nodeName%3D", what)["items"]:
                conditions = obj.get("status", {}).get("conditions", ())
                if not any(one["type"] == "PodScheduled" for one in conditions):
                    waiting.add((namespace, obj["metadata"]["name"]))
        unseen = sum((pod.namespace, pod.name) in waiting for pod in open_ones)
        return len(pods) - unseen

    # --- waiting and measuring ---

    def _bulk(self, what: str, jobs: Sequence[Job], done: Callable[[int, float], None] | None = None) -> None:
        """Carry out jobs, telling how far they are."""
        self.progress.doing(what, len(jobs))
        count = 0

        def one_done(number: int, at: float) -> None:
            nonlocal count
            count += 1
            if done:
                done(number, at)
            self.progress.done(count)

        self.api.bulk(jobs, one_done)

    def _await(
        self, what: str, total: int, count: Callable[[], int], *, every: float = POLL, until: float | None = None
    ) -> None:
        """Return when `count` has reached `total`, or at the time `until`. Raises WorkloadFailed when nothing moves."""
        self.progress.doing(f"{what}: wait", total)
        last, bound, moved = -1, -1, time.monotonic()
        while True:
            self.board.refresh()
            found, now = count(), time.monotonic()
            self.progress.done(found)
            if found >= total or (until is not None and now >= until):
                return
            if found != last or self.board.bound != bound:
                last, bound, moved = found, self.board.bound, now
            if now - moved > self.stall_seconds:
                text = f"{found:,} of {total:,} pods, and no change in {self.stall_seconds:.0f} s"
                raise WorkloadFailed(f"{what}: {text}")
            self.check()
            time.sleep(every)

    def _start_collecting(self, namespaces: Sequence[str], labels: Mapping[str, str]) -> None:
        if self._collecting:
            raise WorkloadFailed("two measurements overlap")
        self._collecting = True
        self.progress.collecting(True)
        self.begin()
        self.collection = Collection(namespaces, labels, time.monotonic())

    def _stop_collecting(self) -> None:
        if self.collection is None or not self._collecting:
            raise WorkloadFailed("stopCollectingMetrics without a beginning")
        self._collecting = False
        self.board.refresh()
        self.collection.stop = time.monotonic()
        self.progress.collecting(False)


def measured(board: Board, collection: Collection) -> list[PodRecord]:
    """The pods that a collection saw being bound, by time."""
    chosen = board.select(collection.namespaces, collection.labels)
    bound = [pod for pod in chosen if pod.bound is not None and collection.start <= pod.bound <= collection.stop]
    return sorted(bound, key=lambda pod: pod.bound or 0.0)
