"""What the API server would have refused in a decoded pod or node, as far as scheduling reads it."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from scheduler.api.objects import Container, Node, NodeAffinity, ResourceList, ResourceRequirements
from scheduler.api.pod import Pod
from scheduler.api.quantity import parse_quantity
from scheduler.api.selectors import preferred_terms, problems_of, required_terms
from scheduler.framework.field_errors import invalid, not_supported, required

Problems = Iterator[tuple[str, str]]
"""Path of a field, message."""

MAX_SHOWN: Final = 100
"""Characters of a value that a message shows."""

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("Equal", "Exists", "Lt", "Gt")
_AFFINITY: Final = "spec.affinity.nodeAffinity"


def pod_problems(pod: Pod, *, is_new: bool = False) -> Problems:
    """Yield everything that is wrong with a pod. Of a new one `validation` says more, and of some fields all."""
    spec = pod.spec
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
        path = f"spec.tolerations[{index}]"
        if toleration.operator not in ("", *_OPERATORS):
            yield f"{path}.operator", not_supported(shown(toleration.operator), _OPERATORS[:2])
        yield from _choice_problem(f"{path}.effect", toleration.effect, _EFFECTS)
    if not is_new and spec.affinity is not None and spec.affinity.node_affinity is not None:
        yield from _affinity_problems(spec.affinity.node_affinity)
    yield from _status_problems(pod)


def node_problems(node: Node) -> Problems:
    """Yield everything that is wrong with a node."""
    if not node.name:
        yield "metadata.name", required()
    yield from _quantity_problems("status.allocatable", node.status.allocatable)
    for index, taint in enumerate(node.taints):
        if not taint.key:
            yield f"spec.taints[{index}].key", required()
        if not taint.effect:
            yield f"spec.taints[{index}].effect", required()
        yield from _choice_problem(f"spec.taints[{index}].effect", taint.effect, _EFFECTS)


def _container_problems(path: str, container: Container, *, is_new: bool) -> Problems:
    if container.resources is not None:
        yield from _amount_problems(f"{path}.resources", container.resources)
    for index, port in enumerate(() if is_new else container.ports or ()):
        if not 0 <= port.host_port <= 65535:
            yield f"{path}.ports[{index}].hostPort", invalid(port.host_port, "must be between 0 and 65535")


def _amount_problems(path: str, resources: ResourceRequirements) -> Problems:
    """A request that was taken from its limit is told as the request."""
    requests, limits = resources.requests or {}, resources.limits or {}
    yield from _quantity_problems(f"{path}.requests", requests)
    rest = {name: text for name, text in limits.items() if requests.get(name) != text}
    yield from _quantity_problems(f"{path}.limits", rest)


def _quantity_problems(path: str, resources: ResourceList | None) -> Problems:
    for name, text in (resources or {}).items():
        try:
            if parse_quantity(text) < 0:
                yield f"{path}[{shown(name)}]", invalid(shown(text), "must be greater than or equal to 0")
        except ValueError:
            yield f"{path}[{shown(name)}]", invalid(shown(text), "not a quantity such as 500m or 1.5Gi")


def invalids(path: str, value: str, details: Iterable[str]) -> Problems:
    """Yield a problem for each thing that is wrong with a value."""
    for detail in details:
        yield path, invalid(shown(value), detail)


def shown(value: Any) -> Any:
    """Return the value as a message shows it: long ones are cut."""
    return f"{value[:MAX_SHOWN]}…" if isinstance(value, str) and len(value) > MAX_SHOWN else value


def _choice_problem(path: str, value: str, choices: Iterable[str]) -> Problems:
    if value and value not in choices:
        yield path, not_supported(shown(value), choices)


def _affinity_problems(affinity: NodeAffinity) -> Problems:
    if affinity.required is not None:
        for problem in problems_of(required_terms(affinity.required)):
            yield f"{_AFFINITY}.requiredDuringSchedulingIgnoredDuringExecution.{problem.path}", problem.message
    for preferred in preferred_terms(affinity.preferred or ()):
        for problem in problems_of([preferred.term]):
            yield f"{_AFFINITY}.preferredDuringSchedulingIgnoredDuringExecution{problem.path}", problem.message


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
