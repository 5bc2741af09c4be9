"""PodTopologySpread's obstacles: a node on which one more pod would be too many."""

from collections.abc import Iterator

from plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, SpreadConstraint
from plugins.pod_topology_spread.domains import HardSpread
from scheduler import framework as fw
from scheduler.api.labels import HOSTNAME


def spread_obstacles(pod: fw.Pod, spread: HardSpread, node: fw.NodeInfo) -> Iterator[fw.Obstacle]:
    """Yield each constraint that refuses the node."""
    for constraint, count, fewest in spread.refused_by(node.row):
        key = constraint.topology_key
        if count is None:
            fact = f"spread over {key}: the node has no such label"
        else:
            pods = "1 matching pod" if count == 1 else f"{count} matching pods"
            fact = (
                f"spread over {key}: {node.labels.get(key, '')} has {pods}, "
                f"the fewest anywhere are {fewest}, and maxSkew is {constraint.max_skew}"
            )
        yield fw.Obstacle(fact, tuple(_softened(pod, constraint)), is_of_domain=key != HOSTNAME)


def _softened(pod: fw.Pod, constraint: SpreadConstraint) -> Iterator[fw.Remedy]:
    """Make the pod's own constraint a preference. One that the configuration gives it is not the pod's to change."""
    for place, each in enumerate(pod.spec.topology_spread_constraints or ()):
        if each.topology_key == constraint.topology_key and each.when_unsatisfiable == DO_NOT_SCHEDULE:
            path = f"/spec/topologySpreadConstraints/{place}/whenUnsatisfiable"
            text = f"set whenUnsatisfiable: {SCHEDULE_ANYWAY} for spreading over {each.topology_key}"
            changes = [fw.Change("replace", path, SCHEDULE_ANYWAY)]
            if each.min_domains is not None:  # allowed only for constraints that must be satisfied
                changes.append(fw.Change("remove", f"/spec/topologySpreadConstraints/{place}/minDomains"))
            yield fw.Remedy(text, tuple(changes))
            return
