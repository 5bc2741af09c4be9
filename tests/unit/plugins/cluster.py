"""Small clusters for plugin tests, and what a plugin says of them, by node name."""

import numpy as np

from scheduler import framework as fw
from scheduler.framework.nodes.nodes import Int64Column, Rows
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_cluster as a_cluster


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
