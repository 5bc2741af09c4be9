"""A cluster in memory for benchmarks of the cycle: an engine whose writers lead nowhere, nodes, and many pods.

Nodes are those of `loadmaster plugins bench`, pods ask for 100m and 500Mi, as scheduler_perf's do.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

import plugins
from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.config.load import config_from_dict
from scheduler.config.profiles import API_VERSION, KIND
from scheduler.cycle.writers import Writers
from scheduler.engine.engine import Engine, build_engine
from scheduler.framework import Plugin
from scheduler.plugin_tools.workload import HOSTNAME as HOSTNAME
from scheduler.plugin_tools.workload import ZONE as ZONE
from scheduler.plugin_tools.workload import node_name as node_name
from scheduler.plugin_tools.workload import numbered_node as numbered_node
from scheduler.process.metrics import Metrics
from scheduler.runtime.framework import Framework

Json = dict[str, Any]

PROFILE: Final = "loadmaster"


class NoWorld:
    """Writers to nowhere: no decision here gets as far as a binding. It notes who was to be evicted."""

    def __init__(self) -> None:
        self.victims: list[Pod] = []

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        raise AssertionError("decisions are not bound here")

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        if reason not in ("Preempted", "SlowPlugin"):  # slow on a machine that is busy with something else
            raise AssertionError(note)

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        raise AssertionError(message)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Nobody listens."""

    def forget(self, pod: Pod) -> None:
        """Nothing is kept."""

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        self.victims.append(victim)
        return True

    def clear_nomination(self, pod: Pod) -> None:
        """Nobody was nominated."""


class World:
    """An engine with the default profile, and what it believes to be the cluster."""

    def __init__(self, nodes: int, plugin: type[Plugin] | None = None, arguments: Json | None = None) -> None:
        """`plugin`: one that the profile has beside the default ones, with its arguments."""
        self.writers = NoWorld()
        writers = Writers(self.writers, self.writers, self.writers, self.writers)
        registry = {**plugins.IN_TREE, **({} if plugin is None else {plugin.name: plugin})}
        enabled = [] if plugin is None else [{"name": plugin.name}]
        of_plugin = [] if plugin is None or arguments is None else [{"name": plugin.name, "args": arguments}]
        profile = {
            "schedulerName": PROFILE,
            "plugins": {"multiPoint": {"enabled": enabled}},
            "pluginConfig": of_plugin,
        }
        config = config_from_dict({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, registry)
        self.engine: Engine = build_engine(config, registry, writers, Metrics(), time.monotonic)
        self.nodes = nodes
        for number in range(nodes):
            self.engine.handlers.node_changed(numbered_node(number))

    @property
    def framework(self) -> Framework:
        return self.engine.frameworks[PROFILE]

    def add_pods(self, pods: Iterable[Pod]) -> None:
        """Let pods run: the first on the first node, and so on around, beginning one node later in each round.

        So pods of one app do not meet on a node before the numbers of apps and of nodes have come around together.
        """
        for number, pod in enumerate(pods):
            node = (number + number // self.nodes) % self.nodes
            self.engine.handlers.pod_changed(bound(pod, node_name(node)))

    def add_objects(self, objects: Iterable[tuple[str, Any]]) -> None:
        """Let other objects be there, given as (event resource, object). What no plugin watches is left out."""
        for resource, each in objects:
            if resource in self.engine.watched:
                self.engine.object_handlers.object_changed(resource, each)


def decoded_pod(
    name: str, spec: Json | None = None, *, app: str = "", namespace: str = "default", cpu: str = "100m"
) -> Pod:
    """Decode a pod with what `spec` says besides the usual; `app` is its label, if it has one."""
    return pod_from_dict(pod_dict(name, spec, app=app, namespace=namespace, cpu=cpu))


def pod_dict(
    name: str, spec: Json | None = None, *, app: str = "", namespace: str = "default", cpu: str = "100m"
) -> Json:
    """The same as the API server has it."""
    requests = {"cpu": cpu, "memory": "500Mi"}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    if app:
        metadata["labels"] = {"app": app}
    whole = {"schedulerName": PROFILE, "containers": [container], **(spec or {})}
    return {"metadata": metadata, "spec": whole}


def sibling(pod: Pod, name: str) -> Pod:
    """Another pod of the same shape, at a tenth of what it costs to decode one. What was derived is shared."""
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"uid-{name}"))


def bound(pod: Pod, node: str) -> Pod:
    """The pod as the watch shows it once it runs."""
    return replace(pod.bound_to(node), status=replace(pod.status, phase="Running"))
