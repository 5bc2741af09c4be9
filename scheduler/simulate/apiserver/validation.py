"""Validation of the fields of pods and nodes that decide where pods go.

Rules: ValidatePodSpec and ValidateNode in pkg/apis/core/validation/validation.go at v1.36.3. The many others, such as
the form of names or mounts of missing volumes, are left to `kubectl apply --dry-run=server`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from scheduler.api.label_selectors import parse_label_selector
from scheduler.api.objects import (
    Affinity,
    Container,
    LabelSelector,
    Node,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    ResourceList,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)
from scheduler.api.pods.pod import Pod
from scheduler.api.quantities.quantity import NANO, parse_quantity
from scheduler.api.selectors import (
    NODE_NAME_FIELD,
    FieldProblem,
    SelectorTerm,
    preferred_terms,
    problems_of,
    required_terms,
)
from scheduler.framework.field_errors import duplicate, forbidden, invalid, not_supported, required

Problems = Iterator[tuple[str, str]]
"""Path of a field, message."""

MAX_LENGTH: Final = 100
"""Characters of a value in a message."""

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("Equal", "Exists", "Lt", "Gt")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def pod_problems(pod: Pod) -> Problems:
    """Yield everything that is wrong with a pod. What an API server has accepted only has to be readable."""
    spec, is_new = pod.spec, not pod.metadata.resource_version
    if not pod.name:
        yield "metadata.name", required()
    if not -(2**31) <= pod.priority < 2**31:
        yield "spec.priority", invalid(pod.priority, "does not fit into 32 bits")
    for key, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            yield from _container_problems(f"spec.{key}[{index}]", container, is_new=is_new)
    yield from _quantity_problems("spec.overhead", spec.overhead)
    if spec.resources is not None:
        yield from _amount_problems("spec.resources", spec.resources)
    for index, toleration in enumerate(spec.tolerations or ()):
        yield from _toleration_problems(f"spec.tolerations[{index}]", toleration)
    if spec.affinity is not None and spec.affinity.node_affinity is not None:
        yield from _node_affinity_problems(spec.affinity.node_affinity)
    if is_new:
        yield from _affinity_problems(spec.affinity or Affinity())
        yield from _spread_problems(spec.topology_spread_constraints or ())
    yield from _status_problems(pod)


def node_problems(node: Node) -> Problems:
    if not node.name:
        yield "metadata.name", required()
    yield from _quantity_problems("status.allocatable", node.status.allocatable)
    for index, taint in enumerate(node.taints):
        if not taint.key:
            yield f"spec.taints[{index}].key", required()
        if not taint.effect:
            yield f"spec.taints[{index}].effect", required()
        elif taint.effect not in _EFFECTS:
            yield f"spec.taints[{index}].effect", not_supported(short(taint.effect), _EFFECTS)


def short(value: Any) -> Any:
    """Return the value as it stands in a message: long ones are cut."""
    return f"{value[:MAX_LENGTH]}…" if isinstance(value, str) and len(value) > MAX_LENGTH else value


def _container_problems(path: str, container: Container, *, is_new: bool) -> Problems:
    if container.resources is not None:
        unreadable = list(_amount_problems(f"{path}.resources", container.resources))
        yield from unreadable
        if is_new and not unreadable:
            yield from resource_problems(f"{path}.resources", container.resources)
    for index, port in enumerate(container.ports or ()):
        if not 0 <= port.host_port <= 65535:
            yield f"{path}.ports[{index}].hostPort", invalid(port.host_port, "must be between 0 and 65535")
        if port.protocol not in _PROTOCOLS:
            yield f"{path}.ports[{index}].protocol", not_supported(short(port.protocol), _PROTOCOLS)


def _amount_problems(path: str, resources: ResourceRequirements) -> Problems:
    """A request that was taken from its limit is reported as the request."""
    requests, limits = resources.requests or {}, resources.limits or {}
    yield from _quantity_problems(f"{path}.requests", requests)
    rest = {name: text for name, text in limits.items() if requests.get(name) != text}
    yield from _quantity_problems(f"{path}.limits", rest)


def _quantity_problems(path: str, resources: ResourceList | None) -> Problems:
    for name, text in (resources or {}).items():
        try:
            if parse_quantity(text) < 0:
                yield f"{path}[{short(name)}]", invalid(short(text), "must be greater than or equal to 0")
        except ValueError:
            yield f"{path}[{short(name)}]", invalid(short(text), "not a quantity such as 500m or 1.5Gi")


def _toleration_problems(path: str, toleration: Toleration) -> Problems:
    if toleration.operator not in ("", *_OPERATORS):
        yield f"{path}.operator", not_supported(short(toleration.operator), _OPERATORS[:2])
    elif not toleration.key and toleration.operator != "Exists":
        yield f"{path}.operator", invalid(toleration.operator, "must be Exists when `key` is empty")
    if toleration.effect not in ("", *_EFFECTS):
        yield f"{path}.effect", not_supported(short(toleration.effect), _EFFECTS)


def _node_affinity_problems(affinity: NodeAffinity) -> Problems:
    path = "spec.affinity.nodeAffinity"
    if affinity.required is not None:
        at, terms = f"{path}.{_REQUIRED}", affinity.required.node_selector_terms or ()
        if not terms:
            yield f"{at}.nodeSelectorTerms", required("must have at least one node selector term")
        for problem in _parsing_problems(required_terms(affinity.required)):
            yield f"{at}.{problem.path}", problem.message
        for i, term in enumerate(terms):
            for j, field in enumerate(term.match_fields or ()):
                if field.key != NODE_NAME_FIELD:
                    detail = "not a valid field selector key"
                    yield f"{at}.nodeSelectorTerms[{i}].matchFields[{j}].key", invalid(short(field.key), detail)
    yield from _weight_problems(f"{path}.{_PREFERRED}", [each.weight for each in affinity.preferred or ()])
    for problem in _parsing_problems(each.term for each in preferred_terms(affinity.preferred or ())):
        index, _, rest = problem.path.partition(".")
        yield f"{path}.{_PREFERRED}{index}.preference.{rest}", problem.message


def _parsing_problems(terms: Iterable[SelectorTerm]) -> list[FieldProblem]:
    """An API server may store a value that no label can have: then the plugin refuses the pod."""
    return [problem for problem in problems_of(terms) if ".values[" not in problem.path]


def _weight_problems(path: str, weights: Iterable[int]) -> Problems:
    for index, weight in enumerate(weights):
        if not 1 <= weight <= 100:
            yield f"{path}[{index}].weight", invalid(weight, "must be in the range 1-100")


def _affinity_problems(affinity: Affinity) -> Problems:
    for name, of_pods in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        path, of_pods = f"spec.affinity.{name}", of_pods or PodAffinity()
        for index, term in enumerate(of_pods.required or ()):
            yield from _term_problems(f"{path}.{_REQUIRED}[{index}]", term)
        weighted = of_pods.preferred or ()
        yield from _weight_problems(f"{path}.{_PREFERRED}", [each.weight for each in weighted])
        for index, each in enumerate(weighted):
            yield from _term_problems(f"{path}.{_PREFERRED}[{index}].podAffinityTerm", each.pod_affinity_term)


def _term_problems(path: str, term: PodAffinityTerm) -> Problems:
    yield from _selector_problems(f"{path}.labelSelector", term.label_selector)
    yield from _selector_problems(f"{path}.namespaceSelector", term.namespace_selector)
    if not term.topology_key:
        yield f"{path}.topologyKey", required()


def _selector_problems(path: str, selector: LabelSelector | None) -> Problems:
    try:
        parse_label_selector(selector)
    except ValueError as error:
        yield path, str(error)


def _spread_problems(constraints: Sequence[TopologySpreadConstraint]) -> Problems:
    seen = set()
    for index, each in enumerate(constraints):
        path = f"spec.topologySpreadConstraints[{index}]"
        for name, number in (("maxSkew", each.max_skew), ("minDomains", each.min_domains)):
            if number is not None and number <= 0:
                yield f"{path}.{name}", invalid(number, "must be greater than zero")
        if not each.topology_key:
            yield f"{path}.topologyKey", required()
        if (each.topology_key, each.when_unsatisfiable) in seen:
            yield path, duplicate(short(f"{{{each.topology_key}, {each.when_unsatisfiable}}}"))
        seen.add((each.topology_key, each.when_unsatisfiable))
        for name, value, values in (
            ("whenUnsatisfiable", each.when_unsatisfiable, ("DoNotSchedule", "ScheduleAnyway")),
            ("nodeAffinityPolicy", each.node_affinity_policy, ("Honor", "Ignore")),
            ("nodeTaintsPolicy", each.node_taints_policy, ("Honor", "Ignore")),
        ):
            if value is not None and value not in values:
                yield f"{path}.{name}", not_supported(short(value), values)
        yield from _selector_problems(f"{path}.labelSelector", each.label_selector)


def _status_problems(pod: Pod) -> Problems:
    """Check the amounts in the status too: those of a resize in progress count."""
    status = pod.status
    for key, reported in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        for index, container in enumerate(reported or ()):
            path = f"status.{key}[{index}]"
            yield from _quantity_problems(f"{path}.allocatedResources", container.allocated_resources)
            if container.resources is not None:
                yield from _quantity_problems(f"{path}.resources.requests", container.resources.requests)
    yield from _quantity_problems("status.allocatedResources", status.allocated_resources)
    if status.resources is not None:
        yield from _quantity_problems("status.resources.requests", status.resources.requests)


HUGE_PAGES: Final = "hugepages-"
_COMPUTE: Final = frozenset(("cpu", "memory"))
_STANDARD: Final = _COMPUTE | {"ephemeral-storage"}
_NATIVE: Final = "kubernetes.io/"


def resource_problems(path: str, resources: ResourceRequirements) -> Iterator[tuple[str, str]]:
    """Yield path and message for names and amounts that can be read but not be stored."""
    requests, limits = resources.requests or {}, resources.limits or {}
    own = {name: text for name, text in requests.items() if limits.get(name) != text}
    for key, amounts in (("limits", limits), ("requests", own)):
        for name, text in amounts.items():
            yield from ((f"{path}.{key}[{name}]", problem) for problem in _problems_of(name, text))
    for name, text in requests.items():
        if name not in limits:
            if not _may_exceed(name):
                yield f"{path}.limits", required(f"a limit must be set for {name}, which cannot be overcommitted")
            continue
        request, limit = parse_quantity(text), parse_quantity(limits[name])
        if request != limit and not _may_exceed(name):
            yield f"{path}.requests", invalid(text, f"must be equal to {name} limit of {limits[name]}")
        elif request > limit:
            yield f"{path}.requests", invalid(text, f"must be less than or equal to {name} limit of {limits[name]}")
    names = {*requests, *limits}
    if any(map(_is_huge, names)) and not names & _COMPUTE:
        yield path, forbidden("HugePages require cpu or memory")


def _problems_of(name: str, text: str | int | float) -> Iterator[str]:
    if "/" not in name:
        if name not in _STANDARD and not _is_huge(name):
            yield invalid(name, "must be a standard resource for containers, or fully qualified: example.com/gpu")
        elif _is_huge(name) and not _is_multiple(text, name.removeprefix(HUGE_PAGES)):
            yield invalid(text, f"must be a multiple of {name.removeprefix(HUGE_PAGES)}")
    elif _NATIVE not in name and parse_quantity(text) % NANO:
        yield invalid(text, "must be an integer")


def _may_exceed(name: str) -> bool:
    """Return whether the limits of all pods together may exceed what a node has."""
    return not _is_huge(name) and ("/" not in name or _NATIVE in name)


def _is_huge(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def _is_multiple(text: str | int | float, size: str) -> bool:
    try:
        page = parse_quantity(size)
    except ValueError:
        return False
    return page > 0 and parse_quantity(text) % page == 0
