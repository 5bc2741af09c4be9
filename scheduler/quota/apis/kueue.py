"""Quotas of pods from Kueue's objects, where Kueue itself does not manage the pods.

    pod, label kueue.x-k8s.io/queue-name ─► LocalQueue of its namespace ─► ClusterQueue ─► Cohort ─► Cohort …

A pod without the label belongs to the LocalQueue `default` of its namespace, if there is one. Pods that Kueue manages
are refused, so a pod never has two authorities; running ones are counted like all pods of their queue.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from scheduler.api.objects import ObjectMeta, labels_of
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import PODS
from scheduler.api.quota import kueue as api
from scheduler.api.read_only import NOTHING
from scheduler.api.wording.text import shortened
from scheduler.framework.events import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR
from scheduler.framework.shares import NodeKind, ShareKey, ShareRefusal
from scheduler.quota.adapter import Adapter, Asked
from scheduler.quota.apis.kueue_flavors import (
    NoFlavor,
    alternatives,
    choose,
    flavor_of_node,
    keyed,
    nodes_of,
    parts_of,
    unsuitable,
)
from scheduler.quota.apis.kueue_quotas import (
    CLUSTER_QUEUE_PREFIX,
    MAX_SHOWN,
    Flavor,
    Group,
    Queue,
    Quotas,
    is_stopped,
    quotas_of,
    resource_of,
    with_amounts,
)
from scheduler.quota.policies import NOTHING_EVICTED, Preemption
from scheduler.quota.sentences import refused
from scheduler.quota.tree import Share, ShareTree
from scheduler.state.objects import ObjectStore

LOCAL_QUEUE_PREFIX: Final = "LocalQueue/"

_OF_QUOTAS: Final = (CLUSTER_QUEUE, COHORT, RESOURCE_FLAVOR)
"""Declare quotas; LocalQueues and namespaces only say whose they are."""

_READ: Final = (*_OF_QUOTAS, LOCAL_QUEUE, NAMESPACE)


class Said(NamedTuple):
    """The parts of a pod that say where it counts."""

    local_queue: str | None
    """As its label says; None without."""

    cluster_queue: str = ""
    """Behind that; empty if there is none."""

    flavors: tuple[str, ...] = ()
    """Of a pod without a node: those of the ClusterQueue that suit it."""

    node: tuple[tuple[str, str], ...] | None = None
    """The labels of its node that flavors name; None without a node. A pod that has one stays with its ClusterQueue: a
    LocalQueue that is deleted sets no pod free."""


class KueueQueues(Adapter):
    """The shares of Kueue's objects."""

    source = CLUSTER_QUEUE

    def __init__(self, objects: ObjectStore, labels_of_node: Callable[[str], Mapping[str, str]]) -> None:
        super().__init__()
        self._objects = objects
        self._labels_of_node = labels_of_node
        self._quotas: Quotas | None = None

    @property
    def quotas(self) -> Quotas:
        """All that the objects declare: the same until one changes."""
        if self._quotas is None:
            flavors = {each.metadata.name: each for each in self._all(RESOURCE_FLAVOR)}
            self._quotas = quotas_of(self._all(CLUSTER_QUEUE), self._all(COHORT), flavors)
        return self._quotas

    @property
    def reads(self) -> Hashable:
        return self.source, self.quotas.node_labels

    def declared(self) -> tuple[Sequence[Share], Mapping[str, str]]:
        quotas = self.quotas
        return quotas.shares, quotas.problems

    def said(self, pod: Pod) -> Hashable:
        labels = labels_of(pod.metadata)
        name = None if labels is None else labels.get(api.QUEUE_LABEL)
        local = self._local_queue(pod.namespace, name)
        if local is None:
            return None if name is None else Said(name)
        cluster_queue = local.spec.cluster_queue
        if pod.node_name:
            return Said(name, cluster_queue, node=self._labels_of(pod.node_name))
        queue = self.quotas.queues.get(cluster_queue)
        groups = () if queue is None else queue.groups
        suitable = [each.name for group in groups for each in group.flavors if not unsuitable(each, pod)]
        return Said(name, cluster_queue, tuple(suitable))

    def find(self, namespace: str, said: Hashable) -> str:
        if not isinstance(said, Said):
            return ""
        if said.node is not None:
            return f"{CLUSTER_QUEUE_PREFIX}{said.cluster_queue}"
        local = self._local_queue(namespace, said.local_queue)
        if local is not None:
            return f"{CLUSTER_QUEUE_PREFIX}{local.spec.cluster_queue}"
        return "" if said.local_queue is None else f"{LOCAL_QUEUE_PREFIX}{namespace}/{said.local_queue}"

    def amounts(self, said: Hashable, requests: Mapping[str, int], pods: int) -> Mapping[str, int]:
        queue = self.quotas.queues.get(said.cluster_queue) if isinstance(said, Said) else None
        if queue is None or not isinstance(said, Said):
            return NOTHING
        labels = dict(said.node or ())
        amounts: dict[str, int] = {}
        for group, wanted in parts_of(queue, {**requests, PODS: pods}):
            if group is not None:
                amounts |= keyed(flavor_of_node(group, labels).name, wanted)
        return amounts

    def wanted(self, tree: ShareTree, name: str, asked: Asked) -> Mapping[str, int]:
        try:
            return self._wanted(tree, name, asked)
        except NoFlavor:
            return NOTHING

    def nodes_for(self, tree: ShareTree, name: str, asked: Asked) -> NodeKind | None:
        try:
            return nodes_of(self._chosen(tree, name, asked))
        except NoFlavor:
            return None

    def refusal(self, tree: ShareTree, name: str, asked: Asked) -> ShareRefusal | None:
        queue = self.quotas.queues.get(name.removeprefix(CLUSTER_QUEUE_PREFIX))
        if queue is None:  # of a Cohort, or gone: no pod's share leads here
            return ShareRefusal(ShareKey(self.source, name), f'share "{name}" cannot be used: it does not exist')
        if problem := self._problem(asked.need.pod, queue):
            return ShareRefusal(ShareKey(self.source, name), problem)
        try:
            amounts = self._wanted(tree, name, asked)
        except NoFlavor as error:
            return ShareRefusal(ShareKey(self.source, name), shortened(str(error), 5 * MAX_SHOWN))
        if tree.fits(name, amounts):
            return None
        others = alternatives(queue, _counted(asked), asked.need.pod)
        return refused(ShareKey(self.source, name), tree, amounts, asked.need.pods, others)

    @property
    def evicts(self) -> bool:
        return any(each.preemption.evicts for each in self.quotas.queues.values())

    def preemption(self, name: str) -> Preemption:
        queue = self.quotas.queues.get(name.removeprefix(CLUSTER_QUEUE_PREFIX))
        return NOTHING_EVICTED if queue is None else queue.preemption

    def object_of(self, name: str) -> tuple[str, ObjectMeta] | None:
        kind, _, of_object = name.partition("/")
        source = CLUSTER_QUEUE if f"{kind}/" == CLUSTER_QUEUE_PREFIX else COHORT
        found = next((each for each in self._all(source) if each.metadata.name == of_object), None)
        return None if found is None else (source, found.metadata)

    def resource_of(self, key: str) -> str:
        return resource_of(key)

    def on_nodes(self, resource: str) -> str:
        return ""  # a flavor's part of it

    def listen(self, changed: Callable[[Share | None], None]) -> None:
        def object_changed(resource: str, old: Any, new: Any) -> None:
            if old is not None and new is not None and _declared(old) == _declared(new):
                return
            before, found = self._quotas, None
            if before is not None and isinstance(new, api.ClusterQueue):
                found = with_amounts(before, new)
            if resource in _OF_QUOTAS:
                self._quotas = None if found is None else found[0]
            changed(None if found is None else found[1])

        self._ends = [self._objects.subscribe(each, partial(object_changed, each)) for each in _READ]

    # Internals.

    def _wanted(self, tree: ShareTree, name: str, asked: Asked) -> dict[str, int]:
        """Return the requested amounts, of the best flavors now. Raises NoFlavor."""
        requests = _counted(asked)
        amounts: dict[str, int] = {}
        for group, flavor in self._chosen(tree, name, asked):
            amounts |= keyed(flavor.name, {each: requests[each] for each in requests if each in group.covered})
        return amounts

    def _chosen(self, tree: ShareTree, name: str, asked: Asked) -> list[tuple[Group, Flavor]]:
        queue = self.quotas.queues.get(name.removeprefix(CLUSTER_QUEUE_PREFIX))
        if queue is None:
            raise NoFlavor(f"{name} does not exist")
        requests = _counted(asked)
        if not any(PODS in group.covered for group in queue.groups):
            del requests[PODS]
        return choose(queue, requests, asked.need.pod, tree)

    def _problem(self, pod: Pod, queue: Queue) -> str:
        """Say why a pod waits whatever is free; empty if it does not."""
        if is_managed(pod):
            return (
                f"Kueue manages this pod, it has the label {api.MANAGED_LABEL} or the gate {api.ADMISSION_GATE}: "
                "such pods need a profile that does not take quotas from Kueue's objects"
            )
        if queue.problem:
            return f"ClusterQueue {queue.name} takes no pods: {queue.problem}"
        labels = labels_of(pod.metadata)
        local = self._local_queue(pod.namespace, None if labels is None else labels.get(api.QUEUE_LABEL))
        if local is not None and is_stopped(local.spec.stop_policy):
            policy = shortened(str(local.spec.stop_policy), MAX_SHOWN)
            return f"LocalQueue {local.metadata.name} takes no pods: it is stopped, its stopPolicy is {policy}"
        namespace = self._objects.get(NAMESPACE, pod.namespace)
        if not queue.namespaces.matches(None if namespace is None else labels_of(namespace.metadata)):
            return f"namespace {pod.namespace} does not match the namespaceSelector of ClusterQueue {queue.name}"
        return ""

    def _local_queue(self, namespace: str, label: str | None) -> api.LocalQueue | None:
        try:
            found: api.LocalQueue | None = self._objects.get(LOCAL_QUEUE, label or api.DEFAULT_QUEUE, namespace)
        except LookupError:  # no profile watches them (any more)
            return None
        return found

    def _labels_of(self, node: str) -> tuple[tuple[str, str], ...]:
        keys = self.quotas.node_labels
        labels = self._labels_of_node(node) if keys else {}
        return tuple([(key, labels[key]) for key in keys if key in labels])

    def _all(self, resource: str) -> Sequence[Any]:
        try:
            return tuple(self._objects.list(resource))
        except LookupError:  # no profile watches it (any more)
            return ()


def is_managed(pod: Pod) -> bool:
    """Say whether Kueue manages a pod: by the label that it sets, or by the gate that it takes away."""
    labels = labels_of(pod.metadata)
    return (labels is not None and api.MANAGED_LABEL in labels) or any(
        each.name == api.ADMISSION_GATE for each in pod.spec.scheduling_gates or ()
    )


def _counted(asked: Asked) -> dict[str, int]:
    return {**asked.need.requests, PODS: asked.need.pods}


def _declared(found: Any) -> tuple[Any, ...]:
    """Return what of an object counts here: Kueue writes its status all the time."""
    metadata = found.metadata
    labels = None if hasattr(found, "spec") else labels_of(metadata)  # of a namespace
    return metadata.uid, getattr(found, "spec", None), labels, metadata.deletion_timestamp is None
