"""ResourceQuotas, and whether new pods would exceed them. They refuse nothing here: which of several pods would
come too late nobody knows, so what they would not have is noted.

Rules: pkg/quota/v1/evaluator/core/pods.go and plugin/pkg/admission/resourcequota at v1.36.3.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.go_quantity import GoQuantity
from scheduler.api.objects import PodAffinityTerm, ResourceList, Wire
from scheduler.api.quantity import NANO, parse_quantity, to_milli, to_value
from scheduler.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, pod_limits, pod_requests
from scheduler.api.spelling import spelled
from scheduler.framework.field_errors import invalid
from scheduler.simulate.apiserver.validation import short
from scheduler.simulate.files.objects import reworded, without_null
from scheduler.simulate.other_objects import OtherObject

LABEL: Final = "ResourceQuota"

MAX_NOTED: Final = 10
"""Quotas that are named."""

_COUNT: Final = "count/pods"
_NATIVE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_DEMANDED: Final = frozenset(
    f"{prefix}{resource}" for prefix in ("", "requests.", "limits.") for resource in (CPU, MEMORY)
)
"""If a quota has one of these, each container has to specify it."""

_OF_NEW_PODS: Final = frozenset({"Terminating", "NotTerminating", "PriorityClass"})
"""Scopes for which that is read."""

Amounts = Mapping[str, int]
"""As quotas name them → billionths."""


class _Requirement(Wire, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class _Selector(Wire, frozen=True):
    match_expressions: tuple[_Requirement, ...] | None = None


class _Spec(Wire, frozen=True):
    hard: ResourceList | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: _Selector | None = None


class _Status(Wire, frozen=True):
    used: ResourceList | None = None


class _Metadata(Wire, frozen=True):
    name: str = ""
    namespace: str = ""


class _Written(Wire, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class Quotas:
    """All of them."""

    def __init__(self, others: Iterable[OtherObject], there: Iterable[Any], problems: list[str]) -> None:
        """`there`: pods that count for quotas that nobody has counted yet. Add what cannot be read to `problems`."""
        self._by_namespace: dict[str, list[_Quota]] = {}
        for obj in others:
            if obj.label == LABEL:
                try:
                    quota = _Quota(convert(without_null(obj.content), _Written))
                except Unreadable as error:
                    problems.append(f"{obj.place}: {reworded(error)}")
                else:
                    self._by_namespace.setdefault(quota.namespace, []).append(quota)
        for pod in there if self._by_namespace else ():
            for quota in self._by_namespace.get(pod.namespace, ()):
                quota.count(pod)

    def notes(self, new: Iterable[tuple[Any, int]]) -> list[str]:
        """Return a line for each quota that all of the new pods together would exceed, with the amounts."""
        charges: defaultdict[str, list[tuple[Any, int]]] = defaultdict(list)
        for pod, number in new if self._by_namespace else ():
            charges[pod.namespace].append((pod, number))
        lines = [
            line
            for namespace, pods in sorted(charges.items())
            for quota in self._by_namespace.get(namespace, ())
            for line in quota.notes(pods)
        ]
        more = len(lines) - MAX_NOTED
        return [*lines[:MAX_NOTED], *([f"and {more} more quotas without room"] if more > 0 else [])]


class _Quota:
    """One of them."""

    def __init__(self, written: _Written) -> None:
        """Raises Unreadable."""
        self.namespace, self._name = written.metadata.namespace or "default", written.metadata.name
        spec = written.spec
        self._hard = _read(spec.hard, "spec.hard")
        self._used = Counter(_read(written.status.used, "status.used"))
        selector = spec.scope_selector or _Selector()
        scopes = (_Requirement(scope_name=scope, operator="Exists") for scope in spec.scopes or ())
        self._scopes = (*scopes, *(selector.match_expressions or ()))
        reads_more = any(scope.scope_name in _OF_NEW_PODS for scope in self._scopes)
        self._is_counted = written.status.used is not None or reads_more

    def count(self, pod: Any) -> None:
        """Count a pod that is there, unless the quota's controller has, or only new pods say whether they count."""
        if not self._is_counted and not pod.is_terminated and self._is_for(pod):
            self._used.update(_charge(pod))

    def notes(self, pods: Iterable[tuple[Any, int]]) -> Iterator[str]:
        """Yield what the API server would refuse of these new pods, which are in its namespace."""
        taken, number, silent = Counter[str](), 0, Counter[str]()
        for pod, times in pods:
            if self._is_for(pod):
                number += times
                taken.update({name: amount * times for name, amount in _charge(pod).items()})
                silent.update(dict.fromkeys(_unsaid(pod, self._hard.keys() & _DEMANDED), times))
        over = [name for name in self._hard if taken[name] and self._used[name] + taken[name] > self._hard[name]]
        for name in sorted(over)[:1]:
            amounts = (self._used[name], self._hard[name], taken[name])
            used, hard, wanted = (_shown(name, amount) for amount in amounts)
            yield (
                f"{self}: {used} of {hard} {name} in use, and {wanted} for {_pods(number)}: "
                "the API server would not admit all, a simulation does"
            )
        for name in sorted(silent)[:1]:
            yield (
                f"{self} demands {name} of each container, and {_pods(silent[name])} would be without: "
                "the API server would not admit them, a simulation does"
            )

    def __str__(self) -> str:
        return f"ResourceQuota {self.namespace}/{self._name}"

    def _is_for(self, pod: Any) -> bool:
        return all(_matches(scope, pod) for scope in self._scopes)


