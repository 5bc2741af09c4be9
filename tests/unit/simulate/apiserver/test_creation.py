"""New pods get what the API server and controllers add. Against the real ones: tests/cluster/test_simulate.py."""

from collections import Counter
from itertools import islice
from typing import Any

import pytest

from scheduler.api.pods.pod import Pod
from scheduler.framework.events import PERSISTENT_VOLUME_CLAIM
from scheduler.framework.nodes.resources import KNOWN
from scheduler.simulate.controllers import workloads
from scheduler.simulate.controllers.generated_names import random_names
from tests.unit.simulate.what_if.world import read

SPEC = {"containers": [{"name": "c"}]}


def created(*objects: Any) -> tuple[Pod, ...]:
    cluster, problems = read(*objects)
    assert problems == []
    return cluster.pods


def a_node(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": {"n": name}}, "spec": spec}


def a_pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {**SPEC, **spec}}


def stored(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "metadata": {**pod["metadata"], "resourceVersion": "1", "uid": "u"}}


def a_class(name: str, value: int, **fields: Any) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **fields}


def a_runtime(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, **fields}


def limits(*items: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    metadata = {"name": "l", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": list(items)}}


VERSIONS = {"Job": "batch/v1", "ReplicationController": "v1"}


def a_workload(kind: str, spec: dict[str, Any] = SPEC, **fields: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": spec}
    labels = {"app": "w"}
    selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
    whole = {"selector": selector, "template": template, **fields}
    return {"apiVersion": VERSIONS.get(kind, "apps/v1"), "kind": kind, "metadata": {"name": "w"}, "spec": whole}


def being_deleted(workload: dict[str, Any]) -> dict[str, Any]:
    return {**workload, "metadata": {**workload["metadata"], "deletionTimestamp": "2026-05-04T00:00:00Z"}}


def with_status(workload: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {**workload, "status": status}


# Priority


@pytest.mark.parametrize(
    ("spec", "classes", "priority", "policy"),
    [
        ({}, [], 0, None),
        ({"priority": 5}, [], 5, None),
        ({"priorityClassName": "high"}, [a_class("high", 9)], 9, "PreemptLowerPriority"),
        ({"priorityClassName": "high"}, [a_class("high", 9, preemptionPolicy="Never")], 9, "Never"),
        ({}, [a_class("high", 9), a_class("low", 3, globalDefault=True)], 3, "PreemptLowerPriority"),
        ({}, [a_class("a", 4, globalDefault=True), a_class("b", 2, globalDefault=True)], 2, "PreemptLowerPriority"),
        ({"priorityClassName": "system-node-critical"}, [], 2_000_001_000, "PreemptLowerPriority"),
        ({"priorityClassName": "system-cluster-critical"}, [a_class("a", 1)], 2_000_000_000, "PreemptLowerPriority"),
        ({"priority": 9, "priorityClassName": "high"}, [a_class("high", 9)], 9, "PreemptLowerPriority"),
    ],
)
def test_priority_follows_from_the_classes(
    spec: dict[str, Any], classes: list[Any], priority: int, policy: str | None
) -> None:
    (pod,) = created(a_pod(**spec), *classes)

    assert (pod.priority, pod.spec.preemption_policy) == (priority, policy)


def test_a_pod_that_was_stored_is_left_as_it_is() -> None:
    (pod,) = created(stored(a_pod(priority=5)), a_class("low", 3, globalDefault=True))

    assert (pod.priority, pod.spec.tolerations) == (5, None)


def test_without_any_class_the_file_is_taken_at_its_word_and_says_so() -> None:
    cluster, problems = read(a_pod(priorityClassName="high", priority=7))

    assert problems == []
    assert cluster.pods[0].priority == 7
    assert cluster.notes == (
        "not in the files: PriorityClass high, named by 1 pod: the priority in the pod counts, or 0",
    )


# Tolerations and RuntimeClasses


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ([], ["not-ready", "unreachable"]),
        ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}], ["unreachable"]),
        ([{"operator": "Exists"}], []),
        ([{"operator": "Exists", "effect": "NoSchedule"}], ["not-ready", "unreachable"]),
    ],
)
def test_pods_bear_nodes_in_trouble_for_five_minutes(own: list[Any], added: list[str]) -> None:
    (pod,) = created(a_pod(tolerations=own))

    new = (pod.spec.tolerations or ())[len(own) :]
    assert [(each.key, each.effect, each.toleration_seconds) for each in new] == [
        (f"node.kubernetes.io/{what}", "NoExecute", 300) for what in added
    ]


