"""The promises of every plugin, checked for pods and nodes that the author chooses."""

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from scheduler.api.objects import PodMeta, SchedulingGroup
from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.nodes import Int32Column, Int64Column, Rows
from scheduler.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    FilterNodesPlugin,
    FilterPlugin,
    NormalizeScorePlugin,
    Plugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScoreNodesPlugin,
    ScorePlugin,
    SignPlugin,
)
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import SKIP, Status
from scheduler.runtime.per_node import PerNodeFilter, PerNodeScore
from scheduler.runtime.plugin_calls import check_column
from scheduler.testing.handles import Cluster, GivenObjects, a_handle, check_objects, profile_of, started
from scheduler.testing.objects import as_kept


def check_plugin(
    plugin: Plugin, pods: Sequence[Pod], nodes: Cluster, objects: GivenObjects = None, *, scores_in_range: bool = True
) -> None:
    """Start `plugin` over these nodes and objects and check what it says of each pod. Raises AssertionError.

    Raises ConfigError for resources that the scheduler refuses, LookupError for objects that it would not watch.
    Checked are, of the methods that the plugin has:

    - one row asked alone gets the answer that it gets among all, and no rows get none;
    - an answer of None means 0 for every row;
    - the same question has the same answer, also from a new copy of the plugin, and changes nothing: no pod, no node;
    - a pod that does not concern the plugin is one that it skips;
    - every refusal has a reason;
    - final scores are from 0 to 100 (unless `scores_in_range` is False), and NormalizeScore leaves its input alone;
    - a pod has one signature, which with `signs_spec` depends on its spec alone, without its group; equal signatures
      have equal answers;
    - what AddPod counts, RemovePod takes back, and a copy of the state does not touch the original;
    - what Reserve takes, Unreserve takes back, and without Reserve it does nothing;
    - a QueueSort is an order: of two pods at most one comes before the other, and `sort_key` agrees with `less`.

    The more kinds of pods and nodes there are, with rows that are free, the more it can find.
    """
    profile_of(plugin)
    raw = plugin.reads_raw_pods
    pods, nodes = [as_kept(pod, raw=raw) for pod in pods], nodes.as_kept(raw=raw)
    other = started(copy.copy(plugin), a_handle(nodes, objects))
    check = _Check(started(plugin, a_handle(nodes, objects)), nodes)
    check_objects(plugin, objects)
    by_signature: dict[object, tuple[_Answers, Pod]] = {}
    before = _contents(nodes, pods)
    for pod in pods:
        answers = check.pod(pod, scores_in_range=scores_in_range)
        again = _Check(other, nodes).answers(pod)
        _hold(again == answers, f"{pod}: a second copy of the plugin answers {again}, not {answers}")
        if isinstance(plugin, SignPlugin):
            check.signature(plugin, pod)
            signature = plugin.sign(pod)
            if signature is not None and None not in answers:
                known, like = by_signature.setdefault(signature, (answers, pod))
                _hold(
                    known == answers,
                    f"{like} and {pod} have the same signature {signature!r}, but the answers {known} and {answers}",
                )
    if isinstance(plugin, QueueSortPlugin):
        _order(plugin, [QueuedPod(pod, timestamp) for timestamp, pod in enumerate(pods)])
    _hold(_contents(nodes, pods) == before, "the plugin changed a pod or a node")
    nodes.check_invariants()


class _Answers(NamedTuple):
    """By row; None for a phase that the plugin has not, or skips."""

    codes: list[Any] | None
    """Reason codes; refusals of a plugin that answers for one node at a time. 0 for a yes."""

    scores: list[int] | None


