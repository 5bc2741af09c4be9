"""From which nodes a volume can be reached: node affinities and topologies over columns.

Rule: component-helpers, storage/volume/helpers.go (CheckNodeAffinity) at v0.36.3, and volumebinding/binder.go
(tryTranslatePVToCSI) at v1.36.3.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from plugins.node_matching import matching_any
from scheduler import framework as fw
from scheduler.api.csi_translation import TranslationError, plugin_of, translated
from scheduler.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from scheduler.api.selectors import (
    IN,
    SelectorTerm,
    as_one_message,
    matches_any,
    problems_of,
    required_terms,
)
from scheduler.api.volumes import MIGRATED_PLUGINS, CSINode, PersistentVolume, StorageClass
from scheduler.framework.nodes import BoolColumn, NodeColumns, Rows

NO_MATCH = "no matching NodeSelectorTerms"


def terms_of(volume: PersistentVolume) -> tuple[SelectorTerm, ...] | None:
    """Return what a node's labels must be like, in any of the terms; None if any node will do.

    The node is known by its labels only, so `matchFields` name no node and are left out.
    """
    affinity = volume.spec.node_affinity
    return None if affinity is None or affinity.required is None else _by_labels(affinity.required)


@lru_cache(maxsize=4096)
def _by_labels(selector: NodeSelector) -> tuple[SelectorTerm, ...]:
    return tuple(term._replace(fields=()) for term in required_terms(selector))


def only_label(terms: tuple[SelectorTerm, ...]) -> tuple[str, frozenset[str]] | None:
    """Return label and values if that is all the terms ask for; None if it is not as simple as that."""
    if len(terms) != 1 or terms[0].problems or len(terms[0].expressions) != 1:
        return None
    (expression,) = terms[0].expressions
    return (expression.key, expression.values) if expression.operator == IN else None


def reachable(volume: PersistentVolume, nodes: NodeColumns, rows: Rows, objects: fw.ObjectLister) -> BoolColumn | None:
    """Return from which of `rows` a bound volume can be reached; None for all of them.

    Where its kind is served by a CSI driver, that driver's labels count. Raises ValueError if it could serve no such
    volume.
    """
    terms = terms_of(volume)
    plugin = plugin_of(volume.spec)
    if plugin is None or not plugin.migrated:
        return None if terms is None else matching_any(terms, nodes, rows)
    names = nodes.names()
    each = (_is_migrated(plugin.name, names[row], objects) for row in rows.tolist())
    migrated = np.fromiter(each, np.bool_, len(rows))
    found = np.ones(len(rows), np.bool_) if terms is None else matching_any(terms, nodes, rows)
    if migrated.any():
        terms = terms_of(_translated(volume))
        found[migrated] = True if terms is None else matching_any(terms, nodes, rows[migrated])
    return found


def unreachable_because(volume: PersistentVolume, node: fw.NodeInfo, objects: fw.ObjectLister) -> str:
    """Return why a volume cannot be reached from one node; empty if it can. Raises ValueError as `reachable`."""
    plugin = plugin_of(volume.spec)
    if plugin is not None and plugin.migrated and _is_migrated(plugin.name, node.name, objects):
        volume = _translated(volume)
    terms = terms_of(volume)
    if terms is None or matches_any(terms, node.labels, ""):
        return ""
    problems = problems_of(terms)
    return as_one_message(problems) if problems else NO_MATCH


def allowed(storage_class: StorageClass, nodes: NodeColumns, rows: Rows) -> BoolColumn | None:
    """Return on which of `rows` volumes of a class may be made; None for all of them.

    A term that says nothing, or is not valid, allows no node. Rule: v1helper.MatchTopologySelectorTerms.
    """
    topologies = storage_class.allowed_topologies
    if not topologies:
        return None
    terms = tuple(
        NodeSelectorTerm(
            match_expressions=tuple(
                NodeSelectorRequirement(key=each.key, operator=IN, values=each.values)
                for each in term.match_label_expressions or ()
            )
        )
        for term in topologies
    )
    return matching_any(required_terms(NodeSelector(node_selector_terms=terms)), nodes, rows)


def _translated(volume: PersistentVolume) -> PersistentVolume:
    try:
        return translated(volume)
    except TranslationError as error:
        raise ValueError(f"could not translate pv: {error}") from error


def _is_migrated(plugin: str, node_name: str, objects: fw.ObjectLister) -> bool:
    csi_node: CSINode | None = objects.get(fw.CSI_NODE, node_name)
    return csi_node is not None and plugin in migrated_plugins(csi_node.annotations).split(",")


def migrated_plugins(annotations: Mapping[str, str]) -> str:
    """Return which in-tree kinds of volume the CSI drivers of a node serve, as its CSINode tells: `a,b`."""
    return annotations.get(MIGRATED_PLUGINS, "")
