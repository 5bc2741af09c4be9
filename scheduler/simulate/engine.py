"""The scheduler run over a cluster that is given as data: same tables, plugins, queue and loop, no API server.

A binding takes effect at once, and comes back as if the watch had reported it. Time passes only where pods wait for it:

    each pod in turn ─► placed, refused, or on hold in Permit while the others have their turn
    time passes ──────► timers of plugins go off, until the next is the time-out of a pod on hold
    if others found no node, or pods on hold were rejected: these are rejected at their time-outs,
        and what the queue wakes then has another turn, once
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final, TypeVar

from msgspec import to_builtins
from msgspec.structs import replace

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.config.types import Config
from scheduler.cycle.algorithm import Placed
from scheduler.cycle.writers import Writers
from scheduler.engine.engine import Engine, build_engine
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import ConfigError, PluginError
from scheduler.framework.queued import EntityKey, Entry, pods_of
from scheduler.groups.apis.owners import named_by
from scheduler.process.metrics import Metrics
from scheduler.process.progress import SILENT, Progress
from scheduler.process.tasks import Tasks, cancel_all
from scheduler.process.virtual_time import NeverAtRest, VirtualTimeLoop
from scheduler.runtime.registry import Registry
from scheduler.simulate.apiserver.defaults import DEFAULT_SCHEDULER
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.node_evaluator import NodeEvaluator
from scheduler.simulate.on_hold import PodsOnHold
from scheduler.simulate.other_objects import OtherObject, OtherObjects, SimulatedReader
from scheduler.simulate.recording import RecordingWriters, Result
from scheduler.state.simulated_api import SimulatedApi

T = TypeVar("T")

MAX_TASKS: Final = 5
"""How many tasks that never wait are named."""

BACKOFF_SECONDS: Final = 1.0
"""Between two looks at the pods whose backoff may be over."""


def adopted(pods: Iterable[Pod], config: Config) -> Iterable[Pod]:
    """Give the first profile the pods that ask for no scheduler in particular, unless others of their group do."""
    pods, names = tuple(pods), [profile.scheduler_name for profile in config.profiles]
    asking = {(pod.namespace, named_by(pod)) for pod in pods if pod.spec.scheduler_name in names and named_by(pod)}
    for pod in pods:
        is_free = pod.spec.scheduler_name == DEFAULT_SCHEDULER and DEFAULT_SCHEDULER not in names
        if is_free and (pod.namespace, named_by(pod)) not in asking:
            spec = replace(pod.spec, scheduler_name=names[0])
            pod = replace(pod, spec=spec)
        yield pod


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
    With `each_alone` every pod is decided on the cluster as given, in the given order.

    Return {"groups"?: [of pods: see explain.documents.GroupReport, and "fits", see prospects], "pods": [{"namespace",
    "name", "node", "nominatedNode", "victims", "message", "gated"?, "permit"?, "nodes"?}]}: `gated` names the
    PreEnqueue plugin that holds the pod back; `permit` says where a pod waits for Permit plugins: {"node", "plugins":
    [{"plugin", "message", "secondsLeft"}]}; `nodes`, with `explain`, has the verdict on every node, as NodeVerdicts.
    How a plugin failed for a pod is in `fault`: {"plugin", "extensionPoint", "type", "at", "traceback"}.

    Raises ConfigError if a profile cannot be built, or an object that its plugins look up cannot be read.
    """
    cluster = SimulatedCluster(tuple(nodes), tuple(pods), others or OtherObjects())
    with simulation_of(cluster, config, registry, progress, shows_writes=not each_alone) as simulation:

        async def run() -> None:
            await simulation.start(explain=explain)
            await (simulation.decide_each() if each_alone else simulation.schedule_waiting())

        simulation.run(run())
        return {**simulation.groups(), "pods": list(simulation.results.values())}


