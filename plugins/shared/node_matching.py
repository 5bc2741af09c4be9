"""Node selectors over columns: the rows that a pod's nodeSelector and node affinity select.

Each answer equals `scheduler.api.selectors` asked row by row. A label is evaluated per distinct value, not per node.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from plugins.shared.column_math import pick
from scheduler import framework as fw
from scheduler.api.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    IN,
    NODE_NAME_FIELD,
    FieldRequirement,
    LabelRequirement,
    PreferredTerm,
    SelectorTerm,
    pod_selector_terms,
)

FEW: Final = 8
"""Up to this many values of a label are compared one by one."""


def selected_by_pod(pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    """Return which of `rows` fit the pod's nodeSelector and required node affinity.

    Rule: nodeaffinity.go (RequiredNodeAffinity.Match) at v0.36.3.
    """
    matching = np.ones(len(rows), np.bool_)
    for key, value in (pod.spec.node_selector or {}).items():
        matching &= has_label(LabelRequirement(key, IN, frozenset((value,))), nodes, rows)
    terms = pod_selector_terms(pod)
    if terms is not None:
        matching &= matching_any(terms, nodes, rows)
    return matching


def matching_any(terms: Iterable[SelectorTerm], nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    """Return which of `rows` match any of the terms."""
    matching = np.zeros(len(rows), np.bool_)
    for term in terms:
        matching |= _matching(term, nodes, rows)
    return matching


def weights(terms: Iterable[PreferredTerm], nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Int64Column:
    """Return for each of `rows` the sum of the weights of the terms that it matches."""
    total = np.zeros(len(rows), np.int64)
    for weight, term in terms:
        total += weight * _matching(term, nodes, rows)
    return total


def _matching(term: SelectorTerm, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    if term.problems:
        return np.zeros(len(rows), np.bool_)
    matching = np.ones(len(rows), np.bool_)
    for expression in term.expressions:
        matching &= has_label(expression, nodes, rows)
    for field in term.fields:
        matching &= _has_field(field, nodes, rows)
    return matching


def has_label(requirement: LabelRequirement, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    """Return which of `rows` meet one requirement."""
    codes = pick(nodes.label_codes(requirement.key), rows)
    if requirement.operator in (EXISTS, DOES_NOT_EXIST):
        has = codes.astype(np.bool_)
        return has if requirement.operator == EXISTS else ~has
    if requirement.operator == IN and len(requirement.values) <= FEW:
        return _has_value(requirement, codes, nodes)
    values = nodes.label_values(requirement.key)
    if 4 * len(rows) < len(values):  # which is about what it costs to look a value up
        return np.fromiter(
            (requirement.matches(values[code] if code else None) for code in codes.tolist()), np.bool_, len(rows)
        )
    by_code = np.fromiter(requirement.matches_each(values), np.bool_, len(values))
    by_code[0] = requirement.matches(None)
    return by_code[codes]


def _has_value(requirement: LabelRequirement, codes: fw.Int32Column, nodes: fw.NodeColumns) -> fw.BoolColumn:
    """Look up only these few values: some labels have a different value on every node."""
    matching = np.zeros(len(codes), np.bool_)
    for value in requirement.values:
        code = nodes.label_code(requirement.key, value)
        if code:
            matching |= codes == code
    return matching


def _has_field(requirement: FieldRequirement, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(rows), requirement.matches(""))
    row = nodes.row_of(requirement.value)
    has_field = np.zeros(len(rows), np.bool_) if row is None else rows == row
    return ~has_field if requirement.negated else has_field
