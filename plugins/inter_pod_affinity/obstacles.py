"""InterPodAffinity's obstacles on a node: the terms, and the pods that they are about."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np

from plugins.inter_pod_affinity.filter import FilterState
from scheduler import framework as fw
from scheduler.api.labels import HOSTNAME
from scheduler.api.pods.pod_affinity import AffinityTerm

_ROOT: Final = "/spec/affinity/{}/requiredDuringSchedulingIgnoredDuringExecution"


def affinity_obstacles(
    pod: fw.Pod, counts: FilterState, nodes: fw.NodeColumns, node: fw.NodeInfo
) -> Iterator[fw.Obstacle]:
    """Yield each term that refuses the node: affinity, anti-affinity, and that of the pods there."""
    terms = pod.affinity_terms
    if counts.refuses_by_affinity(node.row):
        only = counts.only_one_near()
        in_the_way = (fw.PodInTheWay(only),) if only is not None else ()
        for place, term in enumerate(terms.required_affinity):
            if not counts.is_near(term, node.row):
                text = f"pod affinity to {term.selector} on {term.topology_key}"
                drop = _drop("podAffinity", place, terms.required_affinity, text)
                fact = f"{text}: no such pod {_domain(term.topology_key, node)}"
                yield fw.Obstacle(fact, (drop,), in_the_way=in_the_way)
    for place, term in enumerate(counts.anti_affinity):
        other = _find(term.topology_key, nodes, node, counts.pods_matching(term), partial(_selects, term))
        if other is not None:
            text = f"pod anti-affinity to {term.selector} on {term.topology_key}"
            drop = _drop("podAntiAffinity", place, terms.required_anti_affinity, text)
            fact = f"{text}: such a pod is {_domain(term.topology_key, node)}"
            yield fw.Obstacle(fact, (drop,), example=str(other), in_the_way=(fw.PodInTheWay(other),))
    yield from _of_others(counts, nodes, node)


def _of_others(counts: FilterState, nodes: fw.NodeColumns, node: fw.NodeInfo) -> Iterator[fw.Obstacle]:
    for key in sorted(counts.keys_avoided(node.row)):
        other = _find(key, nodes, node, counts.pods_avoiding(key), partial(counts.is_avoided_by, key))
        if other is not None:
            fact = f"a pod {_domain(key, node)} has an anti-affinity to this one on {key}"
            yield fw.Obstacle(fact, example=str(other), in_the_way=(fw.PodInTheWay(other),))


def _selects(term: AffinityTerm, pod: fw.Pod) -> bool:
    return term.matches(pod.namespace, pod.labels, None)


def _find(
    key: str,
    nodes: fw.NodeColumns,
    node: fw.NodeInfo,
    counts: fw.Int32Column,
    wanted: Callable[[fw.Pod], bool],
) -> fw.Pod | None:
    """Return the first pod by name on the node, or else on the first node by name of its domain that has any.

    `counts`: how many such pods each row has.
    """
    if key not in node.labels:
        return None
    row: int | None = node.row
    if not counts[node.row]:
        codes = nodes.label_codes(key)
        rows = np.flatnonzero((codes == codes[node.row]) & (counts != 0) & nodes.in_use)
        names = nodes.names()
        row = min(rows.tolist(), key=lambda each: names[each], default=None)
    if row is None:
        return None
    return min((pod for pod in nodes.info(row).pods if wanted(pod)), key=str, default=None)


def _domain(key: str, node: fw.NodeInfo) -> str:
    if key == HOSTNAME:
        return "on the node"
    return f"in {key}={node.labels[key]}" if key in node.labels else f"near, and the node has no label {key}"


def _drop(kind: str, place: int, terms: tuple[AffinityTerm, ...], text: str) -> fw.Remedy:
    root = _ROOT.format(kind)
    return fw.Remedy(f"drop the {text}", (fw.Change("remove", root if len(terms) == 1 else f"{root}/{place}"),))