class Simulation:
    """An engine over a cluster that is given as data, and the outcomes of its pods."""

    def __init__(
        self,
        engine: Engine,
        tasks: Tasks,
        api: SimulatedApi,
        recording: RecordingWriters,
        progress: Progress,
        event_loop: VirtualTimeLoop,
    ) -> None:
        self.engine = engine
        self.progress = progress
        self.api = api
        self.results = recording.results
        """UID → result, of the pods that have had their turn, or will have it."""
        self._tasks = tasks
        self._evaluator: NodeEvaluator | None = None
        self._pending: list[Pod] = []
        self._event_loop = event_loop
        self.on_hold = PodsOnHold(engine, event_loop, self.results)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do `work` in the simulation's time, say of the pods that wait then for what, and end whatever goes on.

        Raises ConfigError if a task of a plugin never waits.
        """
        return self._event_loop.run_until_complete(self._to_the_end(work))

    async def _to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            result = await work
            self.on_hold.show()
        except NeverAtRest as error:
            raise ConfigError([f"the simulation does not come to rest: {_tasks_at_work()}"]) from error
        else:
            await cancel_all(asyncio.all_tasks() - {asyncio.current_task()})
            return result

    async def start(self, *, explain: bool = False) -> None:
        """Take up the pods that wait. From then on no nodes come."""
        engine = self.engine
        for pod in tuple(engine.pods.values()):
            if not pod.node_name and pod.spec.scheduler_name in engine.frameworks:
                self._pending.append(pod)
                result = self.results.setdefault(pod.uid, _empty(pod))
                result |= {"nodes": {}} if explain else {}
        self._note_gates(self._pending)
        self._evaluator = NodeEvaluator(engine.algorithm, engine.cache.table) if explain else None
        await self._tasks.do_once()  # plugins read what they read in the background

    async def decide_each(self) -> None:
        """Say of each pod where it would go, and change nothing."""
        for pod in self.progress.counted(self._pending, "judging pods", len(self._pending)):
            _decide_alone(self.engine, pod, self.results[pod.uid], self._evaluator)
            await self._event_loop.at_rest()

    async def schedule_waiting(self) -> None:
        """Try each pod in the queue once: all are popped before the first is tried, whatever a placement may wake.

        Where pods on hold in Permit are rejected after that, those that this wakes are tried once more.
        """
        came = {uid: number for number, uid in enumerate(self.engine.pods)}
        popped = self._pop_all()
        first = {entry.key: min(came[each.pod.uid] for each in pods_of(entry)) for entry in popped}
        # Of equals, those first that came first, though they may have waited for others of their group.
        order = sorted(popped, key=lambda each: (self.engine.queue.sort_key(each), first[each.key]))
        for entry in self.progress.counted(order, "placing pods", len(order)):
            await self._attempt(entry)
        await self.on_hold.let_time_pass()
        if self.on_hold.may_make_room():
            await self.on_hold.reject_all()
            await self._retry()
            await self.on_hold.let_time_pass()

    async def _retry(self) -> None:
        """Try each pod once more that the queue wakes, or that has a backoff, until there is none."""
        queue, tried = self.engine.queue, set[EntityKey]()
        while True:
            popped = self._pop_all()
            waiting = [each for each in popped if each.key not in tried]
            for again in popped:
                if again.key in tried:
                    queue.drop(again)
            tried |= {each.key for each in waiting}
            for entry in waiting:
                for each in pods_of(entry):
                    self.results[each.pod.uid] |= {"nominatedNode": None, "victims": []}
            for entry in waiting:
                await self._attempt(entry)
            if popped:
                continue
            if not queue.pending_counts()["backoff"]:
                return
            await asyncio.sleep(BACKOFF_SECONDS)
            queue.flush_backoff_completed()

    def _pop_all(self) -> list[Entry]:
        popped = []
        while (entry := self.engine.queue.pop_nowait()) is not None:
            popped.append(entry)
        return popped

    async def _attempt(self, entry: Entry, *, explain: bool = True) -> None:
        tried = [each.pod for each in pods_of(entry)]
        for pod in tried:
            self.results[pod.uid].pop("gated", None)
            self._note_verdicts(pod, explain=explain)
        self.engine.loop.schedule_one(entry)
        await self._event_loop.at_rest()
        for pod in tried:
            self.on_hold.note(pod)

    def _note_verdicts(self, pod: Pod, *, explain: bool) -> None:
        if not explain or self._evaluator is None or pod.is_deleting:
            return
        try:
            nodes = self._evaluator.verdicts(self.engine.frameworks[pod.spec.scheduler_name], pod)
        except PluginError as error:
            self.results[pod.uid]["message"] = str(error)
        else:
            self.results[pod.uid]["nodes"] = nodes

    def groups(self) -> dict[str, list[Any]]:
        """Return {"groups": [the report on each group of these pods, with its prospects]}; nothing without groups.

        The simulation is over then: see `prospects`.
        """
        if self.engine.group_parts.cycle is None:
            return {}
        from scheduler.explain.pod_groups import reports_on_groups
        from scheduler.simulate.prospects import prospects

        pods = [pod for uid in self.results if (pod := self.engine.pods.get(uid)) is not None]
        known = self.engine.group_parts.groups
        first = {(pod.namespace, known.name_of(pod)): pod for pod in reversed(pods)}
        reports = list(reports_on_groups(self.engine, pods))
        states = [(each.state, first[each.namespace, each.name]) for each in reports]
        fits = prospects(self.engine, states)
        found = [{**to_builtins(each), "fits": when} for each, when in zip(reports, fits, strict=True)]
        return {"groups": found} if found else {}

    def group_of(self, pod: Pod) -> dict[str, Any]:
        """Return {"group": the report on the group of a pod}; nothing if it has none."""
        if self.engine.pod_groups is None:
            return {}
        from scheduler.explain.pod_groups import report_on_group_of

        report = report_on_group_of(self.engine, pod)
        return {} if report is None else {"group": to_builtins(report)}

    def rest(self) -> None:
        """Take the pods out of the queue that have had their turn in vain, so that nothing wakes them again.

        Nodes on which preemption makes room for them stay nominated. Pods on hold stay there.
        """
        for uid, result in self.results.items():
            if uid in self.engine.queue and uid not in self.on_hold:
                pod, node = self.engine.pods[uid], result["nominatedNode"]
                self.engine.queue.delete(uid)
                self.engine.nominator.add(pod, node or "")

    def placed(self) -> Iterator[Pod]:
        return (self.engine.pods[uid] for uid, result in self.results.items() if result["node"] is not None)

    async def place_all(self, pods: Sequence[Pod]) -> list[Result]:
        """Let new pods come, all before the first is tried, and try each once. Nothing is said of them node by node."""
        results = [self._arrive(pod) for pod in pods]
        self._note_gates(pods)
        new = {pod.uid for pod in pods}
        for entry in self._pop_all():
            if new.isdisjoint(each.pod.uid for each in pods_of(entry)):
                self.engine.queue.drop(entry)  # it has had its turn
            else:
                await self._attempt(entry, explain=False)
        return results

    def add_objects(self, objects: Iterable[OtherObject]) -> None:
        """Add further objects that plugins read. Raises ConfigError."""
        for resource, obj in OtherObjects(objects).take(self.engine.watched):
            self.engine.object_handlers.object_changed(resource, obj)

    def come(self, pod: Pod) -> Result:
        """Let a new pod come, to be tried later."""
        result = self._arrive(pod)
        self._note_gates([pod])
        return result

    def _arrive(self, pod: Pod) -> Result:
        result = self.results[pod.uid] = _empty(pod) | ({} if self._evaluator is None else {"nodes": {}})
        self.engine.handlers.pod_changed(pod)
        return result

    def _note_gates(self, pods: Iterable[Pod]) -> None:
        """Note by which plugins these are kept out of the queue."""
        counts = self.engine.queue.pending_counts()
        if not (counts["gated"] or counts["incomplete"]):
            return
        parts = self.engine.queue.pending_pods()
        gates = {each.pod.uid: each.gate for each in (*parts["gated"], *parts["incomplete"]) if each.gate}
        for uid in gates.keys() & {pod.uid for pod in pods}:
            self.results[uid]["gated"] = gates[uid]


@contextmanager
def simulation_of(
    cluster: SimulatedCluster,
    config: Config,
    registry: Registry,
    progress: Progress = SILENT,
    *,
    shows_writes: bool = True,
) -> Iterator[Simulation]:
    """A simulation of a cluster. Raises ConfigError, as `simulate` does.

    `shows_writes`: whether what plugins write is visible to the next pod, and whom they evict to disruption budgets.
    """
    recording, api, metrics = RecordingWriters(shows_evictions=shows_writes), SimulatedApi(), Metrics()
    writers = Writers(recording, recording, recording, recording, api, SimulatedReader(cluster.others))
    tasks = Tasks(metrics)
    with closing(VirtualTimeLoop()) as event_loop:
        engine = build_engine(config.without_resizes(), registry, writers, metrics, event_loop.time, tasks)
        try:
            recording.bound = engine.handlers.pod_changed
            for framework in engine.frameworks.values():
                framework.faults.observer = recording.fault
            api.objects, api.observer = engine.objects, engine.object_handlers
            api.shows = shows_writes
            progress.doing("taking in nodes and pods")
            _take_in(engine, cluster)
            yield Simulation(engine, tasks, api, recording, progress, event_loop)
        finally:
            engine.close()


def _take_in(engine: Engine, cluster: SimulatedCluster) -> None:
    for resource, obj in cluster.others.take(engine.watched):
        engine.object_handlers.object_changed(resource, obj)
    for node in cluster.nodes:
        engine.handlers.node_changed(node)
    for pod in cluster.pods:
        if not pod.is_terminated:
            engine.handlers.pod_changed(pod)
    for pod in cluster.pods:
        if pod.status.phase == "Succeeded":
            engine.group_parts.groups.members_by_group.note_earlier_success(pod)


@contextmanager
def engine_of(cluster: SimulatedCluster, config: Config, registry: Registry) -> Iterator[Engine]:
    """An engine that has seen a cluster, to be asked and not run. Raises ConfigError, as `simulate` does."""
    recording, api = RecordingWriters(), SimulatedApi()
    writers = Writers(recording, recording, recording, recording, api)
    engine = build_engine(config.without_resizes(), registry, writers, Metrics(), lambda: 0.0)
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


def _tasks_at_work() -> str:
    places = []
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        frames = task.get_stack(limit=1)
        place = f" at {frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""
        places.append(f"task {task.get_name()}{place}")
    return ", ".join(sorted(places)[:MAX_TASKS]) or "a callback is always due"


def _decide_alone(engine: Engine, pod: Pod, result: Result, evaluator: NodeEvaluator | None) -> None:
    """Record where one pod would go, and change nothing."""
    framework = engine.frameworks[pod.spec.scheduler_name]
    if pod.is_deleting or "gated" in result:
        return
    try:
        if evaluator is not None:
            result["nodes"] = evaluator.verdicts(framework, pod)
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
