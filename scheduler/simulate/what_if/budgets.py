"""Disruption budgets as evictions see them.

Rules: pkg/registry/core/pod/storage/eviction.go at v1.36.3; for a budget whose status nobody has written yet, as in a
file written by hand, pkg/controller/disruption, with the pods that are there as those that are expected.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.label_selectors import Selector, parse_label_selector
from scheduler.api.objects import LabelSelector, Wire
from scheduler.api.pod import Pod
from scheduler.simulate.objects import OtherObject
from scheduler.simulate.written import reworded, without_null

LABEL: Final = "PodDisruptionBudget (policy/v1)"


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
    """One of them, as it is at the moment."""

    namespace: str
    name: str
    selector: Selector
    is_processed: bool
    """Whether its controller has seen its newest version."""

    allows_unhealthy: bool
    """Whether pods that are not ready may always go."""

    healthy: int
    desired: int
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
            needs = f"it needs {self.desired} ready pods and has {self.healthy}"
            return f"the disruption budget {self} allows none: {needs}"
        return None

    def take(self, pod: Pod) -> None:
        """A pod goes."""
        if is_ready(pod):
            self.allowed -= 1
            self.healthy -= 1

    def give_back(self) -> None:
        """Another pod is ready in its place."""
        self.allowed += 1
        self.healthy += 1


class Budgets:
    """All of them."""

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
                except Unreadable as error:
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
        """The pod is evicted."""
        if pod.status.phase != "Pending":
            for budget in self.of(pod):
                budget.take(pod)

    def give_back(self, pod: Pod) -> None:
        """Another pod has come to run in place of this one."""
        for budget in self.of(pod):
            budget.give_back()


def is_ready(pod: Pod) -> bool:
    """Whether it says so; one that says nothing, as in a file written by hand, is if it has a node."""
    ready = [each.status for each in pod.status.conditions or () if each.type == "Ready"]
    return ready == ["True"] if ready else bool(pod.node_name)


def _budget(content: Mapping[str, Any], running: Mapping[str, list[Pod]]) -> Budget:
    written = convert(without_null(content), _Written)
    metadata, spec, status = written.metadata, written.spec, written.status
    namespace = metadata.namespace or "default"
    selector = parse_label_selector(spec.selector)
    is_processed = True
    if status is None or not (status.observed_generation or status.expected_pods):
        selected = [pod for pod in running.get(namespace, ()) if selector.matches(pod.labels)]
        healthy = sum(map(is_ready, selected))
        desired = _desired(spec, len(selected))
        allowed = max(0, healthy - desired)
    else:
        healthy, desired = status.current_healthy, status.desired_healthy
        allowed = status.disruptions_allowed
        is_processed = status.observed_generation >= metadata.generation
    always = spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
    return Budget(namespace, metadata.name, selector, is_processed, always, healthy, desired, allowed)


def _desired(spec: _Spec, expected: int) -> int:
    if spec.max_unavailable is not None:
        return max(0, expected - _share(spec.max_unavailable, expected, "spec.maxUnavailable"))
    if spec.min_available is not None:
        return _share(spec.min_available, expected, "spec.minAvailable")
    return 0


def _share(written: int | str, expected: int, path: str) -> int:
    if isinstance(written, int):
        return written
    try:
        return math.ceil(int(written.removesuffix("%")) * expected / 100)
    except ValueError:
        raise Unreadable(f"{path}: Invalid value: {written!r}: expected a number or a percentage") from None
