"""Node selectors, parsed once: which nodes a pod's nodeSelector and node affinity name.

Rules and messages: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go, k8s.io/apimachinery
pkg/labels/selector.go (Requirement) and pkg/fields/selector.go at v0.36.3. A term that cannot be parsed matches no
node; its problems say why.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from scheduler.api.label_selectors import DOES_NOT_EXIST as DOES_NOT_EXIST
from scheduler.api.label_selectors import EXISTS as EXISTS
from scheduler.api.label_selectors import IN as IN
from scheduler.api.label_selectors import NOT_IN as NOT_IN
from scheduler.api.labels import label_key_problems, label_value_problems
from scheduler.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from scheduler.api.pods.pod import Pod
from scheduler.api.recent_caches import RecentCache
from scheduler.api.wording.messages import aggregated, quoted

GT: Final = "Gt"
LT: Final = "Lt"

NODE_NAME_FIELD: Final = "metadata.name"
"""The only field of a node that `matchFields` knows; any other counts as empty."""

_CACHE_BYTES: Final = 8 << 20
_INTEGER = re.compile(r"[+-]?[0-9]+")


class FieldProblem(NamedTuple):
    """The problem, and its path: `[0].matchExpressions[1].operator`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class LabelRequirement(NamedTuple):
    """One of a term's `matchExpressions`, known to be valid."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    number: int = 0
    """The number that `Gt` and `Lt` compare with."""

    def matches(self, value: str | None) -> bool:
        """Return whether a node may have this value of the label; None stands for a node without it."""
        operator = self.operator
        if operator == IN:
            return value in self.values
        if operator == NOT_IN:
            return value not in self.values
        if operator == EXISTS:
            return value is not None
        if operator == DOES_NOT_EXIST:
            return value is None
        number = None if value is None else parse_int64(value)
        if number is None:
            return False
        return number > self.number if operator == GT else number < self.number

    def matches_each(self, values: Iterable[str]) -> Iterator[bool]:
        """Yield for each value of the label whether a node may have it."""
        # Quick for `In`: some labels have a different value on every node.
        return map(self.values.__contains__ if self.operator == IN else self.matches, values)


class FieldRequirement(NamedTuple):
    """One of a term's `matchFields`: the field equals the value, or `negated`, differs from it."""

    key: str
    value: str
    negated: bool

    def matches(self, name: str) -> bool:
        """Return whether it holds for the node of that name."""
        return ((name if self.key == NODE_NAME_FIELD else "") == self.value) != self.negated


