"""PodDisruptionBudgets, as preemption respects them: which pods' disruption violates one.

Rule: FilterVictimsWithPDBViolation in framework/preemption/util.go at v1.37.2: a pod is taken off the budgets that it
comes under up to the first that it violates. The first one is by the order of a Go map there, by name here. Beyond it,
pods that were chosen as victims count as disrupted before the budgets' controller has counted them: `Disruptions`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, compress, count
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

MAX_KNOWN: Final = 100_000
"""Of so many pods it is remembered which budgets they come under."""


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

    def covers(self, pod: fw.Pod) -> bool:
        """Return whether a pod comes under it."""
        return bool(pod.labels) and self.selector.matches(pod.labels)


class Victim(NamedTuple):
    """A pod that was chosen as a victim."""

    pod: fw.Pod
    """Its newest version."""
    left_in: str
    """The first version that was seen leaving; empty before."""


class Disruptions:
    """The pods that were chosen as victims, by any profile, and which budgets may still count as available.

    A budget that is newer than a pod's deletion has counted it. A pod is forgotten once it is gone.
    """

    def __init__(self, pods: Mapping[str, fw.Pod]) -> None:
        """`pods`: UID → newest version, as `handle.pods`."""
        self._pods = pods
        self._victims: defaultdict[str, dict[str, Victim]] = defaultdict(dict)
        """Namespace → UID → victim."""
        self._changes = Counter[str]()

    def add(self, victims: Iterable[fw.Pod]) -> None:
        """Count pods as disrupted from now on."""
        for victim in victims:
            self._victims[victim.namespace].setdefault(victim.uid, Victim(victim, ""))
            self._changes[victim.namespace] += 1

    def withdraw(self, victims: Iterable[fw.Pod]) -> None:
        """Do not count pods that are not evicted after all, or need not be."""
        for pod in victims:
            known = self._victims[pod.namespace].get(pod.uid)
            if known is not None and not known.left_in:
                self._forget(known.pod)

    def look_again(self) -> None:
        """Take the newest version of each pod, and forget those that are gone."""
        for victim in [victim for of in self._victims.values() for victim in of.values()]:
            pod, left_in = self._pods.get(victim.pod.uid), victim.left_in
            if pod is None:
                self._forget(victim.pod)
            elif pod is not victim.pod or (pod.is_deleting and not left_in):
                left_in = left_in or (pod.metadata.resource_version if pod.is_deleting else "")
                self._victims[pod.namespace][pod.uid] = Victim(pod, left_in)
                self._changes[pod.namespace] += 1

    def of(self, namespace: str) -> Collection[Victim]:
        """Return the victims of a namespace, as they were when last looked at."""
        return self._victims.get(namespace, {}).values()

    def changes(self, namespace: str) -> int:
        """Return a number that grows with each change of them."""
        return self._changes[namespace]

    def _forget(self, pod: fw.Pod) -> None:
        del self._victims[pod.namespace][pod.uid]
        self._changes[pod.namespace] += 1


NO_DISRUPTIONS: Final = Disruptions({})


def disruptions_of(handle: fw.Handle) -> Disruptions:
    """Return those of a scheduler: the same for all profiles."""
    return handle.shared.get(Disruptions, lambda: Disruptions(handle.pods))


class Budgets:
    """All budgets, by namespace."""

    def __init__(self, counted: Mapping[str, Sequence[Budget]], covering: "_Covering") -> None:
        """`counted`: by namespace, in the order of `covering`, with the pods counted that are on their way out."""
        self._by_namespace = counted
        self._covering = covering
        self._allowed = np.array([each.allowed for budgets in counted.values() for each in budgets], np.int64)

    @classmethod
    def among(cls, objects: Iterable[Any], disruptions: "Disruptions" = NO_DISRUPTIONS) -> "Budgets":
        """Read objects as `handle.objects` has them. One that cannot be read, like one of no pods, protects none."""
        disruptions.look_again()
        return BudgetReader(objects).count(disruptions)

    @classmethod
    def of(cls, handle: fw.Handle) -> "Budgets":
        """Return the budgets as they are now."""
        return handle.shared.get(_Newest, lambda: _Newest(handle)).now(handle)

    def violating_on_nodes(self, lower: fw.LowerPods) -> fw.BoolColumn | None:
        """Which of these pods violate a budget, as `split` says of each node alone; None if there are no budgets."""
        if not self._by_namespace:
            return None
        pods, budgets = self._covering.pairs(lower.pods)
        nodes = np.repeat(np.arange(len(lower.counts)), lower.counts)[pods]
        # Pods of the same node and budget side by side: how many leave before each of them?
        order = np.lexsort((pods, budgets, nodes))
        pods, budgets, nodes = pods[order], budgets[order], nodes[order]
        positions = np.arange(len(pods))
        continues = (np.diff(budgets, prepend=-1) == 0) & (np.diff(nodes, prepend=-1) == 0)
        before = positions - np.maximum.accumulate(np.where(continues, 0, positions))
        violates = np.zeros(len(lower.pods), np.bool_)
        violates[pods[before >= self._allowed[budgets]]] = True
        if len(pods) > len(np.unique(pods)):
            self._correct(violates, lower)
        return violates

    def _correct(self, violates: fw.BoolColumn, lower: fw.LowerPods) -> None:
        """Look at each node with violations again: of pods under several budgets, not all of these count."""
        ends = np.cumsum(lower.counts)
        for node in np.unique(np.searchsorted(ends, np.flatnonzero(violates), "right")).tolist():
            left: _Left = {}
            end = int(ends[node])
            for place in range(end - int(lower.counts[node]), end):
                violates[place] = self._violates(lower.pods[place], left)

    def split(self, pods: Sequence[fw.Pod]) -> tuple[Sequence[fw.Pod], Sequence[fw.Pod]]:
        """Return the pods whose disruption violates a budget, and the others, if they go in this order."""
        if not self._by_namespace:
            return (), pods
        tally = self.tally()
        violates = [tally.use((pod,)) for pod in pods]
        return list(compress(pods, violates)), [pod for pod, each in zip(pods, violates, strict=True) if not each]

    def tally(self) -> "Tally":
        """Begin to count pods that are to go, one unit after the other."""
        return Tally(self._violates if self._by_namespace else None)

    def violated_by(self, pods: Sequence[fw.Pod]) -> Sequence[str]:
        """Return the names of the budgets that are violated if all these pods go, with their namespaces."""
        gone = Counter(key for pod in pods for key, _ in self._of(pod))
        overdrawn = (
            f"{namespace}/{self._by_namespace[namespace][place].name}"
            for (namespace, place), count in gone.items()
            if count > self._by_namespace[namespace][place].allowed
        )
        return sorted(overdrawn)

    def _violates(self, pod: fw.Pod, left: "_Left") -> bool:
        """Take the pod off the budgets that it comes under, up to the first that it violates."""
        for key, budget in self._of(pod):
            left[key] = left.get(key, budget.allowed) - 1
            if left[key] < 0:
                return True
        return False

    def _of(self, pod: fw.Pod) -> Iterator[tuple[tuple[str, int], Budget]]:
        """Yield the budgets that a pod comes under, with their places."""
        for place, budget in enumerate(self._by_namespace.get(pod.namespace, ())):
            if budget.covers(pod) and pod.name not in budget.disrupted:
                yield (pod.namespace, place), budget


class Tally:
    """Implements framework.shares.DisruptionBudgets."""

    def __init__(self, violates: "Callable[[fw.Pod, _Left], bool] | None") -> None:
        """`violates` takes a pod off its budgets; None if there are no budgets."""
        self._violates = violates
        self._left: _Left = {}

    def allow(self, pods: Sequence[fw.Pod]) -> bool:
        return self._violates is None or not self._take_off(pods, dict(self._left), self._violates)

    def use(self, pods: Sequence[fw.Pod]) -> bool:
        return self._violates is not None and self._take_off(pods, self._left, self._violates)

    def _take_off(self, pods: Sequence[fw.Pod], left: "_Left", violates: "Callable[[fw.Pod, _Left], bool]") -> bool:
        return True in [violates(pod, left) for pod in pods]  # each is taken off


_Left = dict[tuple[str, int], int]
"""Namespace and place of a budget → how many more pods may be disrupted; below 0 it is violated."""


class BudgetReader:
    """The budgets of some objects, before pods are counted that are on their way out."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self._read: dict[str, list[tuple[Budget, str]]] = defaultdict(list)
        """By namespace, in the order of their names, each with the version of its object."""
        for each in sorted(objects, key=lambda each: each.metadata.name):
            budget = _read(each.metadata.name, each.content)
            if budget is not None:
                self._read[each.metadata.namespace].append((budget, each.metadata.resource_version))
        self._covering = _Covering({namespace: [each for each, _ in read] for namespace, read in self._read.items()})
        self._seen: dict[str, int] = {}
        self._over: dict[fw.Pod, Sequence[int]] = {}
        """The budgets that cover each victim, by their place in its namespace."""
        self._counted: dict[str, Sequence[Budget]] = {}
        self._newest: Budgets | None = None

    def count(self, disruptions: Disruptions) -> Budgets:
        """Return the budgets with these pods counted, which takes time only where they have changed."""
        newest = self._newest
        for namespace in self._read:
            changes = disruptions.changes(namespace)
            if self._seen.get(namespace) != changes:
                self._seen[namespace] = changes
                counted = self._counted[namespace] = self._counting(namespace, disruptions.of(namespace))
                self._covering.count(namespace, counted)
                newest = None
        self._newest = Budgets(dict(self._counted), self._covering) if newest is None else newest
        return self._newest

    def _counting(self, namespace: str, victims: Iterable[Victim]) -> Sequence[Budget]:
        """Return the budgets of a namespace with those victims counted that their versions do not count yet."""
        read = self._read[namespace]
        names: defaultdict[int, set[str]] = defaultdict(set)
        for pod, left_in in victims:
            for place in self._places(namespace, pod):
                budget, version = read[place]
                if pod.name not in budget.disrupted and not (left_in and is_newer(version, left_in)):
                    names[place].add(pod.name)
        return [
            _disrupting(budget, names[place]) if place in names else budget for place, (budget, _) in enumerate(read)
        ]

    def _places(self, namespace: str, pod: fw.Pod) -> Sequence[int]:
        found = self._over.get(pod)
        if found is None:
            if len(self._over) >= MAX_KNOWN:
                self._over.clear()
            found = [place for place, (budget, _) in enumerate(self._read[namespace]) if budget.covers(pod)]
            self._over[pod] = found
        return found


