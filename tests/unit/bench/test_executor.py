"""The operations against an API server that is a dictionary, and a scheduler that binds when it is told to."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.bench import operations as ops
from tests.bench.api import Object
from tests.bench.background import Step
from tests.bench.board import Board
from tests.bench.executor import Executor, WorkloadFailed, measured
from tests.bench.operations import Operation
from tests.bench.wire import Answer, Job, Refused, Request
from tests.bench.workloads import Workload

CLUSTER_WIDE = ("Node", "Namespace", "PersistentVolume", "CSINode", "ResourceSlice")


class FakeCluster:
    """API server, scheduler, observer, clock, and all that an executor asks for."""

    def __init__(self, *, binds: Callable[[Object], bool] = lambda pod: True) -> None:
        self.objects: dict[str, Object] = {}
        """By path."""
        self.requests: list[tuple[str, str]] = []
        self.steps: list[tuple[float, Step]] = []
        self.events: list[str] = []
        self.time = 100.0
        self._binds = binds
        self._seen: set[str] = set()
        self._dead = ""

    def die(self) -> None:
        self._dead = "the scheduler has ended"

    # Api

    def path(self, kind: str, namespace: str = "", name: str = "", subresource: str = "") -> tuple[str, str]:
        plural = kind.rpartition("/")[2].lower() + "s"
        parts = ["", namespace if self.is_namespaced(kind) else "", plural, name, subresource]
        return "/".join(part for part in parts if part), "/".join(filter(None, (plural, subresource)))

    def is_namespaced(self, kind: str) -> bool:
        return kind.rpartition("/")[2] not in CLUSTER_WIDE

    def bulk(self, jobs: Sequence[Job], done: Callable[[int, float], None]) -> None:
        for number, job in enumerate(jobs):
            for request in job:
                answer = self.send(request)
                if not answer.ok:
                    raise Refused(request, answer)
            done(number, self.time)

    def send(self, request: Request) -> Answer:
        path, _, query = request.path.partition("?")
        self.requests.append((request.method, path))
        body: Object = orjson.loads(request.body) if request.body else {}
        match request.method:
            case "PUT":
                """What is written is of no interest here."""
            case "POST":
                path = f"{path}/{body['metadata']['name']}"
                if path in self.objects:
                    return Answer(409, b"it is there")
                self.objects[path] = body
            case "PATCH":
                self.objects[path.removesuffix("/status")].update(body)
            case "DELETE":
                for key in [key for key in self.objects if key == path or key.startswith(f"{path}/")]:
                    del self.objects[key]
            case "GET":
                found = [obj for key, obj in self.objects.items() if key.startswith(f"{path}/")]
                unbound = [obj for obj in found if "nodeName" not in obj.get("spec", {})]
                return Answer(200, orjson.dumps({"items": unbound if query else found}))
            case method:
                raise AssertionError(method)
        return Answer(200, b"{}")

    # World, Background, Listener

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def check(self) -> None:
        if self._dead:
            raise WorkloadFailed(self._dead)

    def every(self, seconds: float, step: Step) -> None:
        self.steps.append((seconds, step))

    def doing(self, what: str, total: int) -> None:
        self.events.append(f"{what} {total}")

    def done(self, count: int) -> None:
        """Of no interest here."""

    def collecting(self, on: bool) -> None:
        self.events.append("begin" if on else "end")

    # the scheduler, as the observer sees it

    def observed(self) -> str:
        """Bind what can be bound, and tell."""
        bound = []
        for path, obj in self.objects.items():
            if obj["kind"] == "Pod" and path not in self._seen:
                if obj["spec"].get("schedulingGates") or not self._binds(obj):
                    obj["status"] = {"conditions": [{"type": "PodScheduled", "status": "False"}]}
                    continue
                self._seen.add(path)
                obj["spec"]["nodeName"] = "n"
                bound.append(path.replace("/pods/", "/"))
        return f"{self.time:.4f} {' '.join(bound)}\n" if bound else ""

    def paths(self, pattern: str) -> list[str]:
        return [path for path in self.objects if re.search(pattern, path)]


def run(cluster: FakeCluster, *operations: Operation, template: Path | None = None) -> Executor:
    workload = Workload("Case", "name", (), {}, {}, operations, "misc", pod_template=template)
    board = Board(cluster.observed)
    executor = Executor(workload, "mine", cluster, board, cluster, cluster, cluster, stall_seconds=30)
    executor.run()
    return executor


MEASURED = ops.CreatePods(count=3, namespace="measured", collect_metrics=True)


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text)
    return path


def test_the_measured_pods_are_those_of_their_operation_and_name_the_scheduler() -> None:
    cluster = FakeCluster()

    executor = run(cluster, ops.CreateNodes(count=2), ops.CreatePods(count=5), MEASURED)

    assert executor.collection is not None
    pods = measured(executor.board, executor.collection)
    assert {pod.namespace for pod in pods} == {"measured"}
    assert (len(pods), len(cluster.paths("^namespace-1/pods/")), len(cluster.paths("^nodes/"))) == (3, 5, 2)
    assert {cluster.objects[path]["spec"]["schedulerName"] for path in cluster.paths("/pods/")} == {"mine"}
    assert cluster.events == [
        "createNodes 2", "createPods 5", "createPods: wait 5", "begin", "createPods 3", "createPods: wait 3", "end",
    ]  # fmt: skip


def test_nodes_get_the_hostname_the_labels_in_turn_and_their_volume_limits() -> None:
    cluster = FakeCluster()
    labels = {"labelKey": "zone", "labelValues": ["a", "b"]}
    volumes = {"csiNodeAllocatable": {"ebs": {"count": 39}}, "migratedPlugins": ["in-tree"]}

    run(
        cluster,
        ops.CreateNodes(count=3, label_node_prepare_strategy=labels),
        ops.CreateNodes(count=1, node_allocatable_strategy=volumes, unique_node_label_strategy={"labelKey": "own"}),
        MEASURED,
    )

    nodes = [cluster.objects[path] for path in cluster.paths("^nodes/")]
    assert [node["metadata"]["labels"].get("zone") for node in nodes] == ["a", "b", "a", None]
    assert all(node["metadata"]["labels"]["kubernetes.io/hostname"] == node["metadata"]["name"] for node in nodes)
    assert nodes[3]["metadata"]["labels"]["own"]
    csi = cluster.objects[f"csinodes/{nodes[3]['metadata']['name']}"]
    assert csi["spec"]["drivers"][0]["allocatable"] == {"count": 39}
    assert csi["metadata"]["annotations"] == {"storage.alpha.kubernetes.io/migrated-plugins": "in-tree"}


def test_namespaces_are_created_once_with_their_template(tmp_path: Path) -> None:
    cluster = FakeCluster()
    template = write(tmp_path, "ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {labels: {team: devops}}\n")

    run(
        cluster,
        ops.CreateNamespaces(prefix="sched", count=2, namespace_template_path=template),
        ops.CreatePods(count=1, namespace="sched-0"),
        MEASURED,
    )

    assert [path for method, path in cluster.requests if path == "namespaces"] == ["namespaces"] * 3
    assert cluster.objects["namespaces/sched-1"]["metadata"] == {"labels": {"team": "devops"}, "name": "sched-1"}


def test_a_pod_with_a_volume_comes_after_claim_and_volume_which_are_bound_to_each_other(tmp_path: Path) -> None:
    cluster = FakeCluster()
    volume = write(tmp_path, "pv.yaml", "{apiVersion: v1, kind: PersistentVolume, spec: {csi: {driver: ebs}}}")
    claim = write(tmp_path, "pvc.yaml", "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [a]}}")

    run(
        cluster,
        ops.CreatePods(
            count=2,
            namespace="v",
            collect_metrics=True,
            persistent_volume_template_path=volume,
            persistent_volume_claim_template_path=claim,
        ),
    )

    assert cluster.objects["persistentvolumes/v-vol-1"]["spec"] == {
        "csi": {"driver": "ebs", "volumeHandle": "v-vol-1"},
        "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "v", "name": "pvc-1"},
    }
    assert cluster.objects["v/persistentvolumeclaims/pvc-1"]["spec"]["volumeName"] == "v-vol-1"
    assert cluster.objects["v/persistentvolumeclaims/pvc-1"]["status"] == {"phase": "Bound"}
    pods = [cluster.objects[path] for path in cluster.paths("^v/pods/")]
    assert pods[1]["spec"]["volumes"] == [{"name": "vol", "persistentVolumeClaim": {"claimName": "pvc-1"}}]
    assert [path for _, path in cluster.requests[-5:]] == [
        "v/persistentvolumeclaims",
        "v/persistentvolumeclaims/pvc-1/status",
        "persistentvolumes",
        "persistentvolumes/v-vol-1/status",
        "v/pods",
    ]


def test_a_barrier_for_attempts_takes_gated_and_refused_pods_and_one_for_binding_does_not(tmp_path: Path) -> None:
    gated = write(
        tmp_path,
        "gated.yaml",
        "{apiVersion: v1, kind: Pod, metadata: {generateName: g-, labels: {a: b}}, spec: {schedulingGates: [x]}}",
    )
    cluster = FakeCluster(binds=lambda pod: "unsched" not in pod["metadata"]["name"])
    refused = write(
        tmp_path, "refused.yaml", "{apiVersion: v1, kind: Pod, metadata: {generateName: unsched-}, spec: {}}"
    )
    waiting = [
        ops.CreatePods(count=2, namespace="a", skip_wait_to_completion=True, pod_template_path=gated),
        ops.CreatePods(count=2, namespace="b", skip_wait_to_completion=True, pod_template_path=refused),
    ]

    run(cluster, *waiting, ops.Barrier(stage_requirement="Attempted"), MEASURED)

    with pytest.raises(WorkloadFailed, match=r"barrier: 0 of 4 pods, and no change in 30 s"):
        run(FakeCluster(binds=lambda pod: False), *waiting, ops.Barrier(), MEASURED)


def test_a_barrier_waits_for_the_chosen_pods_alone(tmp_path: Path) -> None:
    cluster = FakeCluster(binds=lambda pod: pod["metadata"].get("labels", {}).get("type") == "good")
    good = write(
        tmp_path,
        "g.yaml",
        "{apiVersion: v1, kind: Pod, metadata: {name: 'g-{{.Index}}', labels: {type: good}}, spec: {}}",
    )

    executor = run(
        cluster,
        ops.StartCollecting(namespaces=["a"], label_selector={"type": "good"}),
        ops.CreatePods(count=2, namespace="a", skip_wait_to_completion=True, pod_template_path=good),
        ops.CreatePods(count=2, namespace="a", skip_wait_to_completion=True),
        ops.Barrier(label_selector={"type": "good"}),
        ops.StopCollecting(),
    )

    assert executor.collection is not None
    assert [pod.name for pod in measured(executor.board, executor.collection)] == ["g-0", "g-1"]


def test_churn_creates_up_to_its_number_or_creates_and_deletes(tmp_path: Path) -> None:
    service = write(tmp_path, "s.yaml", "{apiVersion: v1, kind: Service, metadata: {generateName: s-}}")
    cluster = FakeCluster()

    run(
        cluster,
        ops.Churn(mode="create", number=2, template_paths=[service], namespace="c", interval_milliseconds=200),
        ops.Churn(mode="recreate", number=2, template_paths=[service], namespace="r"),
        MEASURED,
    )
    (create_seconds, creating), (_, recreating) = cluster.steps
    alive: list[tuple[int, int]] = []
    going = []
    for _ in range(5):
        going.append(creating())
        recreating()
        alive.append((len(cluster.paths("^c/services")), len(cluster.paths("^r/services"))))

    assert create_seconds == 0.2
    assert going == [True, True, False, False, False]
    assert alive == [(1, 1), (2, 2), (2, 1), (2, 0), (2, 1)]


def test_pods_are_deleted_one_by_one_in_the_background_or_all_at_once() -> None:
    cluster = FakeCluster()
    run(
        cluster,
        ops.CreatePods(count=2),
        ops.DeletePods(namespace="namespace-0", delete_pods_per_second=50, skip_wait_to_completion=True),
        MEASURED,
    )
    (interval, step) = cluster.steps[0]

    assert interval == 0.02
    assert [step(), step(), step()] == [True, False, False]
    assert cluster.paths("^namespace-0/pods") == []

    run(cluster := FakeCluster(), ops.CreatePods(count=2), ops.DeletePods(namespace="namespace-0"), MEASURED)
    assert cluster.paths("^namespace-0/pods") == []


def test_objects_are_created_and_written_over_with_their_status_at_the_wished_pace(tmp_path: Path) -> None:
    cluster = FakeCluster()
    node = write(tmp_path, "node.yaml", "{apiVersion: v1, kind: Node, metadata: {name: 'n-{{.Index}}'}}")
    pod = write(tmp_path, "pod.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {}}")

    run(
        cluster,
        ops.CreateAny(template_path=node, count=2),
        ops.UpdateAny(template_path=node, count=2, update_per_second=10),
        ops.UpdateAny(template_path=pod, namespace="a", subresources=["resize"]),
        MEASURED,
    )

    assert [path for method, path in cluster.requests if method == "PUT"] == [
        "nodes/n-0", "nodes/n-0/status", "nodes/n-1", "nodes/n-1/status", "a/pods/p/resize", "a/pods/p/status",
    ]  # fmt: skip
    assert cluster.time == pytest.approx(100.2)


def test_drivers_offer_devices_on_their_nodes_and_claims_take_them(tmp_path: Path) -> None:
    cluster = FakeCluster()
    node = write(tmp_path, "node.yaml", "{apiVersion: v1, kind: Node, metadata: {generateName: dra-}}")
    claim = write(
        tmp_path,
        "claim.yaml",
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: 'c-{{.Index}}', namespace: i}, "
        "spec: {devices: {requests: [{name: req-0, exactly: {deviceClassName: x}}]}}}",
    )

    run(
        cluster,
        ops.CreateNodes(count=1),
        ops.CreateNodes(count=2, node_template_path=node),
        ops.CreateResourceDriver(driver_name="driver", nodes="dra-*", max_claims_per_node=2),
        ops.CreateAny(template_path=claim, namespace="i", count=3),
        ops.AllocateClaims(namespace="i"),
        MEASURED,
    )

    assert len(cluster.paths("^resourceslices/dra-")) == 2
    taken = [
        tuple(cluster.objects[path]["status"]["allocation"]["devices"]["results"][0].values())
        for path in cluster.paths("^i/resourceclaims/")
    ]
    assert len(set(taken)) == 3
    assert {(request, driver) for request, driver, *_ in taken} == {("req-0", "driver")}


def test_a_steady_state_replaces_its_pods_until_the_time_is_over() -> None:
    cluster = FakeCluster()
    observed = cluster.observed

    def slowly() -> str:
        cluster.time += 1
        return observed()

    cluster.observed = slowly  # type: ignore[method-assign]
    executor = run(
        cluster, ops.CreatePods(count=4, namespace="s", steady_state=True, duration=3.5, collect_metrics=True)
    )

    assert executor.collection is not None
    assert len(measured(executor.board, executor.collection)) == 16
    assert cluster.paths("^s/pods") == []


def test_pods_that_were_bound_before_the_measurement_do_not_count() -> None:
    cluster = FakeCluster()

    executor = run(cluster, ops.CreatePods(count=5, namespace="measured"), ops.Sleep(duration=10), MEASURED)

    assert executor.collection is not None
    assert len(measured(executor.board, executor.collection)) == 3


def test_a_scheduler_that_ends_fails_the_workload() -> None:
    cluster = FakeCluster(binds=lambda pod: False)
    cluster.sleep = lambda seconds: cluster.die()  # type: ignore[method-assign]

    with pytest.raises(WorkloadFailed, match="has ended"):
        run(cluster, MEASURED)


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        pytest.param([ops.CreatePods(count=1)], "nothing was measured", id="none"),
        pytest.param([ops.StopCollecting()], "without a beginning", id="an end alone"),
        pytest.param([ops.StartCollecting(namespaces=["a"]), MEASURED], "overlap", id="two at once"),
    ],
)
def test_a_workload_measures_once(operations: list[Any], message: str) -> None:
    with pytest.raises(WorkloadFailed, match=message):
        run(FakeCluster(), *operations)
