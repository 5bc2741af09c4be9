"""What the API server refuses in a new pod, beyond what `checks` asks of all: its words, as far as scheduling reads it.

Rule: pkg/apis/core/validation/validation.go at v1.36.3. A container needs no image here, and a pod no container.
"""

from collections.abc import Sequence
from typing import Final

from scheduler.api.labels import label_key_problems, label_problems, label_value_problems, subdomain_problems
from scheduler.api.objects import (
    Affinity,
    NodeAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from scheduler.api.pod import Pod
from scheduler.framework.field_errors import duplicate, invalid, not_supported, required
from scheduler.simulate.apiserver import container_validation
from scheduler.simulate.apiserver.checks import Problems, invalids, shown
from scheduler.simulate.apiserver.selector_validation import (
    label_keys,
    label_selector,
    labels,
    node_selector,
    node_selector_term,
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
EMPTY: Final = "can not be empty"


def new_pod_problems(pod: Pod) -> Problems:
    """Yield path and message of everything that the API server would not have, in its order."""
    spec = pod.spec
    yield from invalids("metadata.name", pod.name, subdomain_problems(pod.name))
    yield from labels("metadata.labels", pod.labels)
    yield from container_validation.volumes(pod)
    yield from container_validation.resource_claims(spec.resource_claims or ())
    yield from container_validation.containers(pod)
    yield from labels("spec.nodeSelector", spec.node_selector or {})
    if spec.affinity is not None:
        yield from _affinity(spec.affinity)
    yield from _gates(pod)
    yield from _spreads(spec.topology_spread_constraints or ())
    yield from _tolerations(spec.tolerations or ())


def _affinity(affinity: Affinity) -> Problems:
    if affinity.node_affinity is not None:
        yield from _node_affinity(affinity.node_affinity)
    for name, towards in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if towards is not None:
            path = f"spec.affinity.{name}"
            yield from _terms(f"{path}.{_REQUIRED}", towards.required or ())
            yield from _weighted(f"{path}.{_PREFERRED}", towards.preferred or ())


def _tolerations(tolerations: Sequence[Toleration]) -> Problems:
    for index, each in enumerate(tolerations):
        path = f"spec.tolerations[{index}]"
        if each.key:
            yield from invalids(f"{path}.key", each.key, label_key_problems(each.key))
        elif each.operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield f"{path}.operator", invalid(each.operator, detail)
        if each.toleration_seconds is not None and each.effect != "NoExecute":
            yield f"{path}.effect", invalid(each.effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
        if each.operator in ("", "Equal"):
            problems = label_value_problems(each.value)
            yield from invalids(f"{path}.operator", each.value, [";".join(problems)] if problems else [])
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
        yield from label_keys(path, each.match_label_keys, None, each.label_selector)
        yield from label_selector(f"{path}.labelSelector", each.label_selector)


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
        yield from invalids(path, name, label_key_problems(name))
        if name in gates[:index]:
            yield path, duplicate(name)
    if gates and pod.node_name:
        yield "spec.nodeName", "Forbidden: cannot be set until all schedulingGates have been cleared"


def _node_affinity(affinity: NodeAffinity) -> Problems:
    path = "spec.affinity.nodeAffinity"
    if affinity.required is not None:
        yield from node_selector(f"{path}.{_REQUIRED}", affinity.required)
    for index, each in enumerate(affinity.preferred or ()):
        at = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(at, each.weight)
        yield from node_selector_term(f"{at}.preference", each.preference, are_values_checked=False)


def _weight(path: str, weight: int) -> Problems:
    if not 1 <= weight <= 100:
        yield f"{path}.weight", invalid(weight, "must be in the range 1-100")


def _weighted(path: str, weighted: Sequence[WeightedPodAffinityTerm]) -> Problems:
    for index, each in enumerate(weighted):
        yield from _weight(f"{path}[{index}]", each.weight)
        yield from _term(f"{path}[{index}].podAffinityTerm", each.pod_affinity_term)


def _terms(path: str, terms: Sequence[PodAffinityTerm]) -> Problems:
    for index, term in enumerate(terms):
        yield from _term(f"{path}[{index}]", term)


def _term(path: str, term: PodAffinityTerm) -> Problems:
    yield from label_selector(f"{path}.labelSelector", term.label_selector)
    yield from label_selector(f"{path}.namespaceSelector", term.namespace_selector)
    for name in term.namespaces or ():
        yield from invalids(f"{path}.namespace", name, label_problems(name))
    yield from label_keys(path, term.match_label_keys, term.mismatch_label_keys, term.label_selector)
    if not term.topology_key:
        yield f"{path}.topologyKey", required(EMPTY)
    yield from invalids(f"{path}.topologyKey", term.topology_key, label_key_problems(term.topology_key))
