"""A cluster in memory, the handle over it that a plugin is started with, and the profile that the plugin is in."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.framework.errors import ConfigError
from scheduler.framework.handle import Handle, Listener, ObjectLister
from scheduler.framework.nodes.nodes import NodeInfo
from scheduler.framework.nodes.resources import resource_problems, resources_to_watch
from scheduler.framework.plugin import Plugin
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.runtime.handle import EngineHandle, PluginColumns
from scheduler.runtime.live_nodes import LiveNodes
from scheduler.runtime.profile import POINTS, ProfilePlugins, point_problems
from scheduler.runtime.waiting import WaitingPods
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.nominator import Nominator
from scheduler.testing.objects import as_kept

P = TypeVar("P", bound=Plugin)

GivenObjects = Mapping[str, Iterable[Any]] | ObjectLister | None
"""Resource, as in events and `reads`, → its objects."""

DEFAULTS: Final = {"queue_sort": "PrioritySort", "bind": "DefaultBinder"}
"""Extension points that no profile is without, and who is there by default."""


class Cluster(NodeTable):
    """The scheduler's own table of nodes: what plugins get as `nodes`."""

    def __getitem__(self, name: str) -> NodeInfo:
        """Return one node, with the pods on it. Raises KeyError if there is none of that name."""
        row = self.row_of(name)
        if row is None:
            raise KeyError(name)
        return self.info(row)

    def as_kept(self, *, raw: bool) -> "Cluster":
        """The same nodes in the same rows, with their pods as they are kept where plugins read raw pods, or do not."""
        if all(bool(pod.raw_json) == raw for name in self._names_in_use() for pod in self.pods_on(name)):
            return self
        copy = Cluster(capacity=self.size)
        copy.lay_out(*self.layout())
        for name in self._names_in_use():
            node = self.node(name)
            if node is not None:
                copy.set_node(node)
            for pod in self.pods_on(name):
                copy.add_pod(name, as_kept(pod, raw=raw))
        return copy

    def _names_in_use(self) -> Sequence[str]:
        return (*self.node_names(), *self.placeholder_names())


def a_cluster(*nodes: Node, pods: Mapping[str, Iterable[Pod]] | None = None) -> Cluster:
    """Make a cluster of nodes, with the pods that run on them by node name."""
    cluster = Cluster(capacity=4)
    for node in nodes:
        cluster.set_node(node)
    for name, on_node in (pods or {}).items():
        for pod in on_node:
            cluster.add_pod(name, pod)
    return cluster


class Objects:
    """A `handle.objects` with the given objects, by resource as in events and `reads`; `put` replaces them."""

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

    def listen(self, resource: str, listener: Listener, reset: Callable[[], None] | None = None) -> None:
        self._listeners.setdefault(resource, []).append(listener)
        for each in self._objects.get(resource, []):
            listener(None, each)


def started(plugin: P, handle: Handle) -> P:
    """Return `plugin`, started as the scheduler starts it. Raises ConfigError for resources that there cannot be."""
    plugin.start(handle)
    if problems := list(resource_problems(plugin)):
        raise ConfigError(problems)
    return plugin


def check_objects(plugin: Plugin, objects: GivenObjects) -> None:
    """Raise LookupError for objects that the scheduler would not watch for a started plugin."""
    named = resources_to_watch([plugin])
    for resource in objects if isinstance(objects, Mapping) else ():
        if resource not in named:
            raise LookupError(f"{resource!r} is not watched: no event of the plugin names it, nor do its `reads`")


def a_handle(nodes: LiveNodes, objects: GivenObjects = None) -> EngineHandle:
    """Make a plugin's `handle` over some nodes and objects; pods are not nominated, not on hold, and bound nowhere."""
    lister = Objects(objects or {}) if objects is None or isinstance(objects, Mapping) else objects
    silent, metrics = _Silent(), Metrics()
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
        metrics=metrics,
        columns=PluginColumns(nodes),
        tasks=Tasks(metrics),
    )


class _Silent:
    """The parts of a handle that a plugin's test has no use for."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Nothing is bound."""

    def activate(self, uids: Iterable[str]) -> None:
        """No pods that wait."""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """No listeners."""

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """No victims."""
        return False

    def clear_nomination(self, pod: Pod) -> None:
        """No nominated pods."""


def profile_of(*plugins: Plugin) -> ProfilePlugins:
    """A profile with these plugins at each point that they extend, in this order, each with the weight 1.

    Where none of them sorts the queue or binds, the default plugin does. Raises ConfigError as `build` does.
    """
    missing = [name for point, name in DEFAULTS.items() if not any(isinstance(each, POINTS[point]) for each in plugins)]
    every = (*plugins, *(in_tree()[name]() for name in missing))
    at = {point: tuple(plugin for plugin in every if isinstance(plugin, kinds)) for point, kinds in POINTS.items()}
    if problems := list(point_problems(at)):
        raise ConfigError(problems)
    weights = {plugin.name: 1 for plugin in every}
    return ProfilePlugins(at, weights, {plugin.name: plugin for plugin in every}, weights)
