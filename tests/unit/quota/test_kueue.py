"""Pods and Kueue's queues: which share a pod counts against, in what, and why it waits."""

from collections.abc import Mapping
from typing import Any

from scheduler.api.pods.pod import Pod
from scheduler.api.quota import kueue as api
from scheduler.framework.events import LOCAL_QUEUE, RESOURCE_FLAVOR
from scheduler.framework.shares import NodeKind
from scheduler.quota.adapter import Asked
from scheduler.quota.apis.kueue import KueueQueues
from scheduler.quota.needs import need_of_pod
from scheduler.quota.tree import Share, ShareTree
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_pod
from tests.unit.quota.kueue_objects import (
    BY_TYPE,
    Group,
    a_cohort,
    a_flavor,
    a_local_queue,
    a_namespace,
    a_queue,
    as_stored,
)

TWO: Group = {"on-demand": {"cpu": ["2"]}, "spot": {"cpu": ["4"]}}
NODES: Mapping[str, Mapping[str, str]] = {"n1": {"kind": "on-demand"}, "n2": {"kind": "spot"}, "n3": {}}


class Kueue:
    """The adapter over objects: a ClusterQueue with two flavors, behind the LocalQueue `q` of the namespace `ns`."""

    def __init__(self, *more: Any, **spec: Any) -> None:
        self.objects = ObjectStore()
        self.objects.watch(BY_TYPE.values())
        self.changes = 0
        self.queues = KueueQueues(self.objects, lambda node: NODES[node])
        for each in (
            a_namespace("ns", team="a"),
            a_flavor("on-demand", {"kind": "on-demand"}),
            a_flavor("spot", {"kind": "spot"}),
            a_queue("a", groups=[TWO], **spec),
            a_local_queue("ns", "q", "a"),
            *more,
        ):
            self.put(each)
        self.queues.listen(self._changed)
        self.changes = 0

    def _changed(self, share: Share | None) -> None:
        self.changes += 1

    def put(self, found: Any) -> None:
        self.objects.set(*as_stored(found))

    def remove(self, resource: str, name: str, namespace: str = "") -> None:
        found: Any = self.objects.get(resource, name, namespace)
        self.objects.remove(resource, found.metadata.uid)

    def share_of(self, pod: Pod) -> str:
        return self.queues.find(pod.namespace, self.queues.said(pod))

    def amounts_of(self, pod: Pod) -> dict[str, int]:
        """Return what a pod with a node counts with."""
        return dict(self.queues.amounts(self.queues.said(pod), pod.requests, 1))

    def asked(self, pod: Pod, used: Mapping[str, int] | None = None) -> tuple[ShareTree, str, Asked]:
        """Return a question for the adapter, with what is used of the share already."""
        name = self.share_of(pod)
        tree = ShareTree(self.queues.declared()[0])
        tree.add(name, used or {})
        return tree, name, Asked(need_of_pod(pod), self.queues.said(pod))

    def message(self, pod: Pod, used: Mapping[str, int] | None = None) -> str:
        """Return why a pod is refused; empty if it is not."""
        refusal = self.queues.refusal(*self.asked(pod, used))
        return "" if refusal is None else refusal.message


def of_queue(queue: str = "q", namespace: str = "ns", cpu: str = "1", **fields: Any) -> Pod:
    labels = {api.QUEUE_LABEL: queue, **fields.pop("labels", {})}
    return a_pod("p", namespace=namespace, requests={"cpu": cpu}, labels=labels, **fields)


def test_a_pod_counts_against_the_cluster_queue_behind_its_local_queue() -> None:
    kueue = Kueue()

    assert kueue.share_of(of_queue()) == "ClusterQueue/a"
    assert kueue.queues.wanted(*kueue.asked(of_queue())) == {"on-demand/cpu": 1000}
    assert kueue.queues.wanted(*kueue.asked(of_queue(cpu="3"))) == {"spot/cpu": 3000}
    assert kueue.queues.nodes_for(*kueue.asked(of_queue())) == NodeKind((("kind", "on-demand"),), ())
    assert kueue.message(of_queue()) == ""


