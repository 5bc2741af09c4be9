"""The flavors that a pod gets from its ClusterQueue: one for each group of resources, as Kueue chooses for a Workload.

A flavor suits a pod that tolerates its taints and does not ask for other values of its labels. Of those that suit, the
first with enough unused quota is taken, as the queue's flavorFungibility says. If none has enough, it is the one in
which quota is to be freed. A pod with a node counts in the flavor of its node.

Rule: pkg/scheduler/flavorassigner/flavorassigner.go of Kueue. It also simulates preemption in each flavor before it
goes on to the next; here, free quota goes before quota that others have to give back.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.tolerations import first_untolerated
from scheduler.api.quota import kueue as api
from scheduler.api.selectors import pod_selector_terms
from scheduler.framework.shares import NodeKind
from scheduler.quota.apis.kueue_quotas import Flavor, Group, Queue, key_of
from scheduler.quota.policies import may_free
from scheduler.quota.tree import ShareTree

MAX_REASONS: Final = 8
"""That a sentence gives."""

_FITS, _FREED_FIRST, _NEVER_FITS = range(3)
"""Whether there is enough unused quota, might be enough if others gave some back, or never is."""


class NoFlavor(Exception):
    """A pod cannot get its requests from its queue, whatever is free; the text has the reason."""


def choose(queue: Queue, request: Mapping[str, int], pod: Pod, tree: ShareTree) -> list[tuple[Group, Flavor]]:
    """Return the flavors from which `request` is taken, by group. Raises NoFlavor."""
    chosen = []
    for group, wanted in parts_of(queue, request):
        if group is None:
            raise NoFlavor(f"resource {next(iter(wanted))} unavailable in ClusterQueue {queue.name}")
        eligible = group.eligible if len(group.flavors) > 1 else group.flavors
        suitable = [each for each in eligible if not unsuitable(each, pod)]
        if not suitable:
            reasons = sorted(unsuitable(each, pod) for each in eligible)
            raise NoFlavor(f"no flavor of ClusterQueue {queue.name} suits the pod: {', '.join(reasons[:MAX_REASONS])}")
        flavor = suitable[0] if len(suitable) == 1 else _best(queue, suitable, wanted, tree)
        chosen.append((group, flavor))
    return chosen


def alternatives(queue: Queue, request: Mapping[str, int], pod: Pod) -> list[dict[str, int]]:
    """Return what a request might take, from each flavor that suits it."""
    return [
        keyed(flavor.name, wanted)
        for group, wanted in parts_of(queue, request)
        for flavor in (() if group is None else group.eligible)
        if not unsuitable(flavor, pod)
    ]


def parts_of(queue: Queue, request: Mapping[str, int]) -> Iterator[tuple[Group | None, dict[str, int]]]:
    """Yield each group of a queue that a request concerns, with its part; last, without a group, what no group has."""
    rest = {resource: amount for resource, amount in request.items() if amount > 0}
    for group in queue.groups:
        wanted = {resource: amount for resource, amount in rest.items() if resource in group.covered}
        if wanted and group.flavors:
            yield group, wanted
            rest = {resource: amount for resource, amount in rest.items() if resource not in wanted}
    if rest:
        yield None, rest


def keyed(flavor: str, wanted: Mapping[str, int]) -> dict[str, int]:
    return {key_of(flavor, resource): amount for resource, amount in wanted.items()}


def flavor_of_node(group: Group, labels: Mapping[str, str]) -> Flavor:
    """Return the flavor of a group in which a pod counts that is on a node with these labels.

    Of those that the node is of, it is the one with the most labels, the first of several; the first of all if it is
    of none: no pod uses a share without being counted.
    """
    found = [each for each in group.flavors if each.labels.items() <= labels.items()]
    return max(found, key=lambda each: len(each.labels), default=group.flavors[0])


def nodes_of(chosen: Iterable[tuple[Group, Flavor]]) -> NodeKind | None:
    """Return which nodes are of the flavors that were chosen; None if all are."""
    wanted: dict[str, str] = {}
    excluded: set[tuple[tuple[str, str], ...]] = set()
    for group, flavor in chosen:
        wanted |= flavor.labels
        excluded.update(
            tuple(sorted(each.labels.items())) for each in group.flavors if len(each.labels) > len(flavor.labels)
        )
        position = group.flavors.index(flavor)
        excluded.update(
            tuple(sorted(each.labels.items()))
            for each in group.flavors[:position]
            if len(each.labels) == len(flavor.labels)
        )
    if not wanted and not excluded:
        return None
    return NodeKind(tuple(sorted(wanted.items())), tuple(sorted(excluded)))


def unsuitable(flavor: Flavor, pod: Pod) -> str:
    """Say why a flavor does not suit a pod; empty if it does."""
    if flavor.taints:
        taint = first_untolerated(flavor.taints, pod.spec.tolerations)
        if taint is not None:
            return f"untolerated taint {taint.key}={taint.value}:{taint.effect} in flavor {flavor.name}"
    if flavor.labels and not _selects(pod, flavor.labels):
        return f"flavor {flavor.name} doesn't match node affinity"
    return ""


def _selects(pod: Pod, labels: Mapping[str, str]) -> bool:
    """Say whether a pod may be on nodes with these labels, whatever other labels they have."""
    selector = pod.spec.node_selector
    if selector:
        for key, value in labels.items():
            if selector.get(key, value) != value:
                return False
    terms = pod_selector_terms(pod)
    for term in terms or ():
        relevant = [each for each in term.expressions if each.key in labels]
        if all(each.matches(labels[each.key]) for each in relevant):
            return True
    return not terms


def _best(queue: Queue, suitable: Sequence[Flavor], wanted: Mapping[str, int], tree: ShareTree) -> Flavor:
    """Return the flavor that a queue prefers; its fungibility says when it looks no further."""
    fungibility = queue.fungibility
    stops_to_borrow = fungibility.when_can_borrow != api.TRY_NEXT_FLAVOR
    stops_to_free = fungibility.when_can_preempt == api.MAY_STOP_SEARCH
    best, least = suitable[0], (_NEVER_FITS + 1, 0)
    for flavor in suitable:
        mode = max(_mode(queue, key, amount, tree) for key, amount in keyed(flavor.name, wanted).items())
        availability, height = mode
        stops = stops_to_borrow or not height
        if availability == _FITS and stops:
            return flavor
        if availability == _FREED_FIRST and stops and stops_to_free:
            mode = _FREED_FIRST, -1  # nothing but unused quota is better
        if mode < least:
            best, least = flavor, mode
    return best


def _mode(queue: Queue, key: str, amount: int, tree: ShareTree) -> tuple[int, int]:
    """Return whether there is enough of something, and how high the subtree is that holds it; less is better."""
    name = queue.share
    height = tree.height(tree.holder(name, key, amount))
    if amount <= tree.available(name, key):
        return _FITS, height
    if amount <= tree.potential(name, key) and may_free(tree, queue.preemption, name, {key: amount}):
        return _FREED_FIRST, height
    return _NEVER_FITS, height
