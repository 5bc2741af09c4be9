"""Which taints a pod tolerates.

Rules: k8s.io/api core/v1/toleration.go (ToleratesTaint) and k8s.io/component-helpers scheduling/corev1/helpers.go at
v0.36.3, with the feature gate TaintTolerationComparisonOperators off, as 1.36 has it by default.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from scheduler.api.objects import Taint, Toleration

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"

KEEPS_PODS_AWAY: Final = frozenset((NO_SCHEDULE, NO_EXECUTE))
"""The effects for which a node refuses pods; PreferNoSchedule only lowers its score."""

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""The taint that stands for `spec.unschedulable`: pods that tolerate it may run there."""

_FEW: Final = 16
"""So many tolerations are simply compared."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether `toleration` covers `taint`. An empty effect covers every effect, an empty key every key.

    The operator is `Exists`, or `Equal` where it is empty; any other covers nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration] | None) -> bool:
    """Return whether any of a pod's tolerations covers `taint`."""
    for toleration in tolerations or ():  # noqa: SIM110 - `any` costs more than the comparison, and hints call this often
        if tolerates(toleration, taint):
            return True
    return False


def relevant(tolerations: Sequence[Toleration] | None, taints: Collection[Taint]) -> Sequence[Toleration]:
    """Return those of a pod's tolerations that may cover any of these taints: all but a few may be of other keys."""
    if not tolerations or len(tolerations) <= _FEW:
        return tolerations or ()
    keys = {"", *(taint.key for taint in taints)}
    values = {taint.value for taint in taints}
    # Each once: a list of equal ones may be as long as the pod's owner likes.
    return tuple(
        dict.fromkeys(
            each for each in tolerations if each.key in keys and (each.operator == "Exists" or each.value in values)
        )
    )


def first_untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration] | None, effects: Iterable[str] = KEEPS_PODS_AWAY
) -> Taint | None:
    """Return the first of a node's taints with one of `effects` that no toleration covers, or None."""
    covering = tuple(tolerations or ())
    for taint in taints:
        if taint.effect in effects and not is_tolerated(taint, covering):
            return taint
    return None
