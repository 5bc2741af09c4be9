"""The state at the start of a recording: noted in one step, written bit by bit while the scheduler works on."""

from collections.abc import Iterator

import msgspec

from scheduler.api.pod import Pod
from scheduler.cycle.engine import Engine
from scheduler.replay.trace import lines


class StateAtStart:
    """All that decisions read, at the moment it is made. Pods and objects are never changed, only replaced."""

    def __init__(self, engine: Engine) -> None:
        """A few milliseconds for tens of thousands of pods, as nothing is copied but references."""
        cache, table = engine.cache, engine.cache.table
        self._names, self._free = table.layout()
        self._nodes = [node for name in self._names if name and (node := table.node(name)) is not None]
        self._resting = cache.resting
        self._objects = {resource: list(engine.objects.known(resource).values()) for resource in engine.watched}
        self._pods = list(engine.pods.values())
        # By row, and in the order in which a row has them: both matter to preemption.
        self._counted = [list(table.pods_on(name)) for name in self._names if name]
        self._shown = {id(pod) for pod in self._pods}
        self._assumed = {pod.uid for pod in cache.assumed_pods()}
        self._nominations = [(node_name, list(pods)) for node_name, pods in engine.nominator.by_node()]

    def lines(self) -> Iterator[lines.Line]:
        """Yield them in the order in which they are to be taken in."""
        yield lines.Layout(0, self._names, self._free)
        for resource, objects in self._objects.items():
            for each in objects:
                yield lines.SetObject(0, resource, lines.written(each))
        for node in self._nodes:
            yield lines.SetNode(0, lines.written(node))
        for name in self._resting:
            yield lines.Quarantine(0, name)
        for pod in self._pods:
            yield lines.SetPod(0, lines.written(pod))
        for pods in self._counted:
            for pod in pods:
                # The version that counts may be ours, with the node that it is assumed on.
                yield lines.Count(0, pod.uid, pod.uid in self._assumed, self._own(pod))
        for node_name, pods in self._nominations:
            for pod in pods:
                yield lines.Nominate(0, pod.uid, node_name, self._own(pod))
        yield lines.Begin(0)

    def _own(self, pod: Pod) -> msgspec.Raw:
        return lines.NOTHING if id(pod) in self._shown else lines.written(pod)
