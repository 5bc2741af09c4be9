"""The nodes from which a volume can be reached: node affinities and topologies over columns.

Rule: component-helpers, storage/volume/helpers.go (CheckNodeAffinity) at v0.36.3, and volumebinding/binder.go
(tryTranslatePVToCSI) at v1.36.3.
"""

from typing import Final

import numpy as np

from plugins.shared.node_matching import matching_any
from plugins.volumes.csi_nodes import CsiNodeColumns, is_migrated
from scheduler import framework as fw
from scheduler.api.objects import NodeSelector
from scheduler.api.recent_caches import RecentCache
from scheduler.api.selectors import (
    IN,
    SelectorTerm,
    as_one_message,
    matches_any,
    problems_of,
    required_terms,
)
from scheduler.api.storage.csi_translation import TranslationError, plugin_of, translated
from scheduler.api.storage.volumes import PersistentVolume, StorageClass

NO_MATCH = "no matching NodeSelectorTerms"

_CACHE_BYTES: Final = 4 << 20


def terms_of(volume: PersistentVolume) -> tuple[SelectorTerm, ...] | None:
    """Return terms, any of which a node's labels must match; None if any node will do.

    The node is known by its labels only, so `matchFields` name no node and are left out.
    """
    affinity = volume.spec.node_affinity
    return None if affinity is None or affinity.required is None else _by_labels(affinity.required)


def _by_labels(selector: NodeSelector) -> tuple[SelectorTerm, ...]:
    found = _terms_by_labels.get(selector)
    if found is None:
        found = tuple(term._replace(fields=()) for term in required_terms(selector))
        _terms_by_labels.put(selector, found)
    return found


_terms_by_labels: RecentCache[NodeSelector, tuple[SelectorTerm, ...]] = RecentCache("volume topologies", _CACHE_BYTES)


def only_label(terms: tuple[SelectorTerm, ...]) -> tuple[str, frozenset[str]] | None:
    """Return label and values if the terms require nothing else; None otherwise."""
    if len(terms) != 1 or terms[0].problems or len(terms[0].expressions) != 1:
        return None
    (expression,) = terms[0].expressions
    return (expression.key, expression.values) if expression.operator == IN else None


def reachable(
    volume: PersistentVolume, nodes: fw.NodeColumns, rows: fw.Rows, migrated: CsiNodeColumns
) -> fw.BoolColumn | None:
    """Return from which of `rows` a bound volume can be reached; None for all of them.

    Where its kind is served by a CSI driver, that driver's labels count. Raises AttemptFailed if it could serve no such
    volume.
    """
    terms = terms_of(volume)
    matching = None if terms is None else matching_any(terms, nodes, rows)
    plugin = plugin_of(volume.spec)
    if plugin is None or not plugin.migrated:
        return matching
    served = migrated.of(plugin.name, rows)
    if not served.any():
        return matching
    csi_terms = terms_of(_translated(volume))
    if csi_terms == terms:
        return matching
    in_tree = True if matching is None else matching
    return np.where(served, True if csi_terms is None else matching_any(csi_terms, nodes, rows), in_tree)


def unreachable_because(volume: PersistentVolume, node: fw.NodeInfo, objects: fw.ObjectLister) -> str:
    """Return why a volume cannot be reached from one node; empty if it can. Raises AttemptFailed as `reachable`."""
    plugin = plugin_of(volume.spec)
    if plugin is not None and plugin.migrated and is_migrated(plugin.name, node.name, objects):
        volume = _translated(volume)
    terms = terms_of(volume)
    if terms is None or matches_any(terms, node.labels, ""):
        return ""
    problems = problems_of(terms)
    return as_one_message(problems) if problems else NO_MATCH


def allowed(storage_class: StorageClass, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn | None:
    """Return on which of `rows` volumes of a class may be provisioned; None for all of them.

    A term that says nothing, or is not valid, allows no node. Rule: v1helper.MatchTopologySelectorTerms.
    """
    selector = storage_class.allowed_nodes
    return None if selector is None else matching_any(required_terms(selector), nodes, rows)


def _translated(volume: PersistentVolume) -> PersistentVolume:
    try:
        return translated(volume)
    except TranslationError as error:
        raise fw.AttemptFailed(f"could not translate pv: {error}") from error
