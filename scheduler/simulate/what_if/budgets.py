"""Disruption budgets as evictions see them.

Rules: pkg/registry/core/pod/storage/eviction.go at v1.36.3; for a budget without a status yet, as in a file written by
hand, pkg/controller/disruption, where the pods that exist count as those that their controllers want.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.groups.owners import controller_of
from scheduler.api.label_selectors import Selector, parse_label_selector
from scheduler.api.objects import LabelSelector, Wire
from scheduler.api.pods.pod import Pod
from scheduler.framework.field_errors import invalid
from scheduler.simulate.apiserver.validation import short
from scheduler.simulate.files.objects import reworded, without_null
from scheduler.simulate.other_objects import OtherObject

LABEL: Final = "PodDisruptionBudget (policy/v1)"

_PERCENTAGE: Final = re.compile(r"([0-9]{1,9})%", re.ASCII)


class _Metadata(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    generation: int = 0


class _Spec(Wire, frozen=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class _Status(Wire, frozen=True):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class _Written(Wire, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status | None = None


@dataclass(slots=True)
class Budget:
    namespace: str
    name: str
    selector: Selector
    is_processed: bool
    """Whether its controller has seen its newest version."""

    allows_unhealthy: bool
    """Whether pods that are not ready may always go."""

    expected: int
    """How many pods their controllers want; if none, none may go."""

    desired: int
    healthy: int
    allowed: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def refusal(self, pod: Pod) -> str | None:
        """Why a pod may not be evicted now, or None."""
        if not is_ready(pod) and (self.allows_unhealthy or (self.healthy >= self.desired > 0)):
            return None
        if not self.is_processed:
            return f"the disruption budget {self} is still being processed by its controller"
        if self.allowed <= 0:
            if self.healthy > self.desired:
                return f"the disruption budget {self} allows none"
            needs = f"it needs {self.desired} ready pods and has {self.healthy}"
            return f"the disruption budget {self} allows none: {needs}"
        return None

    def take(self, pod: Pod) -> None:
        """A pod goes."""
        if is_ready(pod):
            self.healthy -= 1
            self.allowed = max(0, self.allowed - 1)

    def give(self) -> None:
        """One more pod is ready."""
        self.healthy += 1
        self.allowed = min(self.allowed + 1, _allowed(self.expected, self.desired, self.healthy))


class Budgets:
    def __init__(self, others: Iterable[OtherObject], pods: Iterable[Pod], problems: list[str]) -> None:
        """Add what cannot be read to `problems`."""
        self._by_namespace: dict[str, list[Budget]] = {}
        running: dict[str, list[Pod]] = {}
        for pod in pods:
            if not (pod.is_terminated or pod.is_deleting):
                running.setdefault(pod.namespace, []).append(pod)
        for obj in others:
            if obj.label == LABEL:
                try:
                    budget = _budget(obj.content, running)
                except (Unreadable, RecursionError) as error:
                    problems.append(f"{obj.place}: {reworded(error)}")
                except ValueError as error:
                    problems.append(f"{obj.place}: spec.selector: {error}")
                else:
                    self._by_namespace.setdefault(budget.namespace, []).append(budget)

    def of(self, pod: Pod) -> list[Budget]:
        """Return those that select the pod."""
        return [each for each in self._by_namespace.get(pod.namespace, ()) if each.selector.matches(pod.labels)]

    def refusal(self, pod: Pod) -> str | None:
        """Why the API server would not evict the pod now, or None."""
        if pod.status.phase == "Pending":
            return None
        budgets = self.of(pod)
        if len(budgets) > 1:
            names = " and ".join(map(str, budgets))
            return f"{len(budgets)} disruption budgets select it, {names}, and an eviction takes one at most"
        return budgets[0].refusal(pod) if budgets else None

    def take(self, pod: Pod) -> None:
        """The pod goes: it is evicted, or its node vanishes."""
        for budget in self.of(pod):
            budget.take(pod)

    def give(self, pod: Pod) -> None:
        """The pod, or another one like it, has found a node: there it becomes ready."""
        for budget in self.of(pod):
            budget.give()


def is_ready(pod: Pod) -> bool:
    """Return whether it says so; one that says nothing, as in a file written by hand, is if it has a node."""
    ready = [each.status for each in pod.status.conditions or () if each.type == "Ready"]
    return ready == ["True"] if ready else bool(pod.node_name) and pod.status.phase != "Pending"


def _budget(content: Mapping[str, Any], running: Mapping[str, list[Pod]]) -> Budget:
    written = convert(without_null(content), _Written)
    metadata, spec, status = written.metadata, written.spec, written.status
    namespace = metadata.namespace or "default"
    selector = parse_label_selector(spec.selector)
    is_processed = True
    if status is None or not (status.observed_generation or status.expected_pods):
        selected = [pod for pod in running.get(namespace, ()) if selector.matches(pod.labels)]
        expected, desired = _counts(spec, selected)
        healthy = sum(map(is_ready, selected))
        allowed = _allowed(expected, desired, healthy)
    else:
        expected, desired, healthy = status.expected_pods, status.desired_healthy, status.current_healthy
        allowed = status.disruptions_allowed
        is_processed = status.observed_generation >= metadata.generation
    always = spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
    return Budget(namespace, metadata.name, selector, is_processed, always, expected, desired, healthy, allowed)


def _counts(spec: _Spec, selected: Sequence[Pod]) -> tuple[int, int]:
    """How many pods are expected, and how many have to be ready. Only a number of available pods counts bare pods."""
    of_controllers = sum(controller_of(pod) is not None for pod in selected)
    if spec.max_unavailable is not None:
        share = _share(spec.max_unavailable, of_controllers, "spec.maxUnavailable")
        return of_controllers, max(0, of_controllers - share)
    if isinstance(spec.min_available, int):
        return len(selected), spec.min_available
    if spec.min_available is not None:
        return of_controllers, _share(spec.min_available, of_controllers, "spec.minAvailable")
    return 0, 0


def _share(written: int | str, expected: int, path: str) -> int:
    """The number, or the percentage of those that are expected, rounded up. Raises Unreadable."""
    if isinstance(written, int):
        return written
    match = _PERCENTAGE.fullmatch(written)
    if match is None:
        raise Unreadable(f"{path}: {invalid(short(written), 'expected a number or a percentage')}")
    return -(-int(match[1]) * expected // 100)


def _allowed(expected: int, desired: int, healthy: int) -> int:
    return max(0, healthy - desired) if expected > 0 else 0