def test_a_runtime_class_adds_overhead_and_narrows_the_nodes() -> None:
    scheduling = {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]}
    runtime = a_runtime(overhead={"podFixed": {"cpu": "250m"}}, scheduling=scheduling)

    (pod,) = created(a_pod(runtimeClassName="kata", nodeSelector={"a": "b"}), runtime)

    assert pod.requests["cpu"] == 250
    assert pod.spec.node_selector == {"a": "b", "kata": "yes"}
    assert "kata" in {each.key for each in pod.spec.tolerations or ()}


@pytest.mark.parametrize(
    ("defined", "words"),
    [
        ({}, "Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        ({"overhead": {"podFixed": {"cpu": "250m"}}}, "Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
    ],
)
def test_another_overhead_than_the_runtime_class_defines_is_refused(defined: dict[str, Any], words: str) -> None:
    _, problems = read(a_pod(runtimeClassName="kata", overhead={"cpu": "1"}), a_runtime(**defined))

    assert problems == [f'f:1: pods "p" is forbidden: pod rejected: {words}']


# LimitRanges


def a_request(pod: Pod) -> Any:
    (container,) = pod.spec.containers or ()
    assert container.resources is not None
    return container.resources.requests


@pytest.mark.parametrize(
    ("item", "own", "requests"),
    [
        ({"defaultRequest": {"cpu": "1"}}, {}, {"cpu": "1"}),
        ({"default": {"cpu": "2"}}, {}, {"cpu": "2"}),
        ({"max": {"cpu": "3"}}, {}, {"cpu": "3"}),
        ({"min": {"cpu": "1"}}, {}, {"cpu": "1"}),
        ({"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, {}, {"cpu": "1"}),
        ({"defaultRequest": {"cpu": "1"}}, {"requests": {"cpu": "4"}}, {"cpu": "4"}),
        ({"defaultRequest": {"cpu": "1"}}, {"limits": {"cpu": "4"}}, {"cpu": "4"}),
    ],
)
def test_limit_ranges_give_containers_what_they_lack(
    item: dict[str, Any], own: dict[str, Any], requests: dict[str, str]
) -> None:
    pod = a_pod(containers=[{"name": "c", "resources": own}])

    (made,) = created(pod, limits({"type": "Container", **item}))

    assert a_request(made) == requests


def test_limit_ranges_are_for_their_namespace() -> None:
    (pod,) = created(a_pod(), limits({"type": "Container", "default": {"cpu": "1"}}, namespace="other"))

    assert pod.requests == {}


HUGE = f"provided ratio is {2**63}.000000"
RATIO = "maxLimitRequestRatio: 2"
RATIO_WORDS = "cpu max limit to request ratio per Container is 2, but"


@pytest.mark.parametrize(
    ("kind", "bound", "resources", "words"),
    [
        ("Container", "max: 2", {"limits": "3"}, "maximum cpu usage per Container is 2, but limit is 3"),
        ("Container", "min: 1", {"requests": "500m"}, "minimum cpu usage per Container is 1, but request is 500m"),
        ("Pod", "max: 2", {"limits": "3"}, "maximum cpu usage per Pod is 2, but limit is 3"),
        ("Pod", "max: 2", {}, "maximum cpu usage per Pod is 2.  No limit is specified"),
        ("Pod", "min: 2", {}, "minimum cpu usage per Pod is 2.  No request is specified"),
        ("Container", RATIO, {"requests": "1", "limits": "3"}, f"{RATIO_WORDS} provided ratio is 3.000000"),
        ("Container", RATIO, {"requests": "1", "limits": "9" * 400}, f"{RATIO_WORDS} {HUGE}"),
        ("Container", RATIO, {}, f"{RATIO_WORDS} no request is specified or request is 0"),
    ],
)
def test_what_a_limit_range_refuses_is_refused(kind: str, bound: str, resources: dict[str, str], words: str) -> None:
    name, amount = bound.split(": ")
    own = {key: {"cpu": value} for key, value in resources.items()}

    _, problems = read(
        a_pod(containers=[{"name": "c", "resources": own}]), limits({"type": kind, name: {"cpu": amount}})
    )

    assert problems == [f'f:1: pods "p" is forbidden: {words}']


TOO_MANY = "pods are more than a simulation makes, which is 100,000"


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        (a_class("a", 2**31), "value: Invalid value: 2147483648: expected an integer of 32 bits"),
        ({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}, "metadata.name: Required value"),
        (limits({"type": "Pod", "max": {"cpu": []}}), "limits[0].max[...]: expected int | float | str, got array"),
        (a_workload("Deployment", replicas="2"), "spec.replicas: expected int, got str"),
        (a_workload("Deployment", replicas=-1), "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        (a_workload("Job", parallelism=10**9), f"spec.parallelism: 1000000000 {TOO_MANY}"),
        (
            a_workload("StatefulSet", replicas=60_000, volumeClaimTemplates=[{"metadata": {"name": "a"}}] * 2),
            "spec.volumeClaimTemplates: 60000 pods with 2 claims each are too many",
        ),
        (
            a_workload("StatefulSet", ordinals={"start": -1}),
            "spec.ordinals.start: must be greater than or equal to 0, and fit into 32 bits",
        ),
        (a_workload("StatefulSet", ordinals={"start": True}), "spec.ordinals.start: expected int, got bool"),
        (
            a_workload("Job", completionMode="Indexed"),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (a_workload("Deployment", template=None), "spec.template: Required value"),
        (a_workload("ReplicaSet", template=[]), "template: expected an object, got list"),
        (
            a_workload("StatefulSet", volumeClaimTemplates=[{}]),
            "spec.volumeClaimTemplates: metadata.name: Required value",
        ),
        (a_workload("Job", {"priority": "x"}), "spec.template.spec.priority: expected int, got str"),
        (a_workload("DaemonSet", {"tolerations": "all"}), "spec.template.spec.tolerations: expected a list"),
    ],
)
def test_what_is_wrong_with_such_objects_is_told(obj: Any, problem: str) -> None:
    assert read(obj, a_node("n"))[1] == [f"f:1: {problem}"]


# Workloads


def test_a_deployment_becomes_a_replica_set_and_its_pods() -> None:
    cluster, _ = read(a_workload("Deployment", replicas=2))

    (a, b) = cluster.pods
    (owner,) = a.metadata.owner_references or ()
    assert a.name != b.name
    assert a.name.startswith(f"{owner.name}-")
    assert owner.kind == "ReplicaSet"
    assert a.labels == {"app": "w", "pod-template-hash": owner.name.removeprefix("w-")}
    assert cluster.notes == ()


def test_names_are_the_same_in_every_run() -> None:
    assert list(map(str, created(a_workload("ReplicaSet", replicas=3)))) == list(
        map(str, created(a_workload("ReplicaSet", replicas=3)))
    )


def an_owned(name: str, kind: str = "ReplicaSet", phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "w", "uid": "w", "controller": True}
    pod = a_pod(name)
    return {
        **pod,
        "metadata": {"name": name, "resourceVersion": "1", "uid": name, "ownerReferences": [owner], **metadata},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("workload", "there", "new"),
    [
        (a_workload("ReplicaSet", replicas=3), [an_owned("a"), an_owned("b")], 1),
        (a_workload("ReplicaSet", replicas=1), [an_owned("a"), an_owned("b")], 0),
        (a_workload("ReplicaSet", replicas=1), [an_owned("a", phase="Failed")], 1),
        (a_workload("ReplicaSet", replicas=1), [an_owned("a", deletionTimestamp="2026-05-04T00:00:00Z")], 1),
        (a_workload("ReplicaSet", replicas=0), [], 0),
        (a_workload("ReplicationController"), [], 1),
        (a_workload("StatefulSet", replicas=2), [an_owned("w-0", "StatefulSet")], 1),
        (a_workload("Job", parallelism=2, completions=3), [], 2),
        (
            a_workload("Job", parallelism=2, completions=3),
            [an_owned("a", "Job", "Succeeded"), an_owned("b", "Job", "Succeeded")],
            1,
        ),
        (a_workload("Job", parallelism=2), [an_owned("a", "Job")], 1),
        (a_workload("Job", parallelism=2, suspend=True), [], 0),
        (with_status(a_workload("Job", parallelism=3, completions=3), succeeded=2), [], 1),
        (with_status(a_workload("Job"), conditions=[{"type": "Complete", "status": "True"}]), [], 0),
        (with_status(a_workload("Job"), conditions=[{"type": "Failed", "status": "True"}]), [], 0),
        (with_status(a_workload("Job"), conditions=[{"type": "Failed", "status": "False"}, 7]), [], 1),
        (with_status(a_workload("Job"), conditions="odd"), [], 1),
        (with_status(a_workload("Job", parallelism=3), succeeded=1), [an_owned("a", "Job")], 0),
        (with_status(a_workload("Job", parallelism=3), succeeded=0), [an_owned("a", "Job")], 2),
        (a_workload("Job", managedBy="example.com/queue"), [], 0),
        (a_workload("Job", managedBy="kubernetes.io/job-controller"), [], 1),
        (a_workload("Deployment", paused=True), [], 0),
        *(
            (being_deleted(a_workload(kind)), [a_node("n")] if kind == "DaemonSet" else [], 0)
            for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job", "DaemonSet")
        ),
    ],
)
def test_only_pods_that_are_missing_are_made(workload: dict[str, Any], there: list[Any], new: int) -> None:
    pods = sum(obj["kind"] == "Pod" for obj in there)

    assert len(created(workload, *there)) == pods + new


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "ReplicaSet"])
def test_a_file_with_another_version_of_a_workload_counts_instead_of_it(kind: str) -> None:
    has, wants = a_workload(kind), a_workload(kind)
    has["metadata"] = {"name": "w", "resourceVersion": "1", "uid": "w"}
    if kind != "DaemonSet":
        has["spec"]["replicas"], wants["spec"]["replicas"] = 3, 5

    pods = created(*(a_node(f"n{number}") for number in range(5)), has, wants)

    assert len(pods) == 5


def test_a_deployment_with_replica_sets_leaves_its_pods_to_them_which_is_said_of_one_that_runs() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "controller": True}
    of_it = a_workload("ReplicaSet", replicas=1)
    of_it["metadata"] = {"name": "w-1", "ownerReferences": [owner], "resourceVersion": "1"}

    cluster, _ = read(of_it, a_workload("Deployment", replicas=5))

    (pod,) = cluster.pods
    assert pod.name.startswith("w-1-")
    assert cluster.notes == (
        "f:2: Deployment default/w has ReplicaSets already, which make its pods: what is new in it does not count, "
        "but to --of deployment/default/w",
    )


