"""The taints that a pod tolerates.

Rules: k8s.io/api core/v1/toleration.go (ToleratesTaint) and k8s.io/component-helpers scheduling/corev1/helpers.go at
v0.37.2. With the feature gate TaintTolerationComparisonOperators, off by default, tolerations can compare numbers
(`by_number`).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from scheduler.api.objects import Taint, Toleration

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"

KEEPS_PODS_AWAY: Final = frozenset((NO_SCHEDULE, NO_EXECUTE))
"""The effects for which a node refuses pods; PreferNoSchedule only lowers its score."""

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""The taint that stands for `spec.unschedulable`: pods that tolerate it may run there."""

COMPARISONS: Final = "TaintTolerationComparisonOperators"
"""The feature gate of the operators `Lt` and `Gt`."""

_BELOW, _ABOVE = "Lt", "Gt"
_INTEGER: Final = re.compile("0|-?[1-9][0-9]{0,18}")

_FEW: Final = 16
"""So many tolerations are simply compared."""


def tolerates(toleration: Toleration, taint: Taint, *, by_number: bool = False) -> bool:
    """Return whether `toleration` covers `taint`. An empty effect covers every effect, an empty key every key.

    The operator is `Exists`, or `Equal` where it is empty, or a comparison of numbers; any other covers nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return by_number and _is_in_range(toleration, taint)


def _is_in_range(toleration: Toleration, taint: Taint) -> bool:
    limit, number = _number(toleration.value), _number(taint.value)
    if limit is None or number is None:
        return False
    return (toleration.operator == _BELOW and number < limit) or (toleration.operator == _ABOVE and number > limit)


def _number(text: str) -> int | None:
    """Return an integer of 64 bits in its shortest spelling. Rule: IsDecimalInteger in k8s.io/apimachinery."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration] | None, *, by_number: bool = False) -> bool:
    """Return whether any of a pod's tolerations covers `taint`."""
    for toleration in tolerations or ():  # noqa: SIM110 - `any` costs more than the comparison, and hints call this often
        if tolerates(toleration, taint, by_number=by_number):
            return True
    return False


def untolerated(
    taints: Collection[Taint],
    tolerations: Sequence[Toleration] | None,
    effects: Collection[str] = KEEPS_PODS_AWAY,
    *,
    by_number: bool = False,
) -> list[Taint]:
    """Return all of these taints with one of `effects` that no toleration covers."""
    covering = relevant(tolerations, taints, by_number=by_number)
    return [each for each in taints if each.effect in effects and not is_tolerated(each, covering, by_number=by_number)]


def relevant(
    tolerations: Sequence[Toleration] | None, taints: Collection[Taint], *, by_number: bool = False
) -> Sequence[Toleration]:
    """Return those of a pod's tolerations that may cover any of these taints: all but a few may be of other keys."""
    if not tolerations or len(tolerations) <= _FEW:
        return tolerations or ()
    keys = {"", *(taint.key for taint in taints)}
    values = {taint.value for taint in taints}
    named = [each for each in tolerations if each.key in keys]
    # Each once: a list of equal ones may be as long as the pod's owner likes.
    plain = dict.fromkeys(each for each in named if each.operator == "Exists" or each.value in values)
    return (*plain, *_widest(named)) if by_number else tuple(plain)


def _widest(tolerations: Iterable[Toleration]) -> Iterator[Toleration]:
    """Yield, of all comparisons with one key, effect and operator, the one that covers the others."""
    found: dict[tuple[str, str, str], tuple[int, Toleration]] = {}
    for each in tolerations:
        number = _number(each.value)
        if each.operator in (_BELOW, _ABOVE) and number is not None:
            kind = (each.key, each.effect, each.operator)
            reach = number if each.operator == _BELOW else -number
            if kind not in found or reach > found[kind][0]:
                found[kind] = (reach, each)
    return (each for _, each in found.values())


def first_untolerated(
    taints: Iterable[Taint],
    tolerations: Iterable[Toleration] | None,
    effects: Iterable[str] = KEEPS_PODS_AWAY,
    *,
    by_number: bool = False,
) -> Taint | None:
    """Return the first of a node's taints with one of `effects` that no toleration covers, or None."""
    covering = tuple(tolerations or ())
    for taint in taints:
        if taint.effect in effects and not is_tolerated(taint, covering, by_number=by_number):
            return taint
    return None
