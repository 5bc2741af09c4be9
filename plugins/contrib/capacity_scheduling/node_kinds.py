"""The nodes of a kind, by name: worked out again only when labels have changed."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from scheduler import framework as fw

MAX_KEPT: Final = 64
"""Kinds of which it is kept which nodes are of them."""

NO_NODE: Final = frozenset({"(none)"})
"""Cuts off all nodes, one by one, so that each has a reason: no node has such a name."""


class _Found(NamedTuple):
    columns: Sequence[fw.Int32Column]
    in_use: fw.BoolColumn
    names: frozenset[str]


class NodeKinds:
    """Finds the kinds of nodes."""

    def __init__(self) -> None:
        self._kept: dict[fw.NodeKind, _Found] = {}

    def names(self, kind: fw.NodeKind, nodes: fw.NodeColumns) -> frozenset[str]:
        """Return the names of the nodes of a kind, or a name that no node has."""
        labels = kind.labels
        columns, in_use = [nodes.label_codes(label) for label in labels], nodes.in_use
        kept = self._kept.get(kind)
        if kept is not None and np.array_equal(kept.in_use, in_use) and all(map(np.array_equal, kept.columns, columns)):
            return kept.names
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        found = _Found([each.copy() for each in columns], in_use.copy(), _names(kind, labels, columns, nodes))
        self._kept[kind] = found
        return found.names


def _names(
    kind: fw.NodeKind, labels: Sequence[str], columns: Sequence[fw.Int32Column], nodes: fw.NodeColumns
) -> frozenset[str]:
    rows, names = np.flatnonzero(nodes.in_use), nodes.names()
    values = [nodes.label_values(label) for label in labels]
    verdicts: dict[tuple[int, ...], bool] = {}
    found = set()
    for row, *codes in zip(rows.tolist(), *(column[rows].tolist() for column in columns), strict=True):
        verdict = verdicts.get(key := tuple(codes))
        if verdict is None:
            has = {label: of[code] for label, of, code in zip(labels, values, codes, strict=True) if code}
            verdict = verdicts[key] = kind.includes(has)
        if verdict:
            found.add(names[row])
    return frozenset(found) or NO_NODE