def test_there_is_an_end_to_what_all_workloads_together_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "MAX_OBJECTS", 5)
    sets = a_workload("ReplicaSet", replicas=3), a_workload("StatefulSet", replicas=3), a_workload("DaemonSet")

    cluster, problems = read(*(a_node(f"n{number}") for number in range(2)), *sets)

    assert len(cluster.pods) == 5
    assert problems == [
        "f:4: 3 pods and claims of StatefulSet default/w, of a template of 72 bytes: more than a simulation makes of "
        "all workloads, 5 objects and 256 MiB"
    ]


def test_a_large_template_makes_fewer_pods() -> None:
    large = {**SPEC, "nodeSelector": {f"{number}": "x" * 60 for number in range(20_000)}}

    _, (problem,) = read(a_workload("ReplicaSet", spec=large, replicas=1000))

    assert problem.startswith("f:1: 1,000 pods and claims of ReplicaSet default/w, of a template of 1,")


@pytest.mark.parametrize(
    ("kind", "fields", "start"),
    [
        ("ReplicaSet", {}, "a" * 58),
        ("Job", {}, "a" * 58),
        ("Job", {"completions": 1, "completionMode": "Indexed"}, "a" * 55 + "-0-"),
    ],
)
def test_names_are_no_longer_than_kubernetes_makes_them(kind: str, fields: dict[str, Any], start: str) -> None:
    workload = a_workload(kind, **fields)
    workload["metadata"]["name"] = "a" * (80 if kind == "ReplicaSet" else 60)

    (pod,) = created(workload)

    assert (pod.name[:58], len(pod.name)) == (start, 63)


