"""An API server in memory for the model test: the truth, and the watch events that have not arrived yet.

Events of one object arrive in order; between objects there is none. A binding is decided when the server gets to it,
and its answer arrives later still, before or after the watch reports it.
"""

from collections import deque
from collections.abc import Iterator

from scheduler import framework as fw
from tests.unit.cycle.fakes import EngineUnderTest, newer


class FakeCluster:
    def __init__(self, engine: EngineUnderTest) -> None:
        self.engine = engine
        self.pods: dict[str, fw.Pod] = {}
        self.nodes: dict[str, fw.Node] = {}
        self.on_the_way: dict[str, deque[tuple[str, fw.Pod | fw.Node]]] = {}
        """UID → what the watch has yet to report of an object, the oldest first."""
        self.decided: dict[str, Exception | None] = {}
        """UID → the answer to a binding, which has not arrived yet."""
        self.bound_by_us: set[str] = set()
        self.unruly: set[str] = set()
        """Names of nodes that may be overcommitted without our fault: they shrank, or another scheduler bound there."""

    # What users, kubelets and other schedulers do.

    def put(self, thing: fw.Pod | fw.Node) -> None:
        if isinstance(thing, fw.Pod):
            self.pods[thing.uid] = thing
        else:
            self.nodes[thing.name] = thing
        self._tell("changed", thing)

    def remove(self, thing: fw.Pod | fw.Node) -> None:
        if isinstance(thing, fw.Pod):
            del self.pods[thing.uid]
        else:
            del self.nodes[thing.name]
            self.unruly.add(thing.name)
            # Only the latest: an update of a node that comes after its successor's would hide that one till a list.
            self.on_the_way.pop(thing.metadata.uid, None)
        self._tell("deleted", thing)

    def bind_elsewhere(self, pod: fw.Pod, node_name: str) -> None:
        self.unruly.add(node_name)
        self.put(newer(pod, node_name=node_name))

    # What the server does.

    def undecided(self) -> list[str]:
        """UIDs of the bindings that the server has not looked at."""
        return [uid for uid in self.engine.world.hanging if uid not in self.decided]

    def decide_binding(self, uid: str, *, refuse: bool = False) -> None:
        pod, node_name = self.pods.get(uid), dict(self.engine.world.asked)[uid]
        if refuse or pod is None or pod.node_name or pod.is_deleting:
            self.decided[uid] = fw.BindRejected("the server says no")
            return
        assert uid not in self.bound_by_us, "bound twice"
        self.bound_by_us.add(uid)
        self.decided[uid] = None
        self.put(newer(pod, node_name=node_name))

    async def answer(self, uid: str) -> None:
        await self.engine.world.answer_binding(uid, self.decided.pop(uid))

    def deliver(self, uid: str) -> None:
        """Let the next event of one object arrive."""
        what, thing = self.on_the_way[uid].popleft()
        if not self.on_the_way[uid]:
            del self.on_the_way[uid]
        handlers = self.engine.handlers
        if isinstance(thing, fw.Pod):
            (handlers.pod_changed if what == "changed" else handlers.pod_deleted)(thing)
        else:
            (handlers.node_changed if what == "changed" else handlers.node_deleted)(thing)

    async def calm_down(self) -> None:
        """Let everything arrive that is on the way."""
        while self.on_the_way or self.engine.world.hanging:
            for uid in self.undecided():
                self.decide_binding(uid)
            for uid in tuple(self.decided):
                await self.answer(uid)
            for uid in tuple(self.on_the_way):
                self.deliver(uid)

    # What is true.

    def pods_on(self, node_name: str) -> Iterator[fw.Pod]:
        return (pod for pod in self.pods.values() if pod.node_name == node_name and not pod.is_terminated)

    def free_cpu(self, node: fw.Node) -> int:
        """In thousandths of a core; less than 0 if too much is there."""
        assert node.status.allocatable is not None
        return int(node.status.allocatable["cpu"]) * 1000 - sum(p.requests["cpu"] for p in self.pods_on(node.name))

    def _tell(self, what: str, thing: fw.Pod | fw.Node) -> None:
        self.on_the_way.setdefault(thing.metadata.uid, deque()).append((what, thing))
