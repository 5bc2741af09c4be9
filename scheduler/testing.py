"""The plugin author's test kit: pods and nodes in one line, by keyword.

    pod = a_pod(requests={"cpu": "500m"}, tolerations=[Toleration(key="gpu", operator="Exists")])
    node = a_node("worker-1", cpu="8", labels={"zone": "a"}, taints=[Taint(key="gpu", effect="NoSchedule")])
    budget = an_object("shop", namespace="web", spec={"pool": "blue"})
    handle = a_handle(nodes, {"budgets.v1.example.com": [budget]})

What is left out is what the API server fills in, or nothing. For anything without a keyword here there are
`pod_from_dict` and `node_from_dict`, which take what stands in a manifest.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from scheduler.api.objects import (
    Affinity,
    Container,
    ContainerImage,
    ContainerPort,
    Node,
    NodeAffinity,
    NodeMeta,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    ResourceList,
    ResourceRequirements,
    Taint,
    Toleration,
    Volume,
)
from scheduler.api.objects import node_from_dict as node_from_dict
from scheduler.api.pod import Pod
from scheduler.api.pod import pod_from_dict as pod_from_dict
from scheduler.api.unstructured import Unstructured
from scheduler.framework.handle import Handle, Listener, ObjectLister
from scheduler.framework.plugin import Plugin
from scheduler.runtime.handle import EngineHandle, PluginColumns
from scheduler.runtime.live_nodes import LiveNodes
from scheduler.runtime.metrics import Metrics
from scheduler.runtime.waiting import WaitingPods
from scheduler.state.nominator import Nominator

Quantity = str | int
P = TypeVar("P", bound=Plugin)


def a_container(
    name: str = "main",
    *,
    image: str = "registry.example/app:1",
    requests: Mapping[str, Quantity] | None = None,
    ports: Iterable[ContainerPort] = (),
    sidecar: bool = False,
) -> Container:
    """Make a container; with `sidecar`, an init container that goes on running."""
    return Container(
        name=name,
        image=image,
        resources=_requirements(requests),
        ports=tuple(ports) or None,
        restart_policy="Always" if sidecar else None,
    )


def a_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, Quantity] | None = None,
    ports: Iterable[ContainerPort] = (),
    containers: Iterable[Container] = (),
    init_containers: Iterable[Container] = (),
    overhead: Mapping[str, Quantity] | None = None,
    pod_requests: Mapping[str, Quantity] | None = None,
    priority: int | None = None,
    node_name: str = "",
    node_selector: Mapping[str, str] | None = None,
    node_affinity: NodeAffinity | None = None,
    tolerations: Iterable[Toleration] = (),
    volumes: Iterable[Volume] = (),
    gates: Iterable[str] = (),
    scheduler_name: str = "default-scheduler",
    status: PodStatus | None = None,
) -> Pod:
    """Make a pod with one container that has `requests` and `ports`, or with `containers` instead.

    `pod_requests` are those of the pod as a whole. The UID is made from namespace and name unless given.
    """
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace=namespace, uid=uid or f"{namespace}/{name}", labels=dict(labels) if labels else None
        ),
        spec=PodSpec(
            node_name=node_name,
            scheduler_name=scheduler_name,
            priority=priority,
            node_selector=None if node_selector is None else dict(node_selector),
            affinity=None if node_affinity is None else Affinity(node_affinity=node_affinity),
            tolerations=tuple(tolerations) or None,
            containers=tuple(containers) or (a_container(requests=requests, ports=ports),),
            init_containers=tuple(init_containers) or None,
            overhead=_amounts(overhead),
            resources=_requirements(pod_requests),
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates) or None,
            volumes=tuple(volumes) or None,
        ),
        status=status or PodStatus(),
    )


def a_node(
    name: str = "node",
    *,
    cpu: Quantity = "4",
    memory: Quantity = "16Gi",
    pods: Quantity = 110,
    allocatable: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Node:
    """Make a node. `allocatable` is laid over cpu, memory and pods; `images` are names with their bytes."""
    return Node(
        metadata=NodeMeta(
            name=name,
            uid=name,
            labels=dict(labels) if labels else None,
            annotations=dict(annotations) if annotations else None,
        ),
        spec=NodeSpec(unschedulable=unschedulable, taints=tuple(taints) or None),
        status=NodeStatus(
            allocatable={"cpu": cpu, "memory": memory, "pods": pods, **(allocatable or {})},
            images=tuple(ContainerImage(names=(image,), size_bytes=size) for image, size in (images or {}).items())
            or None,
        ),
    )


def a_requirement(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    """Make one requirement of a node selector term: `a_requirement("zone", "In", "a", "b")`."""
    return NodeSelectorRequirement(key=key, operator=operator, values=values or None)


def a_term(*expressions: NodeSelectorRequirement, fields: Iterable[NodeSelectorRequirement] = ()) -> NodeSelectorTerm:
    """Make a term of `matchExpressions` and, by keyword, `matchFields`."""
    return NodeSelectorTerm(match_expressions=expressions or None, match_fields=tuple(fields) or None)


def required(*terms: NodeSelectorTerm) -> NodeAffinity:
    """Make a node affinity that requires any of the terms."""
    return NodeAffinity(required=NodeSelector(node_selector_terms=terms))


def preferred(*weighted: tuple[int, NodeSelectorTerm]) -> NodeAffinity:
    """Make a node affinity that prefers each of the terms by its weight."""
    return NodeAffinity(
        preferred=tuple(PreferredSchedulingTerm(weight=weight, preference=term) for weight, term in weighted)
    )


def an_object(
    name: str,
    *,
    namespace: str = "",
    uid: str = "",
    version: int | None = None,
    labels: Mapping[str, str] | None = None,
    **content: Any,
) -> Unstructured:
    """Make an object of a custom resource: `an_object("shop", namespace="web", spec={"pool": "blue"})`.

    `version` is its resource version. The UID is made from namespace and name unless given.
    """
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid or f"{namespace}/{name}"}
    if version is not None:
        metadata["resourceVersion"] = str(version)
    if labels is not None:
        metadata["labels"] = dict(labels)
    return Unstructured.from_dict({**content, "metadata": metadata})


class Objects:
    """A `handle.objects` that has what it is given: resource, as in events and `reads`, → objects, anew by `put`."""

    def __init__(self, objects: Mapping[str, Iterable[Any]]) -> None:
        self._objects = {resource: list(each) for resource, each in objects.items()}
        self._versions = dict.fromkeys(self._objects, 0)
        self._listeners: dict[str, list[Listener]] = {}

    def put(self, resource: str, *objects: Any) -> None:
        """Have these objects, and no others, of a resource."""
        before = self._objects.get(resource, [])
        self._objects[resource] = list(objects)
        self._versions[resource] = self._versions.get(resource, 0) + 1
        old = {each.metadata.uid: each for each in before}
        new = {each.metadata.uid: each for each in objects}
        for uid in {**old, **new}:
            if old.get(uid) is not new.get(uid):
                for listener in self._listeners.get(resource, ()):
                    listener(old.get(uid), new.get(uid))

    def get(self, resource: str, name: str, namespace: str = "") -> Any | None:
        found = (each for each in self.list(resource, namespace) if each.metadata.name == name)
        return next(found, None)

    def list(self, resource: str, namespace: str | None = None) -> Collection[Any]:
        if resource not in self._objects:
            raise LookupError(f"{resource!r} is not watched: the test gave no objects of it")
        return [each for each in self._objects[resource] if namespace in (None, each.metadata.namespace)]

    def version(self, resource: str) -> int:
        self.list(resource)
        return self._versions[resource]

    def listen(self, resource: str, listener: Listener) -> None:
        self._listeners.setdefault(resource, []).append(listener)
        for each in self._objects.get(resource, []):
            listener(None, each)


def started(plugin: P, handle: Handle) -> P:
    """Return `plugin`, started as the scheduler starts it."""
    plugin.start(handle)
    return plugin


def a_handle(nodes: LiveNodes, objects: Mapping[str, Iterable[Any]] | ObjectLister | None = None) -> EngineHandle:
    """Make a plugin's `handle` over some nodes and objects; pods are not nominated, not on hold, and bound nowhere."""
    lister = Objects(objects or {}) if objects is None or isinstance(objects, Mapping) else objects
    silent = _Silent()
    return EngineHandle(
        profile_name="default-scheduler",
        nodes=nodes,
        nominator=Nominator(),
        activator=silent,
        waiting_pods=WaitingPods(),
        binder=silent,
        events=silent,
        objects=lister,
        pods={},
        evictor=silent,
        metrics=Metrics(),
        columns=PluginColumns(nodes),
    )


class _Silent:
    """The parts of a handle that a plugin's test has no use for."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Nothing is bound."""

    def activate(self, uids: Iterable[str]) -> None:
        """Nobody is waiting."""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Nobody is listening."""

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Nobody has to go."""
        return False

    def clear_nomination(self, pod: Pod) -> None:
        """Nobody was nominated."""


def _requirements(requests: Mapping[str, Quantity] | None) -> ResourceRequirements | None:
    return None if requests is None else ResourceRequirements(requests=_amounts(requests))


def _amounts(amounts: Mapping[str, Quantity] | None) -> ResourceList | None:
    return None if amounts is None else dict(amounts)