def test_stateful_sets_have_ordinals_and_claims() -> None:
    template = {"metadata": {"name": "data"}, "spec": {"storageClassName": "x"}}
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    workload = a_workload(
        "StatefulSet",
        replicas=2,
        ordinals={"start": 5},
        volumeClaimTemplates=[template],
        spec={**SPEC, "volumes": volumes},
    )

    cluster, problems = read(workload)

    assert problems == []
    assert [pod.name for pod in cluster.pods] == ["w-5", "w-6"]
    assert cluster.pods[0].labels["apps.kubernetes.io/pod-index"] == "5"
    claims = [
        volume.persistent_volume_claim.claim_name
        for pod in cluster.pods
        for volume in pod.spec.volumes or ()
        if volume.persistent_volume_claim
    ]
    assert claims == ["data-w-5", "data-w-6"]
    assert Counter(each.label for each in cluster.others.left_out()) == {"PersistentVolumeClaim": 2}
    assert cluster.notes == (
        "not in the files: StorageClass x, named by 2 claims: they stay unbound, and their pods wait",
    )


def test_indexed_jobs_number_their_pods() -> None:
    pods = created(a_workload("Job", parallelism=2, completions=3, completionMode="Indexed"))

    assert [pod.labels["batch.kubernetes.io/job-completion-index"] for pod in pods] == ["0", "1"]
    assert [pod.name[:-5] for pod in pods] == ["w-0-", "w-1-"]


