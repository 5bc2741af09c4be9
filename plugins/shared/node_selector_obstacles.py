"""Obstacles on a node that a pod's nodeSelector or required node affinity excludes."""

from collections.abc import Iterator, Sequence
from functools import partial
from shlex import quote
from typing import Final

from plugins.shared.remedies import labelled, pointer
from scheduler import framework as fw
from scheduler.api.labels import HOSTNAME
from scheduler.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from scheduler.api.selectors import required_terms

_REQUIRED: Final = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"

_Unmet = Sequence[tuple[str, int, NodeSelectorRequirement]]
"""Field of the term, place in it, requirement."""


def selector_obstacles(pod: fw.Pod, node: fw.NodeInfo) -> Iterator[fw.Obstacle]:
    """Yield each entry of the nodeSelector, and each requirement of the nearest term, that the node does not meet."""
    for key, wanted in sorted((pod.spec.node_selector or {}).items()):
        if node.labels.get(key) != wanted:
            yield _of_label(key, wanted, node)
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    terms = affinity.required.node_selector_terms or () if affinity is not None and affinity.required else ()
    unmet = [(len(found), place, found) for place, term in enumerate(terms) if (found := _unmet(term, node))]
    if len(unmet) < len(terms) or not unmet:
        return  # a term matches, or can match nothing: the reason says which
    _, place, nearest = min(unmet)
    remedy = _dropping(terms[place], place, nearest)
    for _, _, requirement in nearest:
        yield fw.Obstacle(f"node affinity {spelled_requirement(requirement)}{_here(requirement.key, node)}", (remedy,))


def _of_label(key: str, wanted: str, node: fw.NodeInfo) -> fw.Obstacle:
    drop = fw.Remedy(f"drop nodeSelector {key}={wanted}", (fw.Change("remove", f"/spec/nodeSelector/{pointer(key)}"),))
    if key == HOSTNAME:
        return fw.Obstacle(f"nodeSelector {key}={wanted}", (drop,))
    overwrite = "--overwrite " if key in node.labels else ""
    command = f"kubectl label node {node.name} {overwrite}{quote(f'{key}={wanted}')}"
    label = fw.Remedy(f"label {node.name} {key}={wanted}", (), command, partial(labelled, key=key, value=wanted))
    return fw.Obstacle(f"nodeSelector {key}={wanted}{_here(key, node)}", (drop, label))


def _here(key: str, node: fw.NodeInfo) -> str:
    """The node's own value. Hostnames are left out: they differ for every node."""
    if key in (HOSTNAME, "metadata.name"):
        return ""
    return f", and the node has {node.labels[key]!r}" if key in node.labels else ", and the node has no such label"


def _unmet(term: NodeSelectorTerm, node: fw.NodeInfo) -> _Unmet:
    parsed = required_terms(NodeSelector(node_selector_terms=(term,)))
    if not parsed or parsed[0].problems:
        return ()
    expressions = zip(term.match_expressions or (), parsed[0].expressions, strict=True)
    fields = zip(term.match_fields or (), parsed[0].fields, strict=True)
    return [
        *(
            ("matchExpressions", i, written)
            for i, (written, expression) in enumerate(expressions)
            if not expression.matches(node.labels.get(expression.key))
        ),
        *(("matchFields", i, written) for i, (written, of_node) in enumerate(fields) if not of_node.matches(node.name)),
    ]


def _dropping(term: NodeSelectorTerm, place: int, unmet: _Unmet) -> fw.Remedy:
    text = "drop node affinity " + " and ".join(spelled_requirement(requirement) for _, _, requirement in unmet)
    if len(unmet) == len(term.match_expressions or ()) + len(term.match_fields or ()):
        return fw.Remedy(text, (fw.Change("remove", _REQUIRED),))  # a term without requirements matches nothing
    changes = [
        fw.Change("remove", f"{_REQUIRED}/nodeSelectorTerms/{place}/{field}/{i}") for field, i, _ in reversed(unmet)
    ]
    return fw.Remedy(text, tuple(changes))


def spelled_requirement(requirement: NodeSelectorRequirement) -> str:
    """Say it as `zone In [a b]`."""
    values = f" [{' '.join(requirement.values)}]" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"