class _Check:
    def __init__(self, plugin: Plugin, nodes: Cluster) -> None:
        self._plugin = plugin
        self._nodes = nodes
        self._rows: Rows = np.arange(nodes.size)
        self._filter: FilterNodesPlugin | PerNodeFilter | None = None
        if isinstance(plugin, FilterPlugin):
            self._filter = PerNodeFilter(plugin)
        elif isinstance(plugin, FilterNodesPlugin):
            self._filter = plugin
        self._score: ScoreNodesPlugin | PerNodeScore | None = None
        if isinstance(plugin, ScorePlugin):
            self._score = PerNodeScore(plugin)
        elif isinstance(plugin, ScoreNodesPlugin):
            self._score = plugin

    def pod(self, pod: Pod, *, scores_in_range: bool) -> _Answers:
        """Check what concerns one pod alone; return the answers for every row."""
        self._concerns(pod)
        state = self._prepared(pod)
        together = self._ask(state, pod, self._rows)
        _hold(self._ask(state, pod, self._rows) == together, f"{pod}: asked twice, the answers differ")
        _hold(self.answers(pod) == together, f"{pod}: in a new cycle, the answers differ")
        for rows in (self._rows[:0], self._rows[::2], *self._rows.reshape(-1, 1)):
            expected = _Answers(*(None if every is None else [every[row] for row in rows] for every in together))
            found = self._ask(state, pod, rows)
            _hold(
                found == expected, f"{pod}: asked about the rows {rows.tolist()} only: {found}, among all: {expected}"
            )
        self._reasons(state, pod, together)
        if together.scores is not None:
            self._final_scores(state, pod, together.scores, in_range=scores_in_range)
        if isinstance(self._plugin, PreFilterExtensions) and together.codes is not None:
            self._extensions(self._plugin, state, pod, together)
        if isinstance(self._plugin, ReservePlugin):
            self._reservation(self._plugin, pod, together)
        return together

    def answers(self, pod: Pod) -> _Answers:
        """Return what the plugin says of every row, in a cycle of its own."""
        return self._ask(self._prepared(pod), pod, self._rows)

    def signature(self, plugin: SignPlugin, pod: Pod) -> None:
        signature = plugin.sign(pod)
        hash(signature)
        _hold(plugin.sign(_copy(pod)) == signature, f"{pod} and a copy of it have different signatures")
        if plugin.signs_spec:
            spec = msgspec.structs.replace(pod.spec, scheduling_group=SchedulingGroup(pod_group_name="other"))
            unnamed = msgspec.structs.replace(pod, metadata=PodMeta(name="other", uid="other"), spec=spec)
            _hold(
                plugin.sign(unnamed) == signature,
                f"{pod}: the signature depends on more than the spec without its group",
            )

    def _concerns(self, pod: Pod) -> None:
        if isinstance(self._plugin, PreFilterPlugin) and not self._plugin.concerns(pod):
            answer = self._plugin.pre_filter(CycleState(), pod, self._nodes)
            _hold(
                answer == (None if self._plugin.filters_all else SKIP),
                f"{pod} does not concern the plugin, but PreFilter answers {answer}",
            )
        if isinstance(self._plugin, PreScorePlugin) and not self._plugin.concerns_score(pod):
            status = self._plugin.pre_score(CycleState(), pod, self._nodes, self._rows)
            _hold(
                status == (None if self._plugin.scores_all else SKIP),
                f"{pod} does not concern the plugin's Score, but PreScore answers {status}",
            )

    def _prepared(self, pod: Pod) -> CycleState:
        """Return the state in which Filter and Score are asked, if they are."""
        state, plugin = CycleState(), self._plugin
        if isinstance(plugin, PreFilterPlugin):
            answer = plugin.pre_filter(state, pod, self._nodes)
            if answer is not None and not isinstance(answer, PreFilterResult):
                state.skip_filter |= {plugin.name}
        if isinstance(plugin, PreScorePlugin) and plugin.pre_score(state, pod, self._nodes, self._rows) == SKIP:
            state.skip_score |= {plugin.name}
        return state

    def _ask(self, state: CycleState, pod: Pod, rows: Rows) -> _Answers:
        codes: list[Any] | None = None
        scores: list[int] | None = None
        if self._filter is not None and self._plugin.name not in state.skip_filter:
            codes = self._listed("Filter", self._filter.filter_nodes, state, pod, rows, "iub")
            if isinstance(self._filter, PerNodeFilter):
                codes = [self._filter.status_of(state, pod, code) if code else 0 for code in codes]
        if self._score is not None and self._plugin.name not in state.skip_score:
            scores = self._listed("Score", self._score.score_nodes, state, pod, rows, "ib")
        return _Answers(codes, scores)

    def _listed(
        self,
        point: str,
        call: Callable[..., Int32Column | Int64Column | None],
        state: CycleState,
        pod: Pod,
        rows: Rows,
        kinds: str,
    ) -> list[int]:
        answer = call(state, pod, self._nodes, rows)
        if answer is None:
            return [0] * len(rows)
        check_column(point, self._plugin.name, call, answer, rows, kinds)
        return [int(value) for value in answer.tolist()]

    def _reasons(self, state: CycleState, pod: Pod, answers: _Answers) -> None:
        if self._filter is not None:
            for code in set(answers.codes or ()) - {0}:
                status = code if isinstance(code, Status) else self._filter.status_of(state, pod, code)
                _hold(_has_reasons(status), f"{pod}: {status} is no refusal with reasons")

    def _final_scores(self, state: CycleState, pod: Pod, scores: list[int], *, in_range: bool) -> None:
        final = np.array([scores[row] for row in np.flatnonzero(self._nodes.in_use).tolist()], np.int64)
        if isinstance(self._plugin, NormalizeScorePlugin):
            given = final.copy()
            final = self._plugin.normalize_score(state, pod, given)
            unchanged = given.tolist() == [scores[row] for row in np.flatnonzero(self._nodes.in_use).tolist()]
            _hold(unchanged, f"{pod}: NormalizeScore changed its input")
        outside = [score for score in final.tolist() if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE]
        _hold(not (in_range and outside), f"{pod}: final scores outside of 0 to 100: {outside}")

    def _extensions(self, plugin: PreFilterExtensions, state: CycleState, pod: Pod, before: _Answers) -> None:
        what_if = state.clone()
        for row in np.flatnonzero(self._nodes.in_use).tolist():
            other = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid="what-if"))
            with self._nodes.what_if(row, add=(other,)):
                plugin.add_pod(what_if, pod, other, self._nodes.info(row))
            plugin.remove_pod(what_if, pod, other, self._nodes.info(row))
        _hold(self._ask(what_if, pod, self._rows) == before, f"{pod}: RemovePod does not take back what AddPod counted")
        _hold(self._ask(state, pod, self._rows) == before, f"{pod}: a copy of the state changed the original")

    def _reservation(self, plugin: ReservePlugin, pod: Pod, before: _Answers) -> None:
        for name in self._nodes.node_names():
            if before.codes is not None and before.codes[self._nodes.row_of(name) or 0]:
                continue  # the pod cannot run there
            state = self._prepared(pod)
            try:
                plugin.unreserve(state, pod, name)
            except Exception as error:
                raise AssertionError(
                    f"{pod}: Unreserve without Reserve raises {type(error).__name__}: {error}"
                ) from error
            refusal = plugin.reserve(state, pod, name)
            _hold(refusal is None or _has_reasons(refusal), f"{pod}: {refusal} is no refusal with reasons")
            if not plugin.concerns_reserve(pod):
                _hold(refusal is None, f"{pod} does not concern the plugin's Reserve, which refuses it: {refusal}")
            plugin.unreserve(state, pod, name)
            _hold(self.answers(pod) == before, f"{pod}: Unreserve does not take back what Reserve took on {name}")


