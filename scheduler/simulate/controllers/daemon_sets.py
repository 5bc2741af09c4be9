"""The pods that the DaemonSet controller makes: one for each node on which they may run.

Rules: pkg/controller/daemon/daemon_controller.go (NodeShouldRunDaemonPod) and util/daemonset_util.go at v1.36.3.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.groups.owners import node_of
from scheduler.api.objects import Node, PodSpec, Toleration
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.tolerations import first_untolerated
from scheduler.api.selectors import pod_selects
from scheduler.simulate.controllers.generated_names import hash_of, random_names
from scheduler.simulate.controllers.workloads import Allowance, NewPod, Owned, Workload, part
from scheduler.simulate.files.objects import report
from scheduler.simulate.other_objects import OtherObject

LABEL: Final = "DaemonSet (apps/v1)"

_ALWAYS: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""Taints of nodes in trouble, which daemons bear."""

_ON_HOST: Final = (("network-unavailable", "NoSchedule"),)


def daemon_pods(
    others: Iterable[OtherObject], nodes: Sequence[Node], owned: Owned, allowance: Allowance, problems: list[str]
) -> Iterator[NewPod]:
    """Yield the pods that are missing on nodes, and add the errors of a DaemonSet to `problems`."""
    for obj in others:
        if obj.label != LABEL:
            continue
        try:
            workload = Workload("DaemonSet", "apps/v1", obj)
            made = [] if workload.is_deleting else _pods_of(workload, nodes, owned)
            allowance.take(workload, len(made))
            yield from made
        except Unreadable as error:
            report(problems, obj.place, f"{error}")


def _pods_of(workload: Workload, nodes: Sequence[Node], owned: Owned) -> list[NewPod]:
    spec = part(workload.template, "spec")
    tolerations = _with_own(spec)
    whole = convert({"spec": {**spec, "tolerations": tolerations}}, Pod)
    there = {node_of(pod) for pod in owned.pods_of(workload)}
    labels = {"pod-template-generation": "1", "controller-revision-hash": hash_of(workload.template)}
    names = random_names(f"{workload.name}-", workload.kind)
    made: list[NewPod] = []
    for node in nodes:
        if node.name not in there and _should_run(whole, whole.spec, node):
            affinity = _only_on(spec, node.name)
            made.append(workload.pod(next(names), labels, affinity=affinity, tolerations=tolerations))
    return made


def _should_run(pod: Pod, spec: PodSpec, node: Node) -> bool:
    if spec.node_name not in ("", node.name):
        return False
    try:
        is_selected = pod_selects(pod, node.labels, node.name)
    except ValueError as error:
        raise Unreadable(f"spec.template.spec.affinity.nodeAffinity: {error}") from error
    return is_selected and first_untolerated(node.taints, spec.tolerations, by_number=True) is None


def _with_own(spec: Mapping[str, Any]) -> list[Any]:
    """The tolerations of the template, and those of all daemons; one of the same key and effect is replaced."""
    tolerations = spec.get("tolerations") or []
    if not isinstance(tolerations, list):
        raise Unreadable("spec.template.spec.tolerations: expected a list")
    own = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": effect}
        for what, effect in (*_ALWAYS, *(_ON_HOST if spec.get("hostNetwork") is True else ()))
    ]
    done = list(tolerations)
    for toleration in own:
        places = [index for index, each in enumerate(done) if _is_alike(each, toleration)]
        if places:
            done[places[0]] = toleration
        else:
            done.append(toleration)
    return done


def _is_alike(one: Any, other: Mapping[str, Any]) -> bool:
    """core/v1 Toleration.MatchToleration: all but the seconds."""
    decoded = convert(one, Toleration)
    return (decoded.key, decoded.operator, decoded.effect, decoded.value) == (
        other["key"],
        other["operator"],
        other["effect"],
        "",
    )


def _only_on(spec: Mapping[str, Any], node: str) -> dict[str, Any]:
    """The affinity of the template, its required terms replaced by the node."""
    affinity = part(spec, "affinity")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {**affinity, "nodeAffinity": {**part(affinity, "nodeAffinity"), **required}}
