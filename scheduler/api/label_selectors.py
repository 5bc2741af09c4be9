"""Label selectors, parsed once: which pods or namespaces a metav1.LabelSelector names.

Rules and messages: k8s.io/apimachinery pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector) and
pkg/labels/selector.go (NewRequirement, Matches) at v0.36.3.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from scheduler.api.labels import label_key_problems, label_value_problems
from scheduler.api.objects import LabelSelector, LabelSelectorRequirement
from scheduler.api.recent_caches import RecentCache
from scheduler.api.wording.messages import aggregated, quoted

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"

_CACHE_BYTES: Final = 4 << 20

_Written: TypeAlias = tuple[tuple[tuple[str, str], ...], tuple[LabelSelectorRequirement, ...]]
"""`matchLabels` and `matchExpressions`."""


class Requirement(NamedTuple):
    """The requirement on one label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()


class Selector(NamedTuple):
    """Requirements that must all hold; without any, it matches everything. Equal ones compare and hash equal."""

    requirements: tuple[Requirement, ...] = ()
    """Each once, in a fixed order."""
    is_nothing: bool = False
    """Whether it matches nothing at all, as an absent selector does. Then it has no requirements."""

    @property
    def is_everything(self) -> bool:
        """Whether it matches all labels, absent ones included: `Empty()` in apimachinery."""
        return not self.requirements and not self.is_nothing

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether an object with these labels is selected. None stands for no labels."""
        if self.is_nothing:
            return False
        labels = labels or {}
        for key, operator, values in self.requirements:
            value = labels.get(key)
            if operator == IN:
                if value not in values:
                    return False
            elif operator == NOT_IN:
                if value in values:
                    return False
            elif (value is None) == (operator == EXISTS):
                return False
        return True

    def __str__(self) -> str:
        """As kubectl writes selectors: `app=web,tier in (a,b),!legacy`."""
        if not self.requirements:
            return "no pods" if self.is_nothing else "all pods"
        return ",".join(map(_spelled, self.requirements))

    def and_also(self, other: "Selector") -> "Selector":
        """Return the selector of the objects that both select."""
        if self.is_nothing or other.is_nothing:
            return NOTHING
        return selector_of((*self.requirements, *other.requirements))


def _spelled(requirement: Requirement) -> str:
    key, operator, values = requirement
    if operator in (EXISTS, DOES_NOT_EXIST):
        return key if operator == EXISTS else f"!{key}"
    if operator == IN and len(values) == 1:
        return f"{key}={next(iter(values))}"
    return f"{key} {'in' if operator == IN else 'notin'} ({','.join(sorted(values))})"


NOTHING: Final = Selector(is_nothing=True)
EVERYTHING: Final = Selector()


def selector_of(requirements: Iterable[Requirement]) -> Selector:
    """Return the selector of all these requirements, which must be valid."""
    return Selector(tuple(sorted(set(requirements), key=_order)))


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """Return the selector of objects that have all these labels. Nothing is validated, as in labels.SelectorFromSet."""
    return selector_of(Requirement(key, IN, frozenset((value,))) for key, value in labels.items())


def parse_label_selector(selector: LabelSelector | None) -> Selector:
    """Parse a selector; None selects nothing, an empty one everything.

    Raises ValueError with apimachinery's text for the first requirement that is not valid.
    """
    if selector is None:
        return NOTHING
    written = tuple((selector.match_labels or {}).items()), selector.match_expressions or ()
    return _parsed.get(written) or _parsed.put(written, _parse(*written))


def _parse(labels: tuple[tuple[str, str], ...], expressions: tuple[LabelSelectorRequirement, ...]) -> Selector:
    requirements = []
    for key, value in labels:
        _check(key, IN, (value,))
        requirements.append(Requirement(key, IN, frozenset((value,))))
    for expression in expressions:
        operator, values = expression.operator, expression.values or ()
        if operator not in (IN, NOT_IN, EXISTS, DOES_NOT_EXIST):
            raise ValueError(f"{quoted(operator)} is not a valid label selector operator")
        _check(expression.key, operator, values)
        requirements.append(Requirement(expression.key, operator, frozenset(values)))
    return selector_of(requirements)


def _check(key: str, operator: str, values: tuple[str, ...]) -> None:
    problems = []
    if wrong := label_key_problems(key):
        problems.append(f"key: Invalid value: {quoted(key)}: {'; '.join(wrong)}")
    if operator in (IN, NOT_IN) and not values:
        problems.append("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty")
    elif operator in (EXISTS, DOES_NOT_EXIST) and values:
        rule = "values set must be empty for exists and does not exist"
        problems.append(f"values: Invalid value: {quoted(values)}: {rule}")
    problems += (
        f"values[{i}][{key}]: Invalid value: {quoted(value)}: {'; '.join(wrong)}"
        for i, value in enumerate(values)
        if (wrong := label_value_problems(value))
    )
    if problems:
        raise ValueError(aggregated(problems))


_parsed: RecentCache[_Written, Selector] = RecentCache("label selectors", _CACHE_BYTES)


def _order(requirement: Requirement) -> tuple[str, str, list[str]]:
    return requirement.key, requirement.operator, sorted(requirement.values)
