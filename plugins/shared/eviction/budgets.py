"""PodDisruptionBudgets, as preemption respects them: which pods' disruption violates one.

Rule: filterPodsWithPDBViolation in defaultpreemption/default_preemption.go at v1.36.3. Beyond it, pods that were chosen
as victims count as disrupted before the budgets' controller has counted them: `Disruptions`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from scheduler import framework as fw
from scheduler.api.decoding import convert
from scheduler.api.label_selectors import Selector, parse_label_selector
from scheduler.api.objects import LabelSelector
from scheduler.api.versions import is_newer

POD_DISRUPTION_BUDGET: Final = "policy/PodDisruptionBudget"
"""Their name in `reads` and `handle.objects`."""

BUDGET_PARTS: Final = ("spec.selector", "status.disruptionsAllowed", "status.disruptedPods")
"""The parts of them that are read."""


class _BudgetSpec(msgspec.Struct, frozen=True, gc=False):
    selector: LabelSelector | None = None


class _BudgetStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] | None = None


class _BudgetObject(msgspec.Struct, frozen=True, gc=False):
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()


class Budget(NamedTuple):
    """A budget whose selector selects something."""

    name: str
    selector: Selector
    allowed: int
    """How many pods may be disrupted now."""
    disrupted: frozenset[str]
    """Names of pods whose disruption is counted in `allowed` already."""


class Disruptions:
    """The pods that were chosen as victims, by any profile, and which budgets may still count as available.

    A budget that is newer than a pod's deletion has counted it. A pod is forgotten once it is gone.
    """

    def __init__(self, pods: Mapping[str, fw.Pod]) -> None:
        """`pods`: UID → newest version, as `handle.pods`."""
        self._pods = pods
        self._versions: dict[str, str] = {}
        """UID → the first version that was seen leaving; empty before."""

    def add(self, victims: Iterable[fw.Pod]) -> None:
        """Count pods as disrupted from now on."""
        for victim in victims:
            self._versions.setdefault(victim.uid, "")

    def withdraw(self, victims: Iterable[fw.Pod]) -> None:
        """Do not count pods that are not evicted after all, or need not be."""
        for victim in victims:
            if not self._versions.get(victim.uid):
                self._versions.pop(victim.uid, None)

    def of(self, namespace: str) -> Iterator[tuple[fw.Pod, str]]:
        """Yield the pods of a namespace, each with the version in which it was seen leaving; empty if it was not."""
        for uid, version in tuple(self._versions.items()):
            pod = self._pods.get(uid)
            if pod is None:
                del self._versions[uid]
                continue
            if pod.is_deleting and not version:
                version = self._versions[uid] = pod.metadata.resource_version
            if pod.namespace == namespace:
                yield pod, version


NO_DISRUPTIONS: Final = Disruptions({})


def disruptions_of(handle: fw.Handle) -> Disruptions:
    """Return those of a scheduler: the same for all profiles."""
    return handle.shared.get(Disruptions, lambda: Disruptions(handle.pods))


class Budgets:
    """All budgets, by namespace."""

    def __init__(self, objects: Iterable[Any], disruptions: Disruptions = NO_DISRUPTIONS) -> None:
        """`objects` as `handle.objects` has them. One that cannot be read, like one of no pods, protects none."""
        found: dict[str, list[Budget]] = defaultdict(list)
        for each in objects:
            budget = _read(each.metadata.name, each.content)
            if budget is not None:
                namespace, version = each.metadata.namespace, each.metadata.resource_version
                found[namespace].append(_counting(budget, version, disruptions.of(namespace)))
        self._by_namespace: Mapping[str, Sequence[Budget]] = found

    @classmethod
    def of(cls, handle: fw.Handle) -> "Budgets":
        """Return the budgets as they are now."""
        return cls(handle.objects.list(POD_DISRUPTION_BUDGET), disruptions_of(handle))

    def may_protect(self, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
        """Which of `rows` have a pod that comes under a budget."""
        found: fw.BoolColumn = np.zeros(len(rows), np.bool_)
        for namespace, budgets in self._by_namespace.items():
            for selector in {budget.selector for budget in budgets}:
                found |= nodes.pods.counts(fw.PodMatch(frozenset((namespace,)), selector))[rows] > 0
        return found

    def split(self, pods: Sequence[fw.Pod]) -> tuple[Sequence[fw.Pod], Sequence[fw.Pod]]:
        """Return the pods whose disruption violates a budget, and the others, if they go in this order."""
        if not self._by_namespace:
            return (), pods
        violating: list[fw.Pod] = []
        others: list[fw.Pod] = []
        left: _Left = {}
        for pod in pods:
            (violating if self._violates(pod, left) else others).append(pod)
        return violating, others

    def violating(self, units: Iterable[Sequence[fw.Pod]]) -> Iterator[bool]:
        """Yield for each unit of pods that go together, in this order, whether it violates a budget.

        As soon as one is violated, the others that the pod or its unit comes under are not counted. Rule:
        filterVictimsWithPDBViolation in framework/preemption/podgrouppreemption.go.
        """
        left: _Left = {}
        for unit in units:
            yield any(self._violates(pod, left, to_the_first=True) for pod in unit)

    def tally(self) -> "Tally":
        """Begin to count pods that are to go, one unit after the other."""
        return Tally(self._violates if self._by_namespace else None)

    def violated_by(self, pods: Sequence[fw.Pod]) -> Sequence[str]:
        """Return the names of the budgets that are violated if all these pods go, with their namespaces."""
        left: _Left = {}
        for pod in pods:
            self._violates(pod, left)
        overdrawn = (key for key, allowed in left.items() if allowed < 0)
        return sorted(f"{namespace}/{self._by_namespace[namespace][place].name}" for namespace, place in overdrawn)

    def _violates(self, pod: fw.Pod, left: "_Left", *, to_the_first: bool = False) -> bool:
        """Take the pod off every budget that it comes under, or off those up to the first that it violates."""
        violates = False
        labels = pod.labels
        if not labels:
            return False
        for place, budget in enumerate(self._by_namespace.get(pod.namespace, ())):
            if pod.name not in budget.disrupted and budget.selector.matches(labels):
                key = (pod.namespace, place)
                left[key] = left.get(key, budget.allowed) - 1
                violates = violates or left[key] < 0
                if violates and to_the_first:
                    return True
        return violates


class Tally:
    """Implements framework.shares.DisruptionBudgets."""

    def __init__(self, violates: "Callable[[fw.Pod, _Left], bool] | None") -> None:
        """`violates` takes a pod off its budgets; None if there are no budgets."""
        self._violates = violates
        self._left: _Left = {}

    def allow(self, pods: Sequence[fw.Pod]) -> bool:
        return self._violates is None or not self._take_off(pods, dict(self._left), self._violates)

    def use(self, pods: Sequence[fw.Pod]) -> None:
        if self._violates is not None:
            self._take_off(pods, self._left, self._violates)

    def _take_off(self, pods: Sequence[fw.Pod], left: "_Left", violates: "Callable[[fw.Pod, _Left], bool]") -> bool:
        return True in [violates(pod, left) for pod in pods]  # each is taken off


_Left = dict[tuple[str, int], int]
"""Namespace and place of a budget → how many more pods may be disrupted; below 0 it is violated."""


def _counting(budget: Budget, version: str, disruptions: Iterable[tuple[fw.Pod, str]]) -> Budget:
    """Return a budget with those pods counted that were disrupted after this version of it."""
    names = {
        pod.name
        for pod, seen_leaving in disruptions
        if not (seen_leaving and is_newer(version, seen_leaving)) and budget.selector.matches(pod.labels)
    } - budget.disrupted
    return budget._replace(allowed=budget.allowed - len(names), disrupted=budget.disrupted | names) if names else budget


def _read(name: str, content: Mapping[str, Any]) -> Budget | None:
    try:
        written = convert(content, _BudgetObject)
        selector = parse_label_selector(written.spec.selector)
    except ValueError:  # Unreadable is one too
        return None
    if selector.is_nothing or selector.is_everything:
        return None
    return Budget(name, selector, written.status.disruptions_allowed, frozenset(written.status.disrupted_pods or ()))
