"""Admission of a new pod: its priority, tolerations, RuntimeClass and LimitRanges.

Rules: plugin/pkg/admission/{limitranger,priority,defaulttolerationseconds,runtimeclass} at v1.36.3, in the order of
pkg/kubeapiserver/options/plugins.go. What it refuses is refused here in its words.

Pods that an API server has stored went through it: they have a resource version, and are left as they are.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.objects import ResourceList, Toleration, Wire
from scheduler.api.pods.pod import Pod
from scheduler.api.quantities.quantity import parse_quantity
from scheduler.simulate.apiserver.limit_ranges import LimitRange
from scheduler.simulate.files.objects import reworded, without_null
from scheduler.simulate.other_objects import OtherObject

_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_NO_OVERHEAD: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


GROUPS: Final = (
    "PodGroup (scheduling.k8s.io/v1alpha2)",
    "PodGroup (scheduling.k8s.io/v1beta1)",
    "CompositePodGroup (scheduling.k8s.io/v1alpha3)",
)
"""Kinds that have the priority of a class, as pods do."""


class Forbidden(ValueError):
    """The API server would not have it."""


class _Overhead(Wire, frozen=True):
    pod_fixed: ResourceList | None = None


class _Scheduling(Wire, frozen=True):
    node_selector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] | None = None


class RuntimeClass(Wire, frozen=True):
    """A node.k8s.io/v1 RuntimeClass, reduced to what admission reads."""

    overhead: _Overhead | None = None
    scheduling: _Scheduling | None = None


class _Priority(NamedTuple):
    value: int
    policy: str | None


SYSTEM_CLASSES: Final = {
    "system-cluster-critical": _Priority(2_000_000_000, "PreemptLowerPriority"),
    "system-node-critical": _Priority(2_000_001_000, "PreemptLowerPriority"),
}
"""The API server makes them itself: pkg/apis/scheduling/v1/helpers.go."""


class Admission:
    """Admits new pods by the objects of the files."""

    def __init__(self, others: Iterable[OtherObject], problems: list[str]) -> None:
        """Add the problems of these objects to `problems`."""
        self.missing: dict[tuple[str, str], list[str]] = {}
        """Kind and name of objects that the files lack → the pods that name them."""
        self._classes: dict[str, _Priority] = {}
        self._default: str | None = None
        self._runtime_classes: dict[str, RuntimeClass] = {}
        self._limits: dict[str, list[LimitRange]] = {}
        for obj in others:
            try:
                self._take(obj)
            except (Unreadable, RecursionError) as error:
                problems.append(f"{obj.place}: {reworded(error)}")

    def _take(self, obj: OtherObject) -> None:
        content = obj.content
        match obj.label:
            case "PriorityClass (scheduling.k8s.io/v1)":
                value = content.get("value", 0)
                if not isinstance(value, int) or not -(2**31) <= value < 2**31:
                    raise Unreadable(f"value: Invalid value: {value!r}: expected an integer of 32 bits")
                name = _name_of(content)
                self._classes[name] = _Priority(value, content.get("preemptionPolicy") or "PreemptLowerPriority")
                lowest = self._default is None or value < self._classes[self._default].value
                if content.get("globalDefault") is True and lowest:
                    self._default = name
            case "RuntimeClass (node.k8s.io/v1)":
                self._runtime_classes[_name_of(content)] = _runtime_class(content)
            case "LimitRange":
                limits = LimitRange(_name_of(content), without_null(content))
                namespace = str(content["metadata"].get("namespace") or "default")
                self._limits.setdefault(namespace, []).append(limits)
            case _:
                return

    def admitted(self, pod: Any) -> Any:
        """Return the pod as it would be stored. Raises Forbidden."""
        for limits in self._limits.get(pod.namespace, ()):
            pod = limits.with_defaults(pod)
        pod = self._with_priority(pod)
        pod = _with_default_tolerations(pod)
        pod = self._with_runtime_class(pod)
        problems = [problem for limits in self._limits.get(pod.namespace, ()) for problem in limits.problems(pod)]
        if problems:
            raise Forbidden(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        return pod

    def with_group_priority(self, obj: OtherObject) -> OtherObject:
        """Return a new group of pods with the priority of its class; every other object as it is."""
        spec = obj.content.get("spec")
        if obj.label not in GROUPS or obj.metadata.get("resourceVersion") or not isinstance(spec, Mapping):
            return obj
        name = spec.get("priorityClassName") or self._default
        found = SYSTEM_CLASSES.get(name) or self._classes.get(name) if isinstance(name, str) else None
        if found is None or spec.get("priority") is not None:
            return obj
        return obj._replace(content={**obj.content, "spec": {**spec, "priority": found.value}})

    def _with_priority(self, pod: Any) -> Any:
        spec = pod.spec
        name = spec.priority_class_name or self._default
        found = _Priority(0, None) if name is None else SYSTEM_CLASSES.get(name) or self._classes.get(name)
        if found is None or (name is None and not self._classes):
            if name is not None:
                if self._classes:
                    raise Forbidden(f"no PriorityClass with name {name} was found")
                self._misses("PriorityClass", name, pod)
            found = _Priority(spec.priority or 0, spec.preemption_policy)
        if spec.priority is not None and spec.priority != found.value:
            raise Forbidden(
                f"the integer value of priority ({spec.priority}) must not be provided in pod spec; "
                f"priority admission controller computed {found.value} from the given PriorityClass name"
            )
        policy = found.policy or spec.preemption_policy
        if spec.preemption_policy is not None and spec.preemption_policy != policy:
            raise Forbidden(
                f"the string value of PreemptionPolicy ({spec.preemption_policy}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
        return replace(
            pod, spec=replace(spec, priority=found.value, preemption_policy=policy, priority_class_name=name)
        )

    def _with_runtime_class(self, pod: Any) -> Any:
        spec, name = pod.spec, pod.spec.runtime_class_name
        if name is None or name not in self._runtime_classes:
            if name is not None:
                if self._runtime_classes:
                    raise Forbidden(f'pod rejected: RuntimeClass "{name}" not found')
                self._misses("RuntimeClass", name, pod)
            elif spec.overhead is not None:
                raise Forbidden(_NO_OVERHEAD)
            return pod
        runtime = self._runtime_classes[name]
        overhead = None if runtime.overhead is None else runtime.overhead.pod_fixed
        if runtime.overhead is None and spec.overhead is not None:
            raise Forbidden(_NO_OVERHEAD)
        if spec.overhead and not _equal(spec.overhead, overhead or {}):
            raise Forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        scheduling = runtime.scheduling or _Scheduling()
        selector = dict(spec.node_selector or {})
        for key, value in (scheduling.node_selector or {}).items():
            if selector.setdefault(key, value) != value:
                raise Forbidden(
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}"
                )
        tolerations = spec.tolerations or ()
        if runtime.scheduling is not None:
            tolerations = _merged((*tolerations, *(scheduling.tolerations or ())))
        changed = replace(
            spec,
            overhead=overhead if overhead is not None else spec.overhead,
            node_selector=selector or spec.node_selector,
            tolerations=tolerations or None,
        )
        return replace(pod, spec=changed)

    def _misses(self, kind: str, name: str, pod: Pod) -> None:
        self.missing.setdefault((kind, name), []).append(str(pod))


def _with_default_tolerations(pod: Any) -> Any:
    tolerations = tuple(pod.spec.tolerations or ())
    own = {each.key for each in tolerations if each.effect in ("", "NoExecute")}
    added = tuple(
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=300)
        for key in (_NOT_READY, _UNREACHABLE)
        if not own & {key, ""}
    )
    return replace(pod, spec=replace(pod.spec, tolerations=tolerations + added)) if added else pod


def _merged(every: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Leave out what others cover: pkg/util/tolerations (MergeTolerations)."""
    merged: list[Toleration] = []
    for index, one in enumerate(every):
        is_covered = any(_covers(other, one) for other in merged)
        if not is_covered and not any(other != one and _covers(other, one) for other in every[index + 1 :]):
            merged.append(one)
    return tuple(merged)


def _covers(wide: Toleration, one: Toleration) -> bool:
    """pkg/util/tolerations (isSuperset)."""
    if wide == one:
        return True
    if wide.key != one.key and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect not in (one.effect, ""):
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = one.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator in ("", "Equal"):
        return one.operator in ("", "Equal") and wide.value == one.value
    return wide.operator == "Exists"


def _name_of(content: Mapping[str, Any]) -> str:
    metadata = content.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not name:
        raise Unreadable("metadata.name: Required value")
    return name


def _runtime_class(content: Mapping[str, Any]) -> RuntimeClass:
    made = convert(without_null(content), RuntimeClass)
    for name, text in ((made.overhead and made.overhead.pod_fixed) or {}).items():
        try:
            parse_quantity(text)
        except ValueError as error:
            raise Unreadable(f"overhead.podFixed[{name}]: {error}") from error
    return made


def _equal(one: ResourceList, other: ResourceList) -> bool:
    try:
        amounts = [{name: parse_quantity(text) for name, text in each.items()} for each in (one, other)]
    except ValueError:
        return False
    return amounts[0] == amounts[1]
