"""What the pods of `make bench-cycle` ask for: a case each, with what a decision on it may cost.

In every case pods of 50 apps run in the cluster and more of the same come.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.bench.cycle_world import HOSTNAME, ZONE, Json

_AFFINITY: Final = "InterPodAffinity"
_SPREAD: Final = "PodTopologySpread"
_VOLUMES: Final = ("VolumeBinding", "VolumeRestrictions", "NodeVolumeLimits", "VolumeZone")


def _plain(app: str) -> Json:
    return {}


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that pods ask for."""

    name: str
    spec: Callable[[str], Json] = _plain
    """App → what the spec of its pods says, besides a container that asks for a little."""

    aim: float | None = None
    """The median of a decision at 5,000 nodes with 20,000 pods, in milliseconds at most; None: not set."""

    needs: tuple[str, ...] = ()
    """Plugins without which the case would measure nothing."""

    namespaces: int = 1
    """How many the pods of an app lie in. All of them have a label that a selector can match."""

    services: bool = False
    """Whether a Service selects the pods of each app."""

    claims: bool = False
    """Whether each pod has a claim that is bound to a volume of its own."""

    full: bool = False
    """Whether the pods leave no room, and those that come are of higher priority."""


def _selector(app: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}}


def _spread(key: str, when: str) -> Callable[[str], Json]:
    def spec(app: str) -> Json:
        constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, **_selector(app)}
        return {"topologySpreadConstraints": [constraint]}

    return spec


def _required(kind: str, key: str, **more: Json) -> Callable[[str], Json]:
    def spec(app: str) -> Json:
        term = {"topologyKey": key, **_selector(app), **more}
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    return spec


def _preferred(kind: str, key: str, **more: Json) -> Callable[[str], Json]:
    def spec(app: str) -> Json:
        term = {"weight": 10, "podAffinityTerm": {"topologyKey": key, **_selector(app), **more}}
        return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}

    return spec


_NEAR: Final = "podAffinity"
_FAR: Final = "podAntiAffinity"
_TEAMS: Final[Json] = {"matchLabels": {"team": "devops"}}
_HUNDRED: Final = 100

PLAIN: Final = "plain pod"

CASES: Final = (
    Case(PLAIN),
    Case("hard spread, zone", _spread(ZONE, "DoNotSchedule"), 0.3, (_SPREAD,)),
    Case("hard spread, hostname", _spread(HOSTNAME, "DoNotSchedule"), None, (_SPREAD,)),
    Case("soft spread, zone", _spread(ZONE, "ScheduleAnyway"), None, (_SPREAD,)),
    Case("soft spread, hostname", _spread(HOSTNAME, "ScheduleAnyway"), None, (_SPREAD,)),
    Case("system default spread", needs=(_SPREAD,), services=True),
    Case("required anti-affinity, hostname", _required(_FAR, HOSTNAME), 0.3, (_AFFINITY,)),
    Case("required affinity, zone", _required(_NEAR, ZONE), None, (_AFFINITY,)),
    Case("preferred affinity, hostname", _preferred(_NEAR, HOSTNAME), 0.4, (_AFFINITY,)),
    Case("preferred affinity, zone", _preferred(_NEAR, ZONE), 0.4, (_AFFINITY,)),
    Case("preferred anti-affinity, hostname", _preferred(_FAR, HOSTNAME), 0.4, (_AFFINITY,)),
    Case("preferred anti-affinity, zone", _preferred(_FAR, ZONE), 0.4, (_AFFINITY,)),
    Case(
        "required affinity, zone, 100 namespaces",
        _required(_NEAR, ZONE, namespaceSelector=_TEAMS),
        0.5,
        (_AFFINITY,),
        namespaces=_HUNDRED,
    ),
    Case(
        "req. anti-affinity, hostname, 100 namesp.",
        _required(_FAR, HOSTNAME, namespaceSelector=_TEAMS),
        0.5,
        (_AFFINITY,),
        namespaces=_HUNDRED,
    ),
    Case(
        "pref. affinity, zone, 100 namespaces",
        _preferred(_NEAR, ZONE, namespaceSelector=_TEAMS),
        0.5,
        (_AFFINITY,),
        namespaces=_HUNDRED,
    ),
    Case("a bound volume each", aim=0.4, needs=_VOLUMES, claims=True),
    Case("preemption on a full cluster", aim=10.0, needs=("DefaultPreemption",), full=True),
)

GROW_WITH_NODES: Final = (
    PLAIN,
    "hard spread, zone",
    "required anti-affinity, hostname",
    "preferred affinity, hostname",
)
"""Cases of which is shown how they grow with the nodes."""

GROW_WITH_PODS: Final = (PLAIN, "hard spread, zone", "required affinity, zone", "preferred affinity, hostname")
"""And with the pods. Required anti-affinity is not among them: it leaves no room for many pods of an app."""
