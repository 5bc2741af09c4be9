"""What the API server refuses in a new pod, beyond what `checks` asks of all: its words, as far as scheduling reads it.

Rule: pkg/apis/core/validation/validation.go at v1.36.3. A container needs no image here, and a pod no container.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from scheduler.api.labels import label_key_problems, label_value_problems, subdomain_problems
from scheduler.api.objects import (
    Container,
    PodAffinityTerm,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from scheduler.api.pod import Pod
from scheduler.api.quantity import NANO, parse_quantity
from scheduler.framework.field_errors import duplicate, invalid, not_supported, required
from scheduler.simulate.checks import Problems, shown

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
EMPTY: Final = "can not be empty"


def new_pod_problems(pod: Pod) -> Problems:
    """Yield path and message of everything that the API server would not have."""
    spec = pod.spec
    yield from _invalid("metadata.name", pod.name, subdomain_problems(pod.name))
    yield from _labels("metadata.labels", pod.labels)
    for key, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        yield from _containers(f"spec.{key}", containers or ())
    yield from _labels("spec.nodeSelector", spec.node_selector or {})
    yield from _tolerations(spec.tolerations or ())
    yield from _spreads(spec.topology_spread_constraints or ())
    yield from _gates(pod)
    affinity = spec.affinity
    if affinity is None:
        return
    if affinity.node_affinity is not None:
        yield from _node_affinity(affinity.node_affinity)
    for name, towards in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if towards is not None:
            path = f"spec.affinity.{name}"
            yield from _terms(f"{path}.{_REQUIRED}", towards.required or ())
            yield from _weighted(f"{path}.{_PREFERRED}", towards.preferred or ())


def _invalid(path: str, value: Any, details: Iterable[str]) -> Problems:
    for detail in details:
        yield path, invalid(shown(value), detail)


def _labels(path: str, labels: Mapping[str, str]) -> Problems:
    for key, value in labels.items():
        yield from _invalid(path, key, label_key_problems(key))
        yield from _invalid(path, value, label_value_problems(value))


def _containers(path: str, containers: Sequence[Container]) -> Problems:
    for index, container in enumerate(containers):
        if container.resources is not None:
            yield from _resources(f"{path}[{index}].resources", container.resources)


def _resources(path: str, resources: ResourceRequirements) -> Problems:
    limits = {name: (parse_quantity(text), text) for name, text in (resources.limits or {}).items()}
    for name, (amount, text) in limits.items():
        yield from _whole(f"{path}.limits[{name}]", name, amount, text)
    for name, text in (resources.requests or {}).items():
        amount = parse_quantity(text)
        yield from _whole(f"{path}.requests[{name}]", name, amount, text)
        limit = limits.get(name)
        may_differ = ("/" not in name or "kubernetes.io/" in name) and not name.startswith("hugepages-")
        if limit is None:
            if not may_differ:
                yield f"{path}.limits", required("Limit must be set for non overcommitable resources")
        elif amount != limit[0] and not may_differ:
            yield f"{path}.requests", invalid(f"{text}", f"must be equal to {name} limit of {limit[1]}")
        elif amount > limit[0]:
            yield f"{path}.requests", invalid(f"{text}", f"must be less than or equal to {name} limit of {limit[1]}")


def _whole(path: str, name: str, amount: int, text: Any) -> Problems:
    if "/" in name and "kubernetes.io/" not in name and amount % NANO:
        yield path, invalid(f"{text}", "must be an integer")


def _tolerations(tolerations: Sequence[Toleration]) -> Problems:
    for index, each in enumerate(tolerations):
        path = f"spec.tolerations[{index}]"
        if each.key:
            yield from _invalid(f"{path}.key", each.key, label_key_problems(each.key))
        elif each.operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield f"{path}.operator", invalid(each.operator, detail)
        if each.toleration_seconds is not None and each.effect != "NoExecute":
            yield f"{path}.effect", invalid(each.effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
        if each.operator in ("", "Equal"):
            problems = label_value_problems(each.value)
            yield from _invalid(f"{path}.operator", each.value, [";".join(problems)] if problems else [])
        elif each.operator == "Exists" and each.value:
            yield f"{path}.operator", invalid(each.value, "value must be empty when `operator` is 'Exists'")
        elif each.operator in ("Lt", "Gt"):
            yield f"{path}.operator", not_supported(each.operator, ("Equal", "Exists", "Lt", "Gt"))


def _spreads(constraints: Sequence[TopologySpreadConstraint]) -> Problems:
    for index, each in enumerate(constraints):
        path = f"spec.topologySpreadConstraints[{index}]"
        if each.max_skew <= 0:
            yield f"{path}.maxSkew", invalid(each.max_skew, "must be greater than zero")
        if not each.topology_key:
            yield f"{path}.topologyKey", required(EMPTY)
        if each.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
            yield (
                f"{path}.whenUnsatisfiable",
                not_supported(shown(each.when_unsatisfiable), ("DoNotSchedule", "ScheduleAnyway")),
            )
        kind = each.topology_key, each.when_unsatisfiable
        if any((other.topology_key, other.when_unsatisfiable) == kind for other in constraints[index + 1 :]):
            yield f"{path}.{{topologyKey, whenUnsatisfiable}}", duplicate(f"{{{kind[0]}, {kind[1]}}}")
        yield from _domains(path, each)


def _domains(path: str, each: TopologySpreadConstraint) -> Problems:
    if each.min_domains is not None:
        if each.min_domains <= 0:
            yield f"{path}.minDomains", invalid(each.min_domains, "must be greater than zero")
        if each.when_unsatisfiable != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {each.when_unsatisfiable}"
            yield f"{path}.minDomains", invalid(each.min_domains, detail)
    for name, policy in (
        ("nodeAffinityPolicy", each.node_affinity_policy),
        ("nodeTaintsPolicy", each.node_taints_policy),
    ):
        if policy is not None and policy not in ("Honor", "Ignore"):
            yield f"{path}.{name}", not_supported(shown(policy), ("Honor", "Ignore"))


def _gates(pod: Pod) -> Problems:
    gates = [gate.name for gate in pod.spec.scheduling_gates or ()]
    for index, name in enumerate(gates):
        path = f"spec.schedulingGates[{index}]"
        yield from _invalid(path, name, label_key_problems(name))
        if name in gates[:index]:
            yield path, duplicate(name)
    if gates and pod.node_name:
        yield "spec.nodeName", "Forbidden: cannot be set until all schedulingGates have been cleared"


def _node_affinity(affinity: Any) -> Problems:
    path = "spec.affinity.nodeAffinity"
    if affinity.required is not None and not affinity.required.node_selector_terms:
        yield f"{path}.{_REQUIRED}.nodeSelectorTerms", required("must have at least one node selector term")
    yield from _weights(f"{path}.{_PREFERRED}", affinity.preferred or ())


def _weights(path: str, weighted: Sequence[Any]) -> Problems:
    for index, each in enumerate(weighted):
        if not 1 <= each.weight <= 100:
            yield f"{path}[{index}].weight", invalid(each.weight, "must be in the range 1-100")


def _weighted(path: str, weighted: Sequence[WeightedPodAffinityTerm]) -> Problems:
    yield from _weights(path, weighted)
    for index, each in enumerate(weighted):
        yield from _term(f"{path}[{index}].podAffinityTerm", each.pod_affinity_term)


def _terms(path: str, terms: Sequence[PodAffinityTerm]) -> Problems:
    for index, term in enumerate(terms):
        yield from _term(f"{path}[{index}]", term)


def _term(path: str, term: PodAffinityTerm) -> Problems:
    if not term.topology_key:
        yield f"{path}.topologyKey", required(EMPTY)
    yield from _invalid(f"{path}.topologyKey", term.topology_key, label_key_problems(term.topology_key))