class _Newest:
    """The budgets of a scheduler, read again once one has changed: for all its profiles."""

    def __init__(self, handle: fw.Handle) -> None:
        self._version = -1
        self._reader = BudgetReader(())
        self._pods_changed = handle.columns.changes((fw.Aspect.STARTS,))
        disruptions_of(handle).look_again()

    def now(self, handle: fw.Handle) -> Budgets:
        disruptions = disruptions_of(handle)
        changed = self._pods_changed.stale_rows()
        if changed is None or changed:
            disruptions.look_again()
        version = handle.objects.version(POD_DISRUPTION_BUDGET)
        if version != self._version:
            self._version = version
            self._reader = BudgetReader(handle.objects.list(POD_DISRUPTION_BUDGET))
        return self._reader.count(disruptions)


class _Covering(dict[fw.Pod, int]):
    """The budgets against which each pod's eviction counts, as the number of a set: preemptions ask again and again."""

    def __init__(self, budgets: Mapping[str, Sequence[Budget]]) -> None:
        numbers = count()
        self._budgets = {namespace: [(next(numbers), each) for each in of] for namespace, of in budgets.items()}
        self._by_name: defaultdict[tuple[str, str], list[fw.Pod]] = defaultdict(list)
        self._sets: dict[tuple[int, ...], int] = {}
        self._lengths = self._begins = self._members = np.zeros(0, np.int64)

    def count(self, namespace: str, counted: Sequence[Budget]) -> None:
        """Take the budgets of a namespace with other pods counted."""
        before = self._budgets[namespace]
        self._budgets[namespace] = [(number, each) for (number, _), each in zip(before, counted, strict=True)]
        for (_, old), new in zip(before, counted, strict=True):
            for name in () if old is new else old.disrupted ^ new.disrupted:
                for pod in self._by_name.pop((namespace, name), ()):
                    self.pop(pod, None)

    def pairs(self, pods: Sequence[fw.Pod]) -> tuple[fw.Rows, fw.Int64Column]:
        """Return the place of a pod and the number of a budget that its eviction counts against, for each such pair."""
        if len(self) > MAX_KNOWN:
            self.clear()
            self._by_name.clear()
            self._sets.clear()
            self._lengths = self._lengths[:0]
        sets = np.fromiter(map(self.__getitem__, pods), np.int64, len(pods))
        if len(self._lengths) < len(self._sets):
            self._lengths = np.fromiter(map(len, self._sets), np.int64, len(self._sets))
            self._begins = np.cumsum(self._lengths) - self._lengths
            self._members = np.fromiter(chain.from_iterable(self._sets), np.int64, self._lengths.sum())
        lengths = self._lengths[sets]
        places = np.repeat(np.arange(len(pods)), lengths)
        within = np.arange(len(places)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return places, self._members[self._begins[sets][places] + within]

    def __missing__(self, pod: fw.Pod) -> int:
        budgets = self._budgets.get(pod.namespace, ())
        covering = tuple(
            number for number, budget in budgets if budget.covers(pod) and pod.name not in budget.disrupted
        )
        self._by_name[pod.namespace, pod.name].append(pod)
        found = self[pod] = self._sets.setdefault(covering, len(self._sets))
        return found


def _disrupting(budget: Budget, names: Set[str]) -> Budget:
    return budget._replace(allowed=budget.allowed - len(names), disrupted=budget.disrupted | names)


def _read(name: str, content: Mapping[str, Any]) -> Budget | None:
    try:
        written = convert(content, _BudgetObject)
        selector = parse_label_selector(written.spec.selector)
    except ValueError:  # Unreadable is one too
        return None
    if selector.is_nothing or selector.is_everything:
        return None
    return Budget(name, selector, written.status.disruptions_allowed, frozenset(written.status.disrupted_pods or ()))
