"""Says which nodes a pod could be bound to: an opinion of its own, which shares no code with the scheduler.

It knows what `load.py` makes, and reads it from the API's objects as they are: cordoned nodes, taints, node selectors,
CPU, memory and the number of pods, required pod affinity and anti-affinity, spreading constraints, a team's budget.
Slow and plain: every question walks all nodes and pods.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

from tests.controlplane.client import Object

UNITS: Final = {"m": 1, "k": 1_000_000, "Ki": 1000 << 10, "Mi": 1000 << 20, "Gi": 1000 << 30}
RESOURCES: Final = ("cpu", "memory", "pods")


class Judge:
    """The cluster at one moment."""

    def __init__(self, nodes: Sequence[Object], pods: Sequence[Object], budgets: Sequence[Object] = ()) -> None:
        """`pods`: all that may count, bound and waiting."""
        self.nodes = {node["metadata"]["name"]: node for node in nodes}
        self.on: dict[str, list[Object]] = {name: [] for name in self.nodes}
        self._pools = {budget["metadata"]["name"]: budget["spec"]["pool"] for budget in budgets}
        for pod in pods:
            if (node := node_of(pod)) in self.on:
                self.on[node].append(pod)

    def feasible(self, pod: Object) -> Iterator[str]:
        """The nodes that the pod could be bound to, or to which it could come by preemption."""
        return (name for name in self.nodes if self._fits(pod, name) or self._fits_after_preemption(pod, name))

    def used(self, node: str) -> dict[str, int]:
        """What the pods on a node request, in thousandths."""
        return total(self.on[node])

    def _fits_after_preemption(self, pod: Object, node: str) -> bool:
        kept = [other for other in self.on[node] if priority(other) >= priority(pod)]
        if len(kept) == len(self.on[node]):
            return False
        before, self.on[node] = self.on[node], kept
        try:
            return self._fits(pod, node)
        finally:
            self.on[node] = before

    def _fits(self, pod: Object, name: str) -> bool:
        node = self.nodes[name]
        return (
            self._admits(pod, node)
            and self._has_room(pod, name)
            and self._in_budget(pod, node)
            and self._apart(pod, node)
            and self._together(pod, node)
            and self._even(pod, node)
        )

    def _admits(self, pod: Object, node: Object) -> bool:
        tolerations = pod["spec"].get("tolerations") or []
        taints = [taint for taint in node["spec"].get("taints") or [] if taint["effect"] != "PreferNoSchedule"]
        if node["spec"].get("unschedulable"):
            taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
        return selects(pod, node) and all(any(tolerates(t, taint) for t in tolerations) for taint in taints)

    def _has_room(self, pod: Object, name: str) -> bool:
        allocatable = allocatable_of(self.nodes[name])
        needed = total([*self.on[name], pod])
        return all(needed[resource] <= allocatable[resource] for resource in RESOURCES)

    def _in_budget(self, pod: Object, node: Object) -> bool:
        team = labels(pod).get("team")
        return team is None or self._pools.get(team) == labels(node).get("pool", "-")

    def _apart(self, pod: Object, node: Object) -> bool:
        """Anti-affinity: the pod's own, and that of others against it."""

        def is_against(one: Object, other: Object) -> Callable[[Any], bool]:
            return lambda term: matches(term["labelSelector"], other) and namespace(one) == namespace(other)

        for name, others in self.on.items():
            for other in others:
                against = [*filter(is_against(pod, other), terms(pod, "podAntiAffinity"))]
                against += filter(is_against(other, pod), terms(other, "podAntiAffinity"))
                if any(same_domain(node, self.nodes[name], term["topologyKey"]) for term in against):
                    return False
        return True

    def _together(self, pod: Object, node: Object) -> bool:
        for term in terms(pod, "podAffinity"):
            found = [
                self.nodes[name]
                for name, others in self.on.items()
                for other in others
                if namespace(other) == namespace(pod) and matches(term["labelSelector"], other)
            ]
            if any(same_domain(node, other, term["topologyKey"]) for other in found):
                continue
            is_first = not any(term["topologyKey"] in labels(other) for other in found)
            if not (is_first and matches(term["labelSelector"], pod) and term["topologyKey"] in labels(node)):
                return False
        return True

    def _even(self, pod: Object, node: Object) -> bool:
        for constraint in pod["spec"].get("topologySpreadConstraints") or []:
            key, selector = constraint["topologyKey"], constraint["labelSelector"]
            if key not in labels(node):
                return False
            counts: dict[str, int] = {}
            for name, other in self.nodes.items():
                if key in labels(other) and selects(pod, other):
                    counts.setdefault(labels(other)[key], 0)
                    counts[labels(other)[key]] += sum(
                        matches(selector, each) and namespace(each) == namespace(pod) and not is_going(each)
                        for each in self.on[name]
                    )
            itself = int(matches(selector, pod))
            if counts.get(labels(node)[key], 0) + itself - min(counts.values()) > constraint["maxSkew"]:
                return False
        return True


def quantity(text: str) -> int:
    """An amount in thousandths. Raises ValueError for one that is never made here."""
    for suffix, factor in UNITS.items():
        if text.endswith(suffix):
            return int(text.removesuffix(suffix)) * factor
    return int(text) * 1000


def allocatable_of(node: Object) -> dict[str, int]:
    amounts = node["status"]["allocatable"]
    return {resource: quantity(amounts[resource]) for resource in RESOURCES}


def total(pods: Collection[Object]) -> dict[str, int]:
    """What pods request together, in thousandths."""
    found = {"cpu": 0, "memory": 0, "pods": 1000 * len(pods)}
    for pod in pods:
        for container in pod["spec"]["containers"]:
            requests = container.get("resources", {}).get("requests", {})
            for resource in ("cpu", "memory"):
                found[resource] += quantity(requests.get(resource, "0"))
    return found


def labels(obj: Object) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


def namespace(obj: Object) -> str:
    found: str = obj["metadata"].get("namespace", "")
    return found


def node_of(pod: Object) -> str:
    found: str = pod["spec"].get("nodeName", "")
    return found


def priority(pod: Object) -> int:
    found: int = pod["spec"].get("priority", 0)
    return found


def is_going(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_gated(pod: Object) -> bool:
    return bool(pod["spec"].get("schedulingGates"))


def terms(pod: Object, kind: str) -> list[Any]:
    """The required terms of `podAffinity` or `podAntiAffinity`."""
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return list(affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ())


def matches(selector: Any, obj: Object) -> bool:
    return bool(selector["matchLabels"].items() <= labels(obj).items())


def selects(pod: Object, node: Object) -> bool:
    """Whether the pod's node selector takes the node."""
    return bool((pod["spec"].get("nodeSelector") or {}).items() <= labels(node).items())


def same_domain(one: Object, other: Object, key: str) -> bool:
    return key in labels(one) and labels(one)[key] == labels(other).get(key)


def tolerates(toleration: Any, taint: Any) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    return toleration.get("operator") == "Exists" or bool(toleration.get("value", "") == taint.get("value", ""))