def _order(plugin: QueueSortPlugin, queued: Sequence[QueuedPod]) -> None:
    for a, b in itertools.product(queued, queued):
        first, second = plugin.less(a, b), plugin.less(b, a)
        _hold(not (a is b and first), f"{a.pod} comes before itself")
        _hold(not (first and second), f"{a.pod} and {b.pod} both come before each other")
        by_key = bool(plugin.sort_key(a) < plugin.sort_key(b))
        _hold(by_key == first, f"{a.pod} and {b.pod}: less answers {first}, but by sort_key it is {by_key}")


def _has_reasons(status: Status) -> bool:
    return bool(status.is_rejected and status.reasons and all(status.reasons))


def _copy(pod: Pod) -> Pod:
    """A pod that is equal, without anything in common."""
    parts = {name: getattr(pod, name) for name in ("metadata", "spec", "status")}
    return Pod(
        **{name: msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=type(part)) for name, part in parts.items()}
    )


def _contents(nodes: Cluster, pods: Sequence[Pod]) -> list[bytes]:
    return [msgspec.json.encode(each) for each in _objects(nodes, pods)]


def _objects(nodes: Cluster, pods: Sequence[Pod]) -> Iterator[object]:
    for pod in pods:
        yield pod.metadata, pod.spec, pod.status
    for row in np.flatnonzero(nodes.in_use).tolist():
        info = nodes.info(row)
        yield info.node
        for pod in info.pods:
            yield pod.metadata, pod.spec, pod.status
        yield [dict(info.allocatable), dict(info.requested)]


def _hold(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