# DaemonSets


def test_a_daemon_runs_on_each_node_that_it_may() -> None:
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    trouble = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    nodes = [a_node("free"), a_node("tainted", taints=[taint]), a_node("full", taints=[trouble]), a_node("has")]
    there = an_owned("w-there", "DaemonSet")
    there["spec"] = {**there["spec"], "nodeName": "has"}

    pods = created(a_workload("DaemonSet"), *nodes, there)[1:]

    fields = [pod.spec.affinity.node_affinity.required.node_selector_terms[0].match_fields[0] for pod in pods]  # type: ignore[union-attr,index]
    assert [(field.key, field.values) for field in fields] == [
        ("metadata.name", ("free",)),
        ("metadata.name", ("full",)),
    ]
    assert {each.key.rpartition("/")[2] for each in pods[0].spec.tolerations or ()} == {
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    }


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({"nodeSelector": {"n": "a"}}, ["a"]),
        ({"nodeName": "b"}, ["b"]),
        ({"tolerations": [{"operator": "Exists"}]}, ["a", "b", "c"]),
        ({"hostNetwork": True}, ["a", "b", "c"]),
    ],
)
def test_a_daemons_template_narrows_its_nodes(spec: dict[str, Any], names: list[str]) -> None:
    offline = {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}
    nodes = [a_node("a"), a_node("b"), a_node("c", taints=[offline])]

    pods = created(a_workload("DaemonSet", spec={**SPEC, **spec}), *nodes)

    assert len(pods) == len(names)


def test_a_daemon_whose_affinity_has_an_unknown_operator_is_one_line() -> None:
    terms = [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
    }

    _, problems = read(a_node("a"), a_workload("DaemonSet", spec={**SPEC, "affinity": affinity}))

    (problem,) = problems
    assert problem.startswith("f:2: spec.template.spec.affinity.nodeAffinity: nodeSelectorTerms[0].")


# Claims


def test_ephemeral_volumes_get_claims_of_the_default_class() -> None:
    default = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "std", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    }
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    cluster, problems = read(a_pod(volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}]), default)

    ((_, claim),) = cluster.others.take({PERSISTENT_VOLUME_CLAIM: KNOWN[PERSISTENT_VOLUME_CLAIM]})
    assert problems == []
    assert (claim.name, claim.class_name) == ("p-tmp", "std")


def test_claims_are_made_of_resource_claim_templates() -> None:
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu"},
        "spec": {"spec": {"devices": {}}},
    }
    cluster, problems = read(a_pod(resourceClaims=[{"name": "g", "resourceClaimTemplateName": "gpu"}]), template)

    (status,) = cluster.pods[0].status.resource_claim_statuses or ()
    assert problems == []
    assert (status.name, (status.resource_claim_name or "")[:-5]) == ("g", "p-g-")
    assert Counter(each.label for each in cluster.others.left_out()) == {"ResourceClaim (resource.k8s.io/v1)": 1}
    assert cluster.notes == ()


def test_a_dump_without_kinds_that_every_cluster_has_is_noted() -> None:
    service = {"kind": "Service", "metadata": {"name": "kubernetes"}}

    cluster, _ = read(stored(a_pod()), service, a_class("a", 1))

    assert cluster.notes == (
        "not in the files: any Namespace, which every cluster has: "
        "namespace selectors of affinity terms find no namespace",
    )
    assert read(a_pod())[0].notes == ()


def test_what_pods_name_and_nobody_wrote_is_noted() -> None:
    claims = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(5)]
    gpu = [{"name": "g", "resourceClaimTemplateName": "gpu"}, {"name": "h", "resourceClaimName": "mine"}]
    cluster, problems = read(a_pod(volumes=claims, resourceClaims=gpu), an_owned("waits", "ReplicaSet"))

    assert problems == []
    assert [note.partition(": ")[2].rpartition(": ")[0] for note in cluster.notes] == [
        "any Namespace, which every cluster has",
        "any PriorityClass, which every cluster has",
        "any Service, which every cluster has",
        "PersistentVolumeClaim default/c0, default/c1, default/c2 and 2 more, named by 5 pods",
        "ReplicaSet default/w, named by 1 pod",
        "ResourceClaim default/mine, named by 1 pod",
        "ResourceClaimTemplate default/gpu, named by 1 pod",
    ]


def test_names_drawn_by_lot_are_all_different() -> None:
    names = list(islice(random_names("w-", "ReplicaSet"), 20_000))

    assert len(set(names)) == len(names)
