"""The fewest pods whose deletion would help, for explanations; a decision goes by the costs instead."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import nsmallest
from typing import Final, NamedTuple

from plugins.shared.eviction.budgets import Budgets
from plugins.shared.eviction.candidates import Candidate, CandidateSearch, costs, not_spared
from scheduler import framework as fw
from scheduler.api.groups.owners import is_static
from scheduler.api.pods.importance import importance

ROWS_IN_A_STEP: Final = 64
MAX_IN_DETAIL: Final = 32
"""On so many nodes a smaller set is looked for than that of a decision."""

MAX_OTHERS: Final = 16
"""On so many nodes that are no candidates a single pod is looked for: of all that would go, the pod may need some."""


class Victims(NamedTuple):
    """Pods of a node that would have to go."""

    row: int
    pods: Sequence[fw.Pod]
    """The most important first."""


def smallest_victims(
    run: fw.DryRun, search: CandidateSearch, budgets: Budgets, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
) -> Iterator[Victims | None]:
    """Yield the victims on those of `rows` where they would help, the fewest first; None after each step before that.

    Of as many pods those come first that violate no budget, then those of lower priority, then by the name of the node:
    the order of nodes and pods in the tables has no say. Raises PluginError.
    """
    candidates: list[Candidate] = []
    for begin in range(0, len(rows), ROWS_IN_A_STEP):
        candidates += search.among(rows[begin : begin + ROWS_IN_A_STEP], ROWS_IN_A_STEP).candidates
        yield None
    names = nodes.names()
    candidates.sort(key=lambda each: (each.costs[3], each.costs[:3], names[each.row]))
    likely = [each.row for each in candidates[:MAX_IN_DETAIL]]
    others = set(rows[run.lowest_priorities[rows] < pod.priority].tolist()) - {each.row for each in candidates}
    likely += nsmallest(MAX_OTHERS, others, key=lambda row: names[row])
    found: list[tuple[tuple[int, tuple[int, ...], str], Victims]] = []
    for row in likely:
        victims = _fewest_on(run, budgets, [each for each in nodes.info(row).pods if search.may_evict(each)], row)
        if victims:
            violations = len(budgets.split(victims)[0])
            key = len(victims), costs(victims, violations)[:3], names[row]
            found.append((key, Victims(row, victims)))
        yield None
    found.sort(key=lambda each: each[0])
    yield from (victims for _, victims in found)


def _fewest_on(run: fw.DryRun, budgets: Budgets, candidates: Iterable[fw.Pod], row: int) -> Sequence[fw.Pod]:
    """Return as few pods of a node as make room; empty if none do. Static ones would come back."""
    lower = [other for other in candidates if not is_static(other)]
    lower.sort(key=lambda other: (other.is_deleting, importance(other), str(other)))
    victims: list[fw.Pod] = []
    with run.simulate(row) as node:
        node.remove(lower)
        if node.refusal() is None:
            victims, _ = not_spared(node, budgets, lower)
    if len(victims) == 1:
        return victims
    for other in sorted(lower, key=partial(_reluctance, budgets)):
        with run.simulate(row) as node:
            node.remove([other])
            if node.refusal() is None:
                return [other]
    return sorted(victims, key=lambda other: (importance(other), str(other)))


def _reluctance(budgets: Budgets, pod: fw.Pod) -> tuple[bool, int, int, int, str]:
    """Sort by this for the pods first that go more readily: leaving, under no budget, then the least important."""
    priority, start = importance(pod)
    return not pod.is_deleting, len(budgets.split([pod])[0]), -priority, -start, str(pod)
