"""One profile at work: runs its plugins at each extension point, times them, and names the one that fails.

Rule: pkg/scheduler/framework/runtime/framework.go at v1.37.2. What a plugin raises becomes a PluginError with its
name; a plugin that answers what its point does not allow is treated the same.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypeVar

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.errors import PluginError
from scheduler.framework.events import ClusterEventWithHint
from scheduler.framework.nodes.nodes import Aspect, BoolColumn, Rows
from scheduler.framework.plugin import (
    BindPlugin,
    CompletingPlugin,
    PermitPlugin,
    PermitWait,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementProgress,
    PlacementScorePlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    SignPlugin,
)
from scheduler.framework.status import SKIP, Code, Status, unresolvable
from scheduler.process.metrics import Metrics
from scheduler.runtime.answers.pod_classes import ConcernedAtPreFilter, ConcernedAtPreScore, KnownSpec, PodClasses
from scheduler.runtime.answers.views import FeasibleNodes
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.filter_outcome import FilterOutcome
from scheduler.runtime.filtering import Filtering
from scheduler.runtime.guards.plugin_breaker import Breaker
from scheduler.runtime.guards.plugin_budgets import Budgets
from scheduler.runtime.guards.plugin_faults import PluginFaults, as_plugin_error, is_of_tree
from scheduler.runtime.guards.plugin_limits import NO_LIMITS, Limits
from scheduler.runtime.guards.return_values import (
    bounded,
    check_permit,
    check_pre_filter,
    check_status,
    disallowed,
    wrong_answer,
)
from scheduler.runtime.handle import EngineHandle
from scheduler.runtime.live_nodes import LiveNodes
from scheduler.runtime.placing import Placing
from scheduler.runtime.plugin_calls import PluginCalls
from scheduler.runtime.post_filter import PostFilter
from scheduler.runtime.preemption.nominated import LiveNominator
from scheduler.runtime.profile import ProfilePlugins
from scheduler.runtime.scoring import Scores, Scoring

P = TypeVar("P", bound=Plugin)

POD_LIMITS: Final = "PodLimits"
"""Named as the plugin that refuses pods which ask for too much. It registers for no event: none helps them."""


EXTENDER: Final = "Extender"
"""Named as the plugin where extenders left nodes out: whatever happens may help, as they do not say what does."""


class Framework:
    """kube-scheduler's framework.Framework: the plugins of one profile, ready to run."""

    def __init__(
        self,
        plugins: ProfilePlugins,
        handle: EngineHandle,
        nodes: LiveNodes,
        nominator: LiveNominator,
        metrics: Metrics,
        percentage_of_nodes_to_score: int = 0,
        limits: Limits = NO_LIMITS,
        stream: EventStream | None = None,
    ) -> None:
        """`percentage_of_nodes_to_score`: 0 or 100 for all nodes."""
        self.name = handle.profile_name
        self.handle = handle
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.plugins = plugins
        self.breaker = breaker = Breaker(limits, self.name, handle.events)
        self.faults = PluginFaults(metrics, breaker.note)
        waits = {plugin.name: plugin.wait_seconds for plugin in plugins.of("pre_bind", PreBindPlugin)}
        self.budgets = Budgets(metrics, handle.events, limits, waits, breaker.note)
        timed, stream = self._timed(limits), stream or EventStream()
        self.calls = calls = PluginCalls(metrics, self.name, self.budgets, breaker, timed, stream)
        self._nodes = nodes
        self._pre_filter = plugins.of("pre_filter", PreFilterPlugin)
        self._pre_filter_evaluations = {p.name: calls.evaluations("PreFilter", p.name) for p in self._pre_filter}
        self._queue_sort = plugins.of("queue_sort", QueueSortPlugin)
        self.pre_enqueue = plugins.of("pre_enqueue", PreEnqueuePlugin)
        self.post_filter = PostFilter(plugins.of("post_filter", PostFilterPlugin), calls)
        self._pre_score = plugins.of("pre_score", PreScorePlugin)
        self._pre_score_evaluations = {p.name: calls.evaluations("PreScore", p.name) for p in self._pre_score}
        self._reserve = plugins.of("reserve", ReservePlugin)
        self._completing = [p for p in plugins.of("reserve", CompletingPlugin) if p.completes_pods]
        self.completes_pods = bool(self._completing)
        """Whether `bound` says more than `Pod.bound_to`."""
        self._permit = plugins.of("permit", PermitPlugin)
        self._placement_feasible = plugins.of("permit", PlacementFeasiblePlugin)
        self.is_permit_of_tree = all(is_of_tree(type(plugin)) for plugin in self._permit)
        """Whether no Permit plugin is another one than ours, of which it is known what they look at."""
        self._pre_bind = plugins.of("pre_bind", PreBindPlugin)
        self._bind = plugins.of("bind", BindPlugin)
        self._post_bind = plugins.of("post_bind", PostBindPlugin)
        generators = plugins.of("placement_generate", PlacementGeneratePlugin)
        scorers = plugins.of("placement_score", PlacementScorePlugin)
        self.placing = Placing(generators, scorers, plugins.placement_weights, calls, breaker)
        extensions = [p for p in self._pre_filter if isinstance(p, PreFilterExtensions)]
        store = handle.columns.store
        store.on_flush = calls.flushes()
        dry_runs = handle.dry_runs
        self.filtering = Filtering(plugins.at["filter"], extensions, store, nominator, dry_runs, calls)
        self.scoring = Scoring(plugins.at["score"], plugins.weights, store, calls)
        signers = {p.name: p for point in ("filter", "score") for p in plugins.at[point] if isinstance(p, SignPlugin)}
        self.pod_classes = PodClasses(tuple(signers.values()), self.name, store)
        self._by_spec_alone = {
            name
            for name, plugin in signers.items()
            if plugin.signs_spec and Aspect.EXTERNAL not in plugin.aspects  # what is reserved for the pod may be there
        }
        dry_runs.attach(self.filtering, nominator)
        self._rejector_events: dict[str, Sequence[ClusterEventWithHint]] = {}

    def use_limits(self, limits: Limits) -> None:
        """Go by other limits for plugins from the next call on."""
        self.breaker.use(limits)
        self.budgets.use(limits)
        self.calls.use(self._timed(limits))

    def _timed(self, limits: Limits) -> list[str]:
        """The plugins whose every call is timed: those of others, and those that have limits."""
        plugins = self.plugins.by_name
        return [name for name, each in plugins.items() if limits.names(name) or not is_of_tree(type(each))]

    @property
    def queue_sort(self) -> QueueSortPlugin:
        return self._queue_sort[0]

    @property
    def has_post_filter(self) -> bool:
        return bool(self.plugins.at["post_filter"])

    def rejector_events(self) -> dict[str, Sequence[ClusterEventWithHint]]:
        """Plugin → the events that may help pods it refused, for all plugins that can refuse one.

        They are asked at the first call only: what a plugin at work would say later keeps no other from its place.
        """
        if not self._rejector_events:
            points = ("pre_enqueue", "pre_filter", "filter", "reserve", "permit")
            rejectors = {plugin.name: plugin for point in points for plugin in self.plugins.at[point]}
            self._rejector_events = {name: plugin.events_to_register() for name, plugin in rejectors.items()}
        return self._rejector_events

    def classify(self, state: CycleState, pod: Pod) -> KnownSpec:
        """Find the known facts of pods like this one: the start of a decision. Raises PluginError."""
        known = state.known_spec = self.pod_classes.of(pod)
        return known

    def forget_idle(self) -> Iterator[None]:
        """Drop data of pods that was not used since the last time. Yields now and then."""
        return self.pod_classes.store.forget_idle()

    @property
    def stored_bytes(self) -> int:
        """About how much memory the stored answers take."""
        return self.pod_classes.store.bytes

    # The scheduling cycle.

    def run_pre_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[frozenset[str] | None, Status | None]:
        """Return the only nodes worth looking at (None: all) and the refusal of the whole pod, if any.

        Names of plugins that cut nodes off are added to the diagnosis. Raises PluginError.
        """
        known = state.known_spec or self.classify(state, pod)
        if known.excess:
            return None, unresolvable(known.excess).by(POD_LIMITS)
        if self.breaker.paused:
            off = self.breaker.off(pod.namespace)
            state.skip_filter |= off
            state.skip_score |= off
        with self.calls.at("PreFilter") as timer:
            plugins = self._pre_filter
            if not state.record_plugin_metrics or pod.is_resize:
                plugins, skipping, passing = known.concerned or self._concerned(known, pod)
                state.skip_filter |= skipping
                for evaluations in passing:
                    evaluations.value += 1
            names, refusal = self._pre_filter_in_turn(plugins, state, pod, diagnosis)
            if refusal is not None:
                timer.code = refusal.code
        return names, refusal

    def _pre_filter_in_turn(
        self, plugins: Sequence[PreFilterPlugin], state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[frozenset[str] | None, Status | None]:
        names: frozenset[str] | None = None
        refusal: Status | None = None
        for plugin in plugins:
            answer = self.calls.run("PreFilter", plugin.name, plugin.pre_filter, state, pod, self._nodes)
            if answer is SKIP:
                state.skip_filter |= {plugin.name}
                continue
            if answer is None:
                self._pre_filter_evaluations[plugin.name].value += 1
                continue
            answer = check_pre_filter(plugin.name, plugin.pre_filter, answer)
            if isinstance(answer, Status) and answer.code is Code.SKIP:
                state.skip_filter |= {plugin.name}
                continue
            self._pre_filter_evaluations[plugin.name].value += 1
            if isinstance(answer, PreFilterResult):
                diagnosis.unschedulable_plugins.add(plugin.name)
                names = answer.node_names if names is None else names & answer.node_names
                if not names:
                    return names, _none_left(diagnosis.unschedulable_plugins)
            elif answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                diagnosis.unschedulable_plugins.clear()
                return None, answer.by(plugin.name)
            elif answer.code is Code.UNSCHEDULABLE:
                # Preemption may help later in this cycle, and it needs what the other plugins prepare.
                refusal = answer.by(plugin.name)
            else:
                raise disallowed(plugin.name, "PreFilter", plugin.pre_filter, answer)
        return names, refusal

    def _concerned(self, known: KnownSpec, pod: Pod) -> ConcernedAtPreFilter:
        """Ask the PreFilter plugins which of them are concerned by pods of this spec; the others skip these."""
        if pod.is_resize:
            plugins, others = _divided("PreFilter", self._pre_filter, lambda plugin: plugin.filters_resizes)
            passing = []
        else:
            plugins, others = _divided("PreFilter", self._pre_filter, lambda plugin: plugin.concerns(pod))
            passing = [p.name for p in self._pre_filter if p.filters_all and p.name in others]
        evaluations = tuple(self._pre_filter_evaluations[name] for name in passing)
        known.concerned = (plugins, others.difference(passing), evaluations)
        return known.concerned

    def run_filter(self, state: CycleState, pod: Pod, asked: BoolColumn | None = None) -> FilterOutcome:
        """Return where `pod` can run among the rows `asked`, or all nodes. Raises PluginError."""
        with self.calls.at("Filter"):
            known = state.known_spec or self.classify(state, pod)
            if asked is None:
                return self.filtering.run_everywhere(state, pod, known.pod_class)
            return self.filtering.run(state, pod, asked, known.pod_class)

    def run_filter_again(self, state: CycleState, pod: Pod, row: int) -> Status | None:
        """Return why a node that was chosen refuses the pod now, by spec and node alone. Raises PluginError.

        `state` is that of the decision. Whatever else a plugin may have prepared there is not looked at.
        """
        known = state.known_spec or self.classify(state, pod)
        return self.filtering.run_one(state, pod, row, only=known.pod_class.signatures.keys() & self._by_spec_alone)

    def run_post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Let the PostFilter plugins try to make room, until one succeeds or says that nothing can.

        Raises PluginError, which concerns this attempt to make room and not the pod: it fits nowhere for now.
        """
        return self.post_filter.run(state, pod, diagnosis)

    def run_score(self, state: CycleState, pod: Pod, feasible: Rows) -> Scores:
        """Return the weighted scores of the feasible rows. Raises PluginError."""
        known = state.known_spec or self.classify(state, pod)
        if not self.scoring.steps:
            # There is nothing to prepare and nothing to time: kube-scheduler does not even ask.
            return self.scoring.run(state, pod, feasible, known.pod_class)
        self._run_pre_score(known, state, pod, feasible)
        with self.calls.at("Score"):
            return self.scoring.run(state, pod, feasible, known.pod_class)

    def run_best(
        self, state: CycleState, pod: Pod, feasible: Rows, view: FeasibleNodes | None = None
    ) -> Sequence[int] | Rows:
        """Return those of the feasible rows with the highest score, as `run_score` gives it. Raises PluginError.

        `view`: the outcome's, if its feasible rows are all taken.
        """
        if not self.scoring.steps:
            return feasible
        known = state.known_spec or self.classify(state, pod)
        self._run_pre_score(known, state, pod, feasible)
        with self.calls.at("Score"):
            return self.scoring.best(state, pod, feasible, known.pod_class, view)

    def _run_pre_score(self, known: KnownSpec, state: CycleState, pod: Pod, feasible: Rows) -> None:
        feasible.flags.writeable = False  # all Score plugins get the same array
        with self.calls.at("PreScore"):
            # Score skips the same plugins whether or not this cycle times them: their scores have one plan then.
            plugins, skipping, passing = known.concerned_at_score or self._concerned_at_score(known, pod)
            state.skip_score |= skipping
            if state.record_plugin_metrics:
                plugins, passing = self._pre_score, ()
            for evaluations in passing:
                evaluations.value += 1
            for plugin in plugins:
                status = self.calls.run("PreScore", plugin.name, plugin.pre_score, state, pod, self._nodes, feasible)
                if status is not None and status is not SKIP:
                    status = check_status(plugin.name, "PreScore", plugin.pre_score, status)
                if status is SKIP or (status is not None and status.code is Code.SKIP):
                    state.skip_score |= {plugin.name}
                    continue
                self._pre_score_evaluations[plugin.name].value += 1
                if status is not None:
                    raise disallowed(plugin.name, "PreScore", plugin.pre_score, status)

    def _concerned_at_score(self, known: KnownSpec, pod: Pod) -> ConcernedAtPreScore:
        """Ask the PreScore plugins which of them are concerned; Score skips the others, also those that give 0."""
        plugins, others = _divided("PreScore", self._pre_score, lambda plugin: plugin.concerns_score(pod))
        passing = [p.name for p in self._pre_score if p.scores_all and p.name in others]
        evaluations = tuple(self._pre_score_evaluations[name] for name in passing)
        known.concerned_at_score = (plugins, others, evaluations)
        return known.concerned_at_score

    def bound(self, state: CycleState, pod: Pod, node_name: str) -> Pod:
        """Return a pod as it is to count on the node that it gets. Raises PluginError."""
        bound = pod.bound_to(node_name)
        for plugin in self._completing:
            answer: object = self.calls.run("Reserve", plugin.name, plugin.completed, state, bound, node_name)
            bound = answer if isinstance(answer, Pod) else bound  # a plugin that is switched off answers nothing
        return bound

    def run_reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Reserve in order; return the first refusal. Then, or after a PluginError, `run_unreserve` is due."""
        known, plugins = state.known_spec, self._reserve
        if known is not None and not state.record_plugin_metrics:
            plugins, _ = known.concerned_at_reserve or self._concerned_at_reserve(known, pod)
        state.reserving = plugins
        with self.calls.at("Reserve") as timer:
            for plugin in plugins:
                answer = self.calls.run("Reserve", plugin.name, plugin.reserve, state, pod, node_name)
                if answer is not None:
                    refusal = _rejection("Reserve", plugin, plugin.reserve, answer)
                    timer.code = refusal.code
                    return refusal
        return None

    def _concerned_at_reserve(self, known: KnownSpec, pod: Pod) -> tuple[tuple[ReservePlugin, ...], frozenset[str]]:
        known.concerned_at_reserve = _divided("Reserve", self._reserve, lambda plugin: plugin.concerns_reserve(pod))
        return known.concerned_at_reserve

    def run_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> list[PluginError]:
        """Unreserve in reverse order. A plugin that raises, though it must not, keeps no other from its turn."""
        errors = []
        plugins = self._reserve if state.reserving is None else state.reserving
        with self.calls.at("Unreserve"):
            for plugin in reversed(plugins):
                try:
                    call: Callable[[CycleState, Pod, str], object] = plugin.unreserve
                    answer = self.calls.run("Unreserve", plugin.name, call, state, pod, node_name)
                    if answer is not None:
                        raise wrong_answer(plugin.name, "Unreserve", call, answer, "None")
                except PluginError as error:
                    errors.append(error)
        return errors

    def run_permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[dict[str, PermitWait], Status | None]:
        """Return plugin → for how long and for what, of those that hold the pod, and the first refusal."""
        holds: dict[str, PermitWait] = {}
        with self.calls.at("Permit") as timer:
            for plugin in self._permit:
                answer = self.calls.run("Permit", plugin.name, plugin.permit, state, pod, node_name)
                if answer is None:
                    continue
                found = check_permit(plugin.name, plugin.permit, answer)
                if isinstance(found, PermitWait):
                    holds[plugin.name] = found
                else:
                    refusal = _rejection("Permit", plugin, plugin.permit, found)
                    timer.code = refusal.code
                    return {}, refusal
            timer.code = Code.WAIT if holds else Code.SUCCESS
        return holds, None

    def run_placement_feasible(self, state: CycleState, pod: Pod, progress: PlacementProgress) -> Status | None:
        """Say whether the group of a pod is complete: None, the first refusal, or the last one's reason to wait.

        Raises PluginError.
        """
        found: Status | None = None
        with self.calls.at("PlacementFeasible") as timer:
            for plugin in self._placement_feasible:
                ask = plugin.placement_feasible
                answer = self.calls.run("PlacementFeasible", plugin.name, ask, state, pod, progress)
                if answer is None:
                    continue
                found = check_status(plugin.name, "PlacementFeasible", ask, answer)
                if found.code is not Code.WAIT:
                    break
            if found is not None:
                timer.code = found.code
                if found.code not in (Code.WAIT, Code.UNSCHEDULABLE):
                    raise disallowed(plugin.name, "PlacementFeasible", ask, found)
        return found

    # The binding cycle.

    def run_pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> bool:
        """Say whether any PreBind plugin has work with this pod. Raises PluginError."""
        busy = False
        with self.calls.at("PreBindPreFlight") as timer:
            for plugin in self._pre_bind:
                call = plugin.pre_bind_pre_flight
                answer = self.calls.run("PreBindPreFlight", plugin.name, call, state, pod, node_name)
                if answer is None:
                    busy = True
                elif answer is SKIP or check_status(plugin.name, "PreBindPreFlight", call, answer).code is Code.SKIP:
                    state.skip_pre_bind |= {plugin.name}
                else:
                    raise disallowed(plugin.name, "PreBindPreFlight", call, bounded(answer))
            timer.code = Code.SUCCESS if busy else Code.SKIP
        return busy

    async def run_pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Run the PreBind plugins in order; return the first refusal. Raises PluginError."""
        with self.calls.at("PreBind") as timer:
            for plugin in self._pre_bind:
                if plugin.name in state.skip_pre_bind:
                    continue
                answer = await self.calls.run_async("PreBind", plugin.name, plugin.pre_bind, state, pod, node_name)
                if answer is not None:
                    refusal = _rejection("PreBind", plugin, plugin.pre_bind, answer)
                    timer.code = refusal.code
                    return refusal
        return None

    async def run_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Let the first Bind plugin that does not skip bind the pod. Raises PluginError, also if all skip."""
        with self.calls.at("Bind") as timer:
            for plugin in self._bind:
                answer = await self.calls.run_async("Bind", plugin.name, plugin.bind, state, pod, node_name)
                if answer is None:
                    return None
                if check_status(plugin.name, "Bind", plugin.bind, answer).code is not Code.SKIP:
                    refusal = _rejection("Bind", plugin, plugin.bind, answer)
                    timer.code = refusal.code
                    return refusal
            raise PluginError(self._bind[-1].name, "Bind", "every bind plugin skipped the pod")

    async def run_post_bind(self, state: CycleState, pod: Pod, node_name: str) -> list[PluginError]:
        """Call the PostBind plugins; return their failures, since the pod is bound in any case."""
        errors = []
        with self.calls.at("PostBind"):
            for plugin in self._post_bind:
                try:
                    await self.calls.run_async("PostBind", plugin.name, plugin.post_bind, state, pod, node_name)
                except PluginError as error:
                    errors.append(error)
        return errors


def _divided(
    point: str, plugins: Sequence[P], is_concerned: Callable[[P], bool]
) -> tuple[tuple[P, ...], frozenset[str]]:
    """Return the plugins that are concerned and the names of the others. Raises PluginError."""
    concerned: list[P] = []
    skipping: set[str] = set()
    for plugin in plugins:
        try:
            if is_concerned(plugin):
                concerned.append(plugin)
            else:
                skipping.add(plugin.name)
        except BaseException as error:
            raise as_plugin_error(point, plugin.name, error) from error
    return tuple(concerned), frozenset(skipping)


def _rejection(point: str, plugin: Plugin, method: Callable[..., object], answer: Status) -> Status:
    answer = check_status(plugin.name, point, method, answer)
    if not answer.is_rejected:
        raise disallowed(plugin.name, point, method, answer)
    return answer.by(plugin.name)


def _none_left(plugins: Collection[str]) -> Status:
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {next(iter(plugins))}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) {go_list(plugins)} simultaneously")


def go_list(names: Collection[str]) -> str:
    """Spell names as Go prints a sorted slice: `[A B]`."""
    return f"[{' '.join(sorted(names))}]"
