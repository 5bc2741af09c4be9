"""Small clusters for plugin tests, and what a plugin says of them, by node name."""

from collections.abc import Iterable

import numpy as np

from scheduler import framework as fw
from scheduler.framework.nodes import Int64Column, Rows
from scheduler.framework.resources import KNOWN
from scheduler.runtime.handle import EngineHandle, PluginColumns
from scheduler.runtime.metrics import Metrics
from scheduler.runtime.waiting import WaitingPods
from scheduler.state.node_table import NodeTable
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_cluster as a_cluster


class FakeBinder:
    """Remembers what it was told, or refuses all of it."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.bound: list[tuple[str, str]] = []
        self._refusal = refusal

    async def bind(self, pod: fw.Pod, node_name: str) -> None:
        if self._refusal is not None:
            raise self._refusal
        self.bound.append((str(pod), node_name))


class _Silent:
    """The parts of a handle that in-tree plugins leave alone."""

    def activate(self, uids: Iterable[str]) -> None:
        """Nobody is waiting."""

    def event(self, pod: fw.Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Nobody is listening."""

    async def evict(self, victim: fw.Pod, preemptor: fw.Pod, message: str) -> bool:
        """Nobody has to go."""
        return False

    def clear_nomination(self, pod: fw.Pod) -> None:
        """Nobody was nominated."""


def a_handle(binder: FakeBinder | None = None, table: NodeTable | None = None) -> EngineHandle:
    """Make a handle over `table`, or no nodes, that knows no objects of any resource."""
    silent = _Silent()
    objects = ObjectStore()
    objects.watch(KNOWN)
    table = table or a_cluster()
    return EngineHandle(
        profile_name="default-scheduler",
        nodes=table,
        nominator=Nominator(),
        activator=silent,
        waiting_pods=WaitingPods(),
        binder=binder or FakeBinder(),
        events=silent,
        objects=objects,
        pods={},
        evictor=silent,
        metrics=Metrics(),
        columns=PluginColumns(table),
    )


def every_row(table: NodeTable) -> Rows:
    return np.arange(table.size)


def refusals(plugin: fw.FilterNodesPlugin, pod: fw.Pod, table: NodeTable) -> dict[str, fw.Status]:
    """Return the refusal of each node that PreFilter leaves and Filter refuses."""
    state = fw.CycleState()
    if isinstance(plugin, fw.PreFilterPlugin) and plugin.pre_filter(state, pod, table) == fw.SKIP:
        return {}
    codes = plugin.filter_nodes(state, pod, table, every_row(table))
    if codes is None:
        return {}
    return {
        name: plugin.status_of(state, pod, code)
        for name, code in zip(table.names(), codes.tolist(), strict=True)
        if code and name
    }


def raw_scores(plugin: fw.ScoreNodesPlugin, pod: fw.Pod, table: NodeTable) -> Int64Column:
    """Return the score of each row before it is normalised; 0 where the plugin skips."""
    state, rows = fw.CycleState(), every_row(table)
    skips = isinstance(plugin, fw.PreScorePlugin) and plugin.pre_score(state, pod, table, rows) == fw.SKIP
    scores = None if skips else plugin.score_nodes(state, pod, table, rows)
    return np.zeros(table.size, np.int64) if scores is None else scores


def scores(plugin: fw.ScoreNodesPlugin, pod: fw.Pod, table: NodeTable) -> dict[str, int]:
    """Return the final score of each node, before its weight."""
    nodes = np.flatnonzero(table.in_use)
    found = raw_scores(plugin, pod, table)[nodes]
    if isinstance(plugin, fw.NormalizeScorePlugin):
        found = plugin.normalize_score(fw.CycleState(), pod, found)
    return {table.names()[row]: score for row, score in zip(nodes.tolist(), found.tolist(), strict=True)}
