"""Topology spread constraints, parsed: what PodTopologySpread counts, and on which nodes.

Rule: podtopologyspread/common.go and plugin.go at v1.36.3.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from scheduler.api.label_selectors import NOTHING, Selector, parse_label_selector, selector_from_labels
from scheduler.api.labels import HOSTNAME as HOSTNAME
from scheduler.api.labels import label_key_problems
from scheduler.api.objects import TopologySpreadConstraint
from scheduler.framework.field_errors import duplicate, forbidden, invalid, not_supported, required

ZONE: Final = "topology.kubernetes.io/zone"

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HONOR: Final = "Honor"

SYSTEM: Final = "System"
LIST: Final = "List"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5),
)
"""The constraints of pods without any, unless the configuration says otherwise."""


class SpreadConstraint(NamedTuple):
    """One constraint of a pod. Equal ones compare and hash equal."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    """Whether nodes that the pod's nodeSelector and node affinity leave out are not counted."""
    honors_taints: bool = False
    """Whether nodes with taints that the pod does not tolerate are not counted."""


def parse_constraints(
    constraints: Iterable[TopologySpreadConstraint], labels: Mapping[str, str], action: str
) -> tuple[SpreadConstraint, ...]:
    """Return the constraints of a pod with these `labels` that say `action` where they cannot be satisfied.

    Raises ValueError if a label selector is not valid.
    """
    return tuple(_parse(each, labels) for each in constraints if each.when_unsatisfiable == action)


def _parse(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> SpreadConstraint:
    selector = parse_label_selector(constraint.label_selector)
    same = {key: labels[key] for key in constraint.match_label_keys or () if key in labels}
    if same:  # The API server of 1.34 and later has merged them; pods of an older one come without.
        selector = selector.and_also(selector_from_labels(same))
    affinity, taints = constraint.node_affinity_policy, constraint.node_taints_policy
    return SpreadConstraint(
        constraint.max_skew,
        constraint.topology_key,
        selector,
        1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=affinity is None or affinity == HONOR,
        honors_taints=taints == HONOR,
    )


def with_selector(constraints: Iterable[SpreadConstraint], selector: Selector) -> tuple[SpreadConstraint, ...]:
    """Return default constraints as they are for a pod that `selector` stands for; none if it selects everything."""
    return () if selector.is_everything else tuple(each._replace(selector=selector) for each in constraints)


def default_constraints(constraints: Iterable[TopologySpreadConstraint], action: str) -> tuple[SpreadConstraint, ...]:
    """Return the default constraints with `action`, still without a selector."""
    return tuple(each._replace(selector=NOTHING) for each in parse_constraints(constraints, {}, action))


def problems_of_arguments(
    defaulting_type: str, constraints: Sequence[TopologySpreadConstraint]
) -> Iterator[tuple[str, str]]:
    """Yield each problem of PodTopologySpreadArgs, with its place.

    Rule: apis/config/validation/validation_pluginargs.go (ValidatePodTopologySpreadArgs) at v1.36.3.
    """
    if defaulting_type not in (SYSTEM, LIST):
        yield "defaultingType", not_supported(defaulting_type, (SYSTEM, LIST))
    elif defaulting_type == SYSTEM and constraints:
        yield "defaultingType", invalid(defaulting_type, "when .defaultConstraints are not empty")
    for i, constraint in enumerate(constraints):
        path = f"defaultConstraints[{i}]"
        yield from _problems_of_default(constraint, path)
        key, action = constraint.topology_key, constraint.when_unsatisfiable
        if any((other.topology_key, other.when_unsatisfiable) == (key, action) for other in constraints[:i]):
            yield path, duplicate(f"{{{key}, {action}}}")


def _problems_of_default(constraint: TopologySpreadConstraint, path: str) -> Iterator[tuple[str, str]]:
    if constraint.max_skew <= 0:
        yield f"{path}.maxSkew", invalid(constraint.max_skew, "not in valid range (0, inf)")
    key, action = constraint.topology_key, constraint.when_unsatisfiable
    if not key:
        yield f"{path}.topologyKey", required("can not be empty")
    else:
        yield from ((f"{path}.topologyKey", invalid(key, problem)) for problem in label_key_problems(key))
    if not action:
        yield f"{path}.whenUnsatisfiable", required("can not be empty")
    elif action not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        yield f"{path}.whenUnsatisfiable", not_supported(action, (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY))
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield f"{path}.labelSelector", forbidden(detail)