def _pods(number: int) -> str:
    return f"{number:,} new pod{'' if number == 1 else 's'}"


def _read(amounts: ResourceList | None, path: str) -> dict[str, int]:
    read = {}
    for name, text in (amounts or {}).items():
        try:
            read[name] = parse_quantity(text)
        except ValueError:
            raise Unreadable(
                f"{path}[{name}]: {invalid(short(text), 'not a quantity such as 500m or 1.5Gi')}"
            ) from None
    return read


def _charge(pod: Any) -> Amounts:
    """A pod's usage of quotas."""
    amounts = {_COUNT: NANO, PODS: NANO}
    for name, amount in _plain(pod_requests(pod.spec, None)).items():
        if name in _NATIVE or name.startswith("hugepages-"):
            amounts[name] = amount
        amounts[f"requests.{name}"] = amount
    for name, amount in _plain(pod_limits(pod.spec)).items():
        if name in _NATIVE:
            amounts[f"limits.{name}"] = amount
    return amounts


def _plain(amounts: Mapping[str, int | GoQuantity]) -> Amounts:
    """Those that are not out of all proportion."""
    return {name: amount for name, amount in amounts.items() if isinstance(amount, int)}


def _unsaid(pod: Any, demanded: Iterable[str]) -> Iterator[str]:
    """Yield what is demanded of each container, and one does not say."""
    for name in demanded:
        kind, _, resource = name.rpartition(".")
        for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
            resources = container.resources
            said = resources and (resources.limits if kind == "limits" else resources.requests)
            if resource not in (said or {}):
                yield name
                break


def _matches(scope: _Requirement, pod: Any) -> bool:
    """pods.go (podMatchesScopeFunc)."""
    match scope.scope_name:
        case "Terminating" | "NotTerminating" as name:
            return (pod.spec.active_deadline_seconds is not None) is (name == "Terminating")
        case "BestEffort" | "NotBestEffort" as name:
            return _is_best_effort(pod) is (name == "BestEffort")
        case "PriorityClass":
            return _has_class(scope, pod.spec.priority_class_name or "")
        case "CrossNamespacePodAffinity":
            return any(map(_is_of_other_namespaces, _affinity_terms(pod)))
        case _:
            return False


def _is_best_effort(pod: Any) -> bool:
    every = (
        pod.spec.resources,
        *(each.resources for each in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))),
    )
    return not any(
        parse_quantity(text) > 0
        for each in every
        if each is not None
        for amounts in (each.requests, each.limits)
        for name, text in (amounts or {}).items()
        if name in (CPU, MEMORY)
    )


def _has_class(scope: _Requirement, name: str) -> bool:
    match scope.operator:
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return bool(name) and name in (scope.values or ())
        case "NotIn":
            return not name or name not in (scope.values or ())
        case _:
            return False


def _affinity_terms(pod: Any) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    for towards in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        if towards is not None:
            yield from towards.required or ()
            yield from (each.pod_affinity_term for each in towards.preferred or ())


def _is_of_other_namespaces(term: PodAffinityTerm) -> bool:
    return bool(term.namespaces) or term.namespace_selector is not None


def _shown(name: str, amount: int) -> str:
    resource = name.partition(".")[2] if name.startswith(("requests.", "limits.")) else name
    return spelled(resource, to_milli(amount) if resource == CPU else to_value(amount))
