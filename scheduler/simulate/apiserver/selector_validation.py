"""What the API server refuses in the selectors of a new pod, in its words.

Rules: ValidateLabelSelector in k8s.io/apimachinery pkg/apis/meta/v1/validation at v0.36.3; ValidateNodeSelector and
ValidateMatchLabelKeysAndMismatchLabelKeys in pkg/apis/core/validation/validation.go at v1.36.3.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from scheduler.api.label_selectors import DOES_NOT_EXIST, EXISTS, IN, NOT_IN
from scheduler.api.labels import label_key_problems, label_value_problems, subdomain_problems
from scheduler.api.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from scheduler.framework.field_errors import forbidden, invalid, required
from scheduler.simulate.apiserver.checks import Problems, invalids, shown

_SOME: Final = "must be specified when `operator` is 'In' or 'NotIn'"
_NONE: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_ONE: Final = "must be specified single value when `operator` is 'Lt' or 'Gt'"
_ONE_FIELD: Final = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
_UNKNOWN: Final = "not a valid selector operator"


def labels(path: str, written: Mapping[str, str]) -> Problems:
    """Yield what is wrong with labels, or what has their form."""
    for key, value in written.items():
        yield from invalids(path, key, label_key_problems(key))
        yield from invalids(path, value, label_value_problems(value))


def label_selector(path: str, selector: LabelSelector | None) -> Problems:
    """Yield what is wrong with a label selector, which may be absent."""
    if selector is None:
        return
    yield from labels(f"{path}.matchLabels", selector.match_labels or {})
    for index, requirement in enumerate(selector.match_expressions or ()):
        at = f"{path}.matchExpressions[{index}]"
        yield from _operator(at, requirement)
        yield from _key_and_values(at, requirement, are_values_checked=True)


def label_keys(
    path: str, match: Sequence[str] | None, mismatch: Sequence[str] | None, selector: LabelSelector | None
) -> Problems:
    """Yield what is wrong with matchLabelKeys and mismatchLabelKeys, whose values the selector has got already."""
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            yield f"{path}.{name}", forbidden("must not be specified when labelSelector is not set")
        elif keys:
            for index, key in enumerate(keys):
                yield from invalids(f"{path}.{name}[{index}]", key, label_key_problems(key))
    places = {key: index for index, key in enumerate(match or ())}
    seen = set((selector.match_labels if selector is not None else None) or ())
    for requirement in (selector.match_expressions if selector is not None else None) or ():
        if requirement.key in places and requirement.key in seen:
            detail = "exists in both matchLabelKeys and labelSelector"
            yield f"{path}[{places[requirement.key]}]", invalid(shown(requirement.key), detail)
        seen.add(requirement.key)
    for index, key in enumerate(match or ()):
        if key in (mismatch or ()):
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield f"{path}.matchLabelKeys[{index}]", invalid(shown(key), detail)


def node_selector(path: str, selector: NodeSelector) -> Problems:
    """Yield what is wrong with the required terms of a node affinity."""
    if not selector.node_selector_terms:
        yield f"{path}.nodeSelectorTerms", required("must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms or ()):
        yield from node_selector_term(f"{path}.nodeSelectorTerms[{index}]", term, are_values_checked=True)


def node_selector_term(path: str, term: NodeSelectorTerm, *, are_values_checked: bool) -> Problems:
    """Yield what is wrong with a term. Values that no label has are allowed in preferred ones."""
    for index, requirement in enumerate(term.match_expressions or ()):
        at = f"{path}.matchExpressions[{index}]"
        if requirement.operator in ("Gt", "Lt"):
            if len(requirement.values or ()) != 1:
                yield f"{at}.values", required(_ONE)
        else:
            yield from _operator(at, requirement)
        yield from _key_and_values(at, requirement, are_values_checked=are_values_checked)
    for index, requirement in enumerate(term.match_fields or ()):
        yield from _field(f"{path}.matchFields[{index}]", requirement)


def _operator(path: str, requirement: LabelSelectorRequirement | NodeSelectorRequirement) -> Problems:
    match requirement.operator:
        case operator if operator in (IN, NOT_IN):
            if not requirement.values:
                yield f"{path}.values", required(_SOME)
        case operator if operator in (EXISTS, DOES_NOT_EXIST):
            if requirement.values:
                yield f"{path}.values", forbidden(_NONE)
        case operator:
            yield f"{path}.operator", invalid(shown(operator), _UNKNOWN)


def _key_and_values(
    path: str, requirement: LabelSelectorRequirement | NodeSelectorRequirement, *, are_values_checked: bool
) -> Problems:
    yield from invalids(f"{path}.key", requirement.key, label_key_problems(requirement.key))
    for index, value in enumerate((requirement.values or ()) if are_values_checked else ()):
        yield from invalids(f"{path}.values[{index}]", value, label_value_problems(value))


def _field(path: str, requirement: NodeSelectorRequirement) -> Problems:
    if requirement.operator not in (IN, NOT_IN):
        yield f"{path}.operator", invalid(shown(requirement.operator), _UNKNOWN)
    elif len(requirement.values or ()) != 1:
        yield f"{path}.values", required(_ONE_FIELD)
    if requirement.key != "metadata.name":
        yield f"{path}.key", invalid(shown(requirement.key), "not a valid field selector key")
        return
    for index, value in enumerate(requirement.values or ()):
        yield from invalids(f"{path}.values[{index}]", value, subdomain_problems(value))