def test_a_pod_without_the_label_belongs_to_the_queue_default_if_there_is_one() -> None:
    kueue, unlabelled = Kueue(), a_pod("p", namespace="ns")

    assert kueue.share_of(unlabelled) == ""

    kueue.put(a_local_queue("ns", "default", "a"))
    assert kueue.share_of(unlabelled) == "ClusterQueue/a"


def test_a_pod_whose_queue_does_not_exist_waits_for_that_queue() -> None:
    kueue = Kueue(a_local_queue("ns", "astray", "nowhere"))

    assert kueue.share_of(of_queue("lost")) == "LocalQueue/ns/lost"
    assert kueue.share_of(of_queue("q", namespace="other")) == "LocalQueue/other/q"
    assert kueue.share_of(of_queue("astray")) == "ClusterQueue/nowhere"
    assert {each.name for each in kueue.queues.declared()[0]} == {"ClusterQueue/a"}


def test_a_refused_pod_is_told_what_its_best_flavor_lacks() -> None:
    kueue = Kueue()

    assert kueue.message(of_queue(cpu="3")) == ""
    assert kueue.message(of_queue(cpu="3"), {"spot/cpu": 2000}) == (
        'share "ClusterQueue/a" has no space: '
        "1 of spot/cpu more than its nominalQuota; 1 of on-demand/cpu more than its nominalQuota"
    )


def test_a_pod_on_a_node_counts_in_the_flavor_of_its_node() -> None:
    kueue = Kueue()

    assert kueue.amounts_of(of_queue(node_name="n1")) == {"on-demand/cpu": 1000}
    assert kueue.amounts_of(of_queue(node_name="n2")) == {"spot/cpu": 1000}
    assert kueue.amounts_of(of_queue(node_name="n3")) == {"on-demand/cpu": 1000}


def test_who_runs_does_not_escape_by_deleting_the_local_queue() -> None:
    kueue, pod = Kueue(), of_queue(node_name="n2")
    said = kueue.queues.said(pod)

    kueue.remove(LOCAL_QUEUE, "q", "ns")

    assert kueue.queues.find("ns", said) == "ClusterQueue/a"
    assert kueue.queues.amounts(said, pod.requests, 1) == {"spot/cpu": 1000}
    assert kueue.share_of(of_queue()) == "LocalQueue/ns/q"


def test_pods_that_kueue_manages_are_refused_and_counted() -> None:
    kueue = Kueue()
    managed = of_queue(labels={api.MANAGED_LABEL: "true"})

    assert kueue.message(managed).startswith("Kueue manages this pod, it has the label kueue.x-k8s.io/managed")
    assert kueue.message(of_queue(gates=[api.ADMISSION_GATE])).startswith("Kueue manages this pod")
    assert kueue.share_of(of_queue(labels={api.MANAGED_LABEL: "true"}, node_name="n1")) == "ClusterQueue/a"


def test_a_queue_that_takes_no_pods_says_why() -> None:
    def message(*more: Any, **spec: Any) -> str:
        return Kueue(*more, **spec).message(of_queue())

    assert message(stopPolicy="None") == ""
    assert message(stopPolicy="Hold") == "ClusterQueue a takes no pods: it is stopped, its stopPolicy is Hold"
    assert message(namespaceSelector={"matchLabels": {"team": "b"}}) == (
        "namespace ns does not match the namespaceSelector of ClusterQueue a"
    )
    assert message(namespaceSelector=None) == "namespace ns does not match the namespaceSelector of ClusterQueue a"
    assert message(namespaceSelector={"matchLabels": {"team": "a"}}) == ""
    assert message(admissionChecksStrategy={"admissionChecks": [{"name": "capacity"}]}) == (
        "ClusterQueue a takes no pods: it has AdmissionChecks, which only Kueue can carry out: capacity"
    )
    assert message(a_local_queue("ns", "q", "a", stopPolicy="HoldAndDrain")) == (
        "LocalQueue q takes no pods: it is stopped, its stopPolicy is HoldAndDrain"
    )


