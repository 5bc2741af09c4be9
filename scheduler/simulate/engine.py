"""The scheduler run over a cluster that is given as data: same tables, plugins, queue and loop, no API server.

A binding takes effect at once, and comes back as if the watch had reported it.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.config.types import Config
from scheduler.cycle.algorithm import Placed
from scheduler.cycle.engine import Engine, build_engine
from scheduler.cycle.writers import Writers
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.queued import QueuedPod
from scheduler.progress import SILENT, Progress
from scheduler.runtime.metrics import Metrics
from scheduler.runtime.plugin_faults import Fault
from scheduler.runtime.registry import Registry
from scheduler.runtime.tasks import Tasks
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.explain import Explainer
from scheduler.simulate.objects import OtherObject, OtherObjects
from scheduler.simulate.reads import SimulatedReader
from scheduler.simulate.writes import SimulatedApi

Result = dict[str, Any]
"""One pod of the JSON document: see `simulate`."""


def simulate(
    nodes: Iterable[Node],
    pods: Sequence[Pod],
    config: Config,
    registry: Registry,
    others: OtherObjects | None = None,
    *,
    each_alone: bool = False,
    explain: bool = False,
    progress: Progress = SILENT,
) -> dict[str, list[Result]]:
    """Schedule the pods without a node that name one of the profiles, in queue order, each seeing the earlier placed.

    The objects that plugins look up are taken out of `others`.
    With `each_alone` every pod is judged on the cluster as given, in the given order.

    Return {"pods": [{"namespace", "name", "node", "nominatedNode", "victims", "message", "gated"?, "nodes"?}]}: `gated`
    names the PreEnqueue plugin that holds the pod back; `nodes`, with `explain`, has the verdict on every node, as
    NodeVerdicts. How a plugin failed for a pod is in `fault`: {"plugin", "extensionPoint", "type", "at", "traceback"}.

    Raises ConfigError if a profile cannot be built, or an object that its plugins look up cannot be read.
    """
    cluster = SimulatedCluster(tuple(nodes), tuple(pods), others or OtherObjects())
    with simulation_of(cluster, config, registry, progress, shows_writes=not each_alone) as simulation:

        async def run() -> None:
            await simulation.start(explain=explain)
            await (simulation.judge_each() if each_alone else simulation.schedule_waiting())

        asyncio.run(run())
        return {"pods": list(simulation.results.values())}


class Simulation:
    """An engine over a cluster that is given as data, and what became of its pods."""

    def __init__(
        self, engine: Engine, tasks: Tasks, api: SimulatedApi, recording: "_RecordingWriters", progress: Progress
    ) -> None:
        self.engine = engine
        self.progress = progress
        self.api = api
        self.results = recording.results
        """UID → result, of the pods that have had their turn, or will have it."""
        self._tasks = tasks
        self._explainer: Explainer | None = None
        self._pending: list[Pod] = []

    async def start(self, *, explain: bool = False) -> None:
        """Take up the pods that wait. From then on no nodes come."""
        engine = self.engine
        for pod in tuple(engine.pods.values()):
            if not pod.node_name and pod.spec.scheduler_name in engine.frameworks:
                self._pending.append(pod)
                result = self.results.setdefault(pod.uid, _empty(pod))
                result |= {"nodes": {}} if explain else {}
        for queued in engine.queue.pending_pods()["gated"]:
            self.results[queued.pod.uid]["gated"] = queued.gating_plugin
        self._explainer = Explainer(engine.algorithm, engine.cache.table) if explain else None
        await self._tasks.do_once()  # plugins read what they read in the background

    async def judge_each(self) -> None:
        """Say of each pod where it would go, and change nothing."""
        for pod in self.progress.counted(self._pending, "judging pods", len(self._pending)):
            _judge(self.engine, pod, self.results[pod.uid], self._explainer)
            await _background()

    async def schedule_waiting(self) -> None:
        """Try each pod in the queue once: all are popped before the first is tried, whatever a placement may wake."""
        popped = self._pop_all()
        for queued in self.progress.counted(popped, "placing pods", len(popped)):
            await self._attempt(queued)

    def _pop_all(self) -> list[QueuedPod]:
        popped = []
        while (queued := self.engine.queue.pop_nowait()) is not None:
            popped.append(queued)
        return popped

    async def _attempt(self, queued: QueuedPod, *, explain: bool = True) -> None:
        pod = queued.pod
        framework = self.engine.frameworks[pod.spec.scheduler_name]
        if explain and self._explainer is not None and not pod.is_deleting:
            try:
                nodes = self._explainer.verdicts(framework, pod)
            except PluginError as error:
                self.results[pod.uid]["message"] = str(error)
            else:
                self.results[pod.uid]["nodes"] = nodes
        self.engine.loop.schedule_one(queued)
        await self.engine.loop.finish(seconds=PERMIT_SECONDS)
        await _background()

    def rest(self) -> None:
        """Take the pods out of the queue that have had their turn in vain, so that nothing wakes them again.

        Room that is being made for them stays theirs.
        """
        for uid, result in self.results.items():
            if uid in self.engine.queue:
                pod, node = self.engine.pods[uid], result["nominatedNode"]
                self.engine.queue.delete(uid)
                self.engine.nominator.add(pod, node or "")

    def placed(self) -> Iterator[Pod]:
        """Yield the pods that have found a node here."""
        return (self.engine.pods[uid] for uid, result in self.results.items() if result["node"] is not None)

    async def place(self, pod: Pod) -> Result:
        """Let a new pod come, and try it once. Nothing is said of it node by node."""
        result = self.come(pod)
        for queued in self._pop_all():
            await self._attempt(queued, explain=False)
        return result

    def add_objects(self, objects: Iterable[OtherObject]) -> None:
        """Let further objects come, as far as plugins look at them. Raises ConfigError."""
        for resource, obj in OtherObjects(objects).take(self.engine.watched):
            self.engine.object_handlers.object_changed(resource, obj)

    def come(self, pod: Pod) -> Result:
        """Let a new pod come, to be tried later."""
        result = self.results[pod.uid] = _empty(pod) | ({} if self._explainer is None else {"nodes": {}})
        self.engine.handlers.pod_changed(pod)
        queue = self.engine.queue
        if queue.pending_counts()["gated"]:
            gating = {queued.pod.uid: queued.gating_plugin for queued in queue.pending_pods()["gated"]}
            if pod.uid in gating:
                result["gated"] = gating[pod.uid]
        return result


@contextmanager
def simulation_of(
    cluster: SimulatedCluster,
    config: Config,
    registry: Registry,
    progress: Progress = SILENT,
    *,
    shows_writes: bool = True,
) -> Iterator[Simulation]:
    """A simulation of a cluster, to be used in an event loop. Raises ConfigError, as `simulate` does.

    `shows_writes`: whether what plugins write is visible to the next pod.
    """
    recording, api, metrics = _RecordingWriters(), SimulatedApi(), Metrics()
    writers = Writers(recording, recording, recording, recording, api, SimulatedReader(cluster.others))
    tasks = Tasks(metrics)
    engine = build_engine(config, registry, writers, metrics, lambda: 0.0, tasks)
    try:
        recording.bound = engine.handlers.pod_changed
        for framework in engine.frameworks.values():
            framework.faults.observer = recording.fault
        api.objects, api.observer = engine.objects, engine.object_handlers
        api.shows = shows_writes
        progress.doing("taking in nodes and pods")
        _take_in(engine, cluster)
        yield Simulation(engine, tasks, api, recording, progress)
    finally:
        engine.close()


def _take_in(engine: Engine, cluster: SimulatedCluster) -> None:
    for resource, obj in cluster.others.take(engine.watched):
        engine.object_handlers.object_changed(resource, obj)
    for node in cluster.nodes:
        engine.handlers.node_changed(node)
    for pod in cluster.pods:
        engine.handlers.pod_changed(pod)


@contextmanager
def engine_of(cluster: SimulatedCluster, config: Config, registry: Registry) -> Iterator[Engine]:
    """An engine that has seen a cluster, to be asked and not run. Raises ConfigError, as `simulate` does."""
    recording, api = _RecordingWriters(), SimulatedApi()
    engine = build_engine(
        config, registry, Writers(recording, recording, recording, recording, api), Metrics(), lambda: 0.0
    )
    try:
        _take_in(engine, cluster)
        yield engine
    finally:
        engine.close()


def _empty(pod: Pod) -> Result:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "node": None,
        "nominatedNode": None,
        "victims": [],
        "message": "",
    }


async def _background() -> None:
    """Wait for other tasks, such as evictions. In a simulation they take no time."""
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(tasks)


def _judge(engine: Engine, pod: Pod, result: Result, explainer: Explainer | None) -> None:
    """Record where one pod would go, and change nothing."""
    framework = engine.frameworks[pod.spec.scheduler_name]
    if pod.is_deleting or "gated" in result:
        return
    try:
        if explainer is not None:
            result["nodes"] = explainer.verdicts(framework, pod)
        decision = engine.algorithm.schedule(framework, CycleState(), pod)
    except PluginError as error:
        framework.faults.report(error, pod)
        result["message"] = str(error)
        return
    if isinstance(decision, Placed):
        result["node"] = decision.node_name
    else:
        result["message"] = decision.message
        result["nominatedNode"] = decision.nominated_node_name or None


PERMIT_SECONDS = 1.0
"""How long a Permit plugin may hold a pod in a simulation before it counts as waiting."""


class _RecordingWriters:
    """All writers of a simulation: they take effect at once, and record what became of each pod."""

    bound: Callable[[Pod], None]

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}

    def fault(self, pod: Pod, fault: Fault, trace: str) -> None:
        if pod.uid in self.results:
            self.results[pod.uid]["fault"] = {
                "plugin": fault.plugin,
                "extensionPoint": fault.point,
                "type": fault.kind,
                "at": fault.place,
                "traceback": trace,
            }

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        self.results[pod.uid]["node"] = node_name
        self.results[pod.uid]["message"] = ""
        self.bound(pod)
        return ""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        if reason == "FailedScheduling" and pod.uid in self.results:
            self.results[pod.uid]["message"] = note

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        self.results[pod.uid]["message"] = message
        self.results[pod.uid]["nominatedNode"] = nominated_node_name or None

    def nominate(self, pod: Pod, node_name: str) -> None:
        self.results[pod.uid]["nominatedNode"] = node_name

    def forget(self, pod: Pod) -> None:
        """Nothing is waiting to be sent."""

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Only record which pod would be evicted: the other pods see the cluster as given."""
        self.results[preemptor.uid]["victims"].append(str(victim))
        return True

    def clear_nomination(self, pod: Pod) -> None:
        """Nominations stay as they were given."""
