"""How large a change is: by kind, what it takes away, adds or deletes.

A single change has one kind. One is *smaller* than another of its kind if its amount is; which node, pod or label it is
about makes no difference. Changes of different kinds are not compared.

    tolerate              tolerations added
    node selector         entries of the nodeSelector dropped
    node affinity         requirements of the required node affinity dropped
    pod affinity          required terms dropped
    pod anti-affinity     required terms dropped
    spread                constraints that are no longer required
    spread policy         policies of constraints that are changed
    minDomains            by how much less
    request RESOURCE      how much less the pod asks for, in the units of scheduling
    host port             host ports dropped
    uncordon              nodes
    untaint               taints of nodes
    label                 labels of nodes
    delete                running pods of lower priority
    delete equal          running pods of the same priority
    wait                  pods that are leaving
    priority              1
    annotate              annotations of claims removed
    device toleration     ResourceClaims with further tolerations
    one more node         nodes
    one of a new domain   nodes
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from scheduler.api.pods.pod import Pod

Sizes = dict[str, int]
"""Kind → amount."""


def of_pod(before: Pod, after: Pod) -> Sizes:
    """Return what was changed of a pod."""
    found = {
        "tolerate": len(after.spec.tolerations or ()) - len(before.spec.tolerations or ()),
        "node selector": len(before.spec.node_selector or ()) - len(after.spec.node_selector or ()),
        "node affinity": _requirements(before) - _requirements(after),
        "pod affinity": _terms(before)[0] - _terms(after)[0],
        "pod anti-affinity": _terms(before)[1] - _terms(after)[1],
        "spread": _constraints(before) - _constraints(after),
        "spread policy": _policies(before, after),
        "minDomains": _min_domains(before, after),
        "host port": len(before.host_ports) - len(after.host_ports),
    }
    for resource in before.requests.keys() | after.requests.keys():
        found[f"request {resource}"] = before.requests.get(resource, 0) - after.requests.get(resource, 0)
    return {kind: amount for kind, amount in found.items() if amount}


def of_command(arguments: list[str]) -> Sizes:
    """Return what a command of kubectl changes."""
    match arguments:
        case ["kubectl", "uncordon", *nodes]:
            return {"uncordon": len(nodes)}
        case ["kubectl", "taint", "nodes", _, *taints]:
            return {"untaint": len(taints)}
        case ["kubectl", "label", "node", _, *labels]:
            return {"label": sum(not each.startswith("--") for each in labels)}
        case ["kubectl", "annotate", "pvc", "--namespace", _, _, *annotations]:
            return {"annotate": len(annotations)}
        case ["kubectl", "delete", "pod", "--namespace", _, *pods]:
            return {"delete": len(pods)}
        case _:
            raise ValueError(f"unknown command: {arguments}")


def added(*every: Sizes) -> Sizes:
    """Return the sizes of several changes together."""
    total = Counter[str]()
    for each in every:
        total.update(each)
    return dict(total)


def covers(suggested: Sizes, single: Sizes) -> bool:
    """Whether what was suggested is a change of the same kind as a single one, and no larger."""
    ((kind, amount),) = single.items()
    return suggested.keys() == {kind} and suggested[kind] <= amount


def _requirements(pod: Pod) -> int:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    terms: Any = affinity.required.node_selector_terms or () if affinity is not None and affinity.required else ()
    return sum(len(term.match_expressions or ()) + len(term.match_fields or ()) for term in terms)


def _terms(pod: Pod) -> tuple[int, int]:
    terms = pod.affinity_terms
    return len(terms.required_affinity), len(terms.required_anti_affinity)


def _constraints(pod: Pod) -> int:
    return sum(1 for _ in _hard(pod))


def _policies(before: Pod, after: Pod) -> int:
    pairs = _constraints_kept(before, after)
    taints = [a.node_taints_policy != b.node_taints_policy for a, b in pairs]
    return taints.count(True) + [a.node_affinity_policy != b.node_affinity_policy for a, b in pairs].count(True)


def _min_domains(before: Pod, after: Pod) -> int:
    less: int = 0
    for a, b in _constraints_kept(before, after):
        less += (a.min_domains or 1) - (b.min_domains or 1)
    return less


def _constraints_kept(before: Pod, after: Pod) -> list[tuple[Any, Any]]:
    """The hard constraints of both, if there are as many."""
    return list(zip(_hard(before), _hard(after), strict=True)) if _constraints(before) == _constraints(after) else []


def _hard(pod: Pod) -> Iterator[Any]:
    return (each for each in pod.spec.topology_spread_constraints or () if each.when_unsatisfiable == "DoNotSchedule")