def test_a_flavor_that_is_missing_keeps_pods_waiting_until_it_comes() -> None:
    kueue = Kueue()

    kueue.remove(RESOURCE_FLAVOR, "spot")
    assert kueue.message(of_queue()) == "ClusterQueue a takes no pods: it references missing ResourceFlavors: spot"

    kueue.put(a_flavor("spot", {"kind": "spot"}))
    assert kueue.message(of_queue()) == ""


def test_what_is_wrong_with_an_object_is_said_of_it_and_harms_no_other() -> None:
    kueue = Kueue(
        a_queue("odd", groups=[{"spot": {"cpu": ["1 core"]}}]),
        a_queue("below", "odd"),
        a_cohort("odd", groups=[{"spot": {"cpu": ["?"]}}]),
        a_queue("negative", groups=[{"spot": {"cpu": ["-1"]}}]),
        a_queue("circle", "x"),
        a_cohort("x", "y"),
        a_cohort("y", "x"),
        a_queue("weightless", weight="-1"),
        a_queue("astronomic", groups=[{"spot": {"cpu": ["1e300"]}}]),
    )

    shares, problems = kueue.queues.declared()

    assert {each.name for each in shares} == {"ClusterQueue/a", "ClusterQueue/astronomic"}
    assert problems["ClusterQueue/odd"].startswith("its quotas cannot be read: ")
    assert problems["ClusterQueue/below"] == 'its ancestor "Cohort/odd" cannot be used'
    assert problems["ClusterQueue/negative"].startswith("its minimum of spot/cpu is -1000")
    assert problems["ClusterQueue/circle"] == 'its ancestor "Cohort/x" cannot be used'
    assert problems["Cohort/x"] == "its parents form a cycle: Cohort/x → Cohort/y → Cohort/x"
    assert problems["ClusterQueue/weightless"] == "its weight is -1.0: must not be negative"


def test_only_what_counts_of_an_object_is_a_change() -> None:
    kueue = Kueue()

    kueue.put(a_queue("a", groups=[TWO]))
    kueue.put(a_namespace("ns", team="a"))
    assert kueue.changes == 0

    kueue.put(a_queue("a", groups=[TWO], stopPolicy="Hold"))
    kueue.put(a_namespace("ns", team="b"))
    kueue.put(a_local_queue("ns", "q", "b"))
    assert kueue.changes == 3

    kueue.queues.close()
    kueue.put(a_cohort("all"))
    assert kueue.changes == 3


def test_pods_are_counted_where_a_queue_has_quota_for_them() -> None:
    kueue = Kueue(a_queue("few", groups=[{"spot": {"pods": ["2"]}}]), a_local_queue("ns", "few", "few"))
    pod = a_pod("p", namespace="ns", labels={api.QUEUE_LABEL: "few"})

    assert kueue.queues.wanted(*kueue.asked(pod)) == {"spot/pods": 1}
    assert kueue.amounts_of(a_pod("p", namespace="ns", labels=dict(pod.labels), node_name="n2")) == {"spot/pods": 1}
    assert kueue.message(pod, {"spot/pods": 1}) == ""
    assert kueue.message(pod, {"spot/pods": 2}) == (
        'share "ClusterQueue/few" has no space: 1 of spot/pods more than its nominalQuota'
    )


def test_a_resource_without_quota_keeps_a_pod_waiting() -> None:
    pod = a_pod("p", namespace="ns", requests={"example.com/gpu": 1}, labels={api.QUEUE_LABEL: "q"})

    assert Kueue().message(pod) == "resource example.com/gpu unavailable in ClusterQueue a"