class SelectorTerm(NamedTuple):
    """Requirements that must all hold. With `problems` it matches nothing."""

    expressions: tuple[LabelRequirement, ...]
    fields: tuple[FieldRequirement, ...]
    problems: tuple[FieldProblem, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node with these labels and this name fulfils the term."""
        if self.problems:
            return False
        # Plain loops: queueing hints call this a thousand times per second, and `all` costs more than the comparison.
        for expression in self.expressions:
            if not expression.matches(labels.get(expression.key)):
                return False
        return not name or not self.fields or all(field.matches(name) for field in self.fields)


class PreferredTerm(NamedTuple):
    """A term that adds `weight` to the score of each node that it matches."""

    weight: int
    term: SelectorTerm


def required_terms(selector: NodeSelector) -> tuple[SelectorTerm, ...]:
    """Parse a required selector: a node must match any of the terms. Empty terms match nothing and are left out."""
    return _parsed(selector).terms


def preferred_terms(terms: tuple[PreferredSchedulingTerm, ...]) -> tuple[PreferredTerm, ...]:
    """Parse preferred terms. Those without weight or requirements are left out."""
    found = _preferred.get(terms)
    if found is None:
        found = tuple(
            PreferredTerm(preferred.weight, _parse_term(preferred.preference, f"[{i}]"))
            for i, preferred in enumerate(terms)
            if preferred.weight and (preferred.preference.match_expressions or preferred.preference.match_fields)
        )
        _preferred.put(terms, found)
    return found


def matches_any(terms: Iterable[SelectorTerm], labels: Mapping[str, str], name: str) -> bool:
    """Return whether a node matches one of the terms, as a required selector asks."""
    return any(term.matches(labels, name) for term in terms)


def pod_selector_terms(pod: Pod) -> tuple[SelectorTerm, ...] | None:
    """Return the terms of a pod's required node affinity; None if it has none."""
    parsed = _parsed_of(pod)
    return None if parsed is None else parsed.terms


def pod_selector_keys(pod: Pod) -> frozenset[str] | None:
    """Return the labels on which `pod_selects` depends; None if a term cannot be parsed."""
    selector, parsed = pod.spec.node_selector, _parsed_of(pod)
    if parsed is None:
        return frozenset(selector) if selector else frozenset()
    return parsed.keys | selector.keys() if selector and parsed.keys is not None else parsed.keys


def _parsed_of(pod: Pod) -> "_Parsed | None":
    """Parse the required node affinity of a pod once: waiting pods are asked at every event of a node, and the cache
    cannot hold lists of thousands of values."""
    affinity, derived = pod.spec.affinity, pod._derived
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return None
    parsed: _Parsed | None = derived.node_terms
    if parsed is None:
        parsed = derived.node_terms = _parsed(affinity.node_affinity.required)
    return parsed


def _parsed(selector: NodeSelector) -> "_Parsed":
    found = _required.get(selector)
    if found is None:
        terms = tuple(
            _parse_term(term, f"nodeSelectorTerms[{i}]")
            for i, term in enumerate(selector.node_selector_terms or ())
            if term.match_expressions or term.match_fields
        )
        found = _required.put(selector, _Parsed(terms, _keys_of(terms)))
    return found


def _keys_of(terms: Iterable[SelectorTerm]) -> frozenset[str] | None:
    if any(term.problems for term in terms):
        return None
    return frozenset(expression.key for term in terms for expression in term.expressions)


class _Parsed(NamedTuple):
    """A required selector, parsed."""

    terms: tuple[SelectorTerm, ...]
    keys: frozenset[str] | None
    """The labels that it names; None if a term cannot be parsed."""


_required: RecentCache[NodeSelector, _Parsed] = RecentCache("required node affinities", _CACHE_BYTES)
_preferred: RecentCache[tuple[PreferredSchedulingTerm, ...], tuple[PreferredTerm, ...]] = RecentCache(
    "preferred node affinities", _CACHE_BYTES
)


def pod_selects(pod: Pod, labels: Mapping[str, str], name: str) -> bool:
    """Return whether a node fits a pod's nodeSelector and required node affinity.

    Raises ValueError if no term of the affinity matches and one cannot be parsed.
    Rule: nodeaffinity.go (RequiredNodeAffinity.Match).
    """
    selector = pod.spec.node_selector
    if selector:
        for key, value in selector.items():
            if labels.get(key) != value:
                return False
    terms = pod_selector_terms(pod)
    if terms is None:
        return True
    unreadable = False
    for term in terms:
        if term.problems:
            unreadable = True
        elif term.matches(labels, name):
            return True
    if unreadable:
        raise ValueError(as_one_message(problems_of(terms)))
    return False


def problems_of(terms: Iterable[SelectorTerm]) -> list[FieldProblem]:
    """Return the problems of all terms, in their order."""
    return [problem for term in terms for problem in term.problems]


def as_one_message(problems: Sequence[FieldProblem]) -> str:
    """Join problems as kube-scheduler joins errors: each once, in brackets if there are several."""
    return aggregated(map(str, problems))


def parse_int64(text: str) -> int | None:
    """Read a whole number as Go's strconv.ParseInt(text, 10, 64) does; None if it is not one or out of range."""
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > 19:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _parse_term(term: NodeSelectorTerm, path: str) -> SelectorTerm:
    problems: list[FieldProblem] = []
    expressions = [
        _parse_expression(requirement, f"{path}.matchExpressions[{i}]", problems)
        for i, requirement in enumerate(term.match_expressions or ())
    ]
    fields = [
        _parse_field(requirement, f"{path}.matchFields[{i}]", problems)
        for i, requirement in enumerate(term.match_fields or ())
    ]
    return SelectorTerm(tuple(expressions), tuple(fields), tuple(problems))


def _parse_expression(
    requirement: NodeSelectorRequirement, path: str, problems: list[FieldProblem]
) -> LabelRequirement:
    key, operator, values = requirement.key, requirement.operator, requirement.values or ()
    if operator not in (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT):
        problems.append(_unsupported(path, operator, (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT)))
        return LabelRequirement(key, operator)
    if wrong := label_key_problems(key):
        problems.append(FieldProblem(f"{path}.key", _invalid(key, "; ".join(wrong))))
    if wrong_count := _wrong_number_of_values(operator, values):
        problems.append(FieldProblem(f"{path}.values", _invalid(requirement.values, wrong_count)))
    if operator in (GT, LT):
        problems += (
            FieldProblem(
                f"{path}.values[{i}]", _invalid(value, "for 'Gt', 'Lt' operators, the value must be an integer")
            )
            for i, value in enumerate(values)
            if parse_int64(value) is None
        )
    problems += (
        FieldProblem(f"{path}.values[{i}][{key}]", _invalid(value, "; ".join(wrong)))
        for i, value in enumerate(values)
        if (wrong := label_value_problems(value))
    )
    number = parse_int64(values[0]) if operator in (GT, LT) and values else 0
    return LabelRequirement(key, operator, frozenset(values), number or 0)


def _wrong_number_of_values(operator: str, values: tuple[str, ...]) -> str:
    if operator in (IN, NOT_IN) and not values:
        return "for 'in', 'notin' operators, values set can't be empty"
    if operator in (EXISTS, DOES_NOT_EXIST) and values:
        return "values set must be empty for exists and does not exist"
    if operator in (GT, LT) and len(values) != 1:
        return "for 'Gt', 'Lt' operators, exactly one value is required"
    return ""


def _parse_field(requirement: NodeSelectorRequirement, path: str, problems: list[FieldProblem]) -> FieldRequirement:
    values = requirement.values or ()
    if requirement.operator not in (IN, NOT_IN):
        problems.append(_unsupported(path, requirement.operator, (IN, NOT_IN)))
    elif len(values) != 1:
        problems.append(FieldProblem(f"{path}.values", _invalid(requirement.values, "must have one element")))
    return FieldRequirement(requirement.key, values[0] if values else "", requirement.operator == NOT_IN)


def _unsupported(path: str, operator: str, supported: Iterable[str]) -> FieldProblem:
    known = ", ".join(f'"{name}"' for name in supported)
    return FieldProblem(f"{path}.operator", f"Unsupported value: {quoted(operator)}: supported values: {known}")


def _invalid(value: str | tuple[str, ...] | None, detail: str) -> str:
    return f"Invalid value: {quoted(value)}: {detail}"
