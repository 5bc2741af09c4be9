"""Kueue's ClusterQueues and Cohorts as shares: `ClusterQueue/team-a` below `Cohort/all`, an amount for each flavor.

A Cohort that is only named exists, without quota of its own. A queue that takes no pods keeps its share, so the others
of its cohort go on borrowing from it. Rule: pkg/cache/scheduler (clusterqueue.go, resource_node.go) of Kueue.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from scheduler.api.label_selectors import Selector, parse_label_selector
from scheduler.api.objects import Taint
from scheduler.api.pods.tolerations import KEEPS_PODS_AWAY
from scheduler.api.quantities.quantity import NANO, parse_quantity
from scheduler.api.quota import kueue as api
from scheduler.api.quota.quota_amounts import MAX, amount_of
from scheduler.api.read_only import NOTHING
from scheduler.api.wording.text import shortened
from scheduler.quota.policies import NOTHING_EVICTED, Policy, Preemption
from scheduler.quota.tree import Share, find_problems, problem_of

CLUSTER_QUEUE_PREFIX: Final = "ClusterQueue/"
COHORT_PREFIX: Final = "Cohort/"

READY: Final = "Ready"
MISCONFIGURED: Final = "Misconfigured"
"""Reasons in the condition Active of ClusterQueues."""

MAX_QUOTAS: Final = 4096
"""Of one object: each flavor and resource costs memory in all shares."""

MAX_SHOWN: Final = 200
"""Characters of an unreadable value."""


class Flavor(msgspec.Struct, frozen=True):
    """A kind of nodes, as pods are compared with it."""

    name: str
    labels: Mapping[str, str] = NOTHING
    taints: tuple[Taint, ...] = ()
    """Those that keep pods away."""


class Group(msgspec.Struct, frozen=True):
    """Resources that a pod gets from one flavor, and the flavors in the order in which they are tried."""

    covered: frozenset[str]
    flavors: tuple[Flavor, ...]

    @property
    def eligible(self) -> list[Flavor]:
        """Those whose nodes differ from the nodes of the flavors before them: of equal ones the first."""
        return list({tuple(sorted(each.labels.items())): each for each in reversed(self.flavors)}.values())[::-1]


class Queue(msgspec.Struct, frozen=True):
    """A ClusterQueue, for the pods that come to it."""

    name: str
    share: str
    groups: tuple[Group, ...] = ()
    namespaces: Selector = Selector(is_nothing=True)
    fungibility: api.FlavorFungibility = api.FlavorFungibility()
    preemption: Preemption = NOTHING_EVICTED
    """Whom its pods may evict."""

    problem: str = ""
    """Why it takes no pods: a clause; empty if it does."""

    reason: str = READY
    """The same in a word of Kueue's."""


class Quotas(msgspec.Struct, frozen=True):
    """The quotas that the objects declare."""

    shares: tuple[Share, ...]
    """Those that can be used."""

    queues: Mapping[str, Queue]
    """By the name of the ClusterQueue."""

    problems: Mapping[str, str]
    """Name of a share that cannot be used → one sentence."""

    flavors: tuple[Flavor, ...] = ()
    """All that there are."""

    node_labels: tuple[str, ...] = ()
    """The labels that distinguish their nodes from others."""


def key_of(flavor: str, resource: str) -> str:
    """Return the name of a flavor's resource in the tree. Names of flavors have no slash."""
    return f"{flavor}/{resource}"


def resource_of(key: str) -> str:
    """Return the resource of a key: what dominant shares add up over flavors."""
    return key.partition("/")[2]


def quotas_of(
    cluster_queues: Iterable[api.ClusterQueue],
    cohorts: Iterable[api.Cohort],
    flavors: Mapping[str, api.ResourceFlavor],
) -> Quotas:
    """Return the shares and queues of these objects; one that cannot be read has a problem and no share."""
    shares: dict[str, Share] = {}
    problems: dict[str, str] = {}
    for cohort in sorted(cohorts, key=lambda each: each.metadata.name):
        _declare(
            shares,
            problems,
            f"{COHORT_PREFIX}{cohort.metadata.name}",
            cohort.spec.parent_name,
            cohort.spec.resource_groups,
            cohort.spec.fair_sharing,
        )
    declared = {each.metadata.name: each for each in sorted(cluster_queues, key=lambda each: each.metadata.name)}
    for name, queue in declared.items():
        spec = queue.spec
        share = f"{CLUSTER_QUEUE_PREFIX}{name}"
        _declare(shares, problems, share, spec.cohort_name, spec.resource_groups, spec.fair_sharing)
    for parent in {each.parent for each in shares.values()} - shares.keys() - problems.keys() - {""}:
        shares[parent] = Share(name=parent)
    unreadable = dict(problems)
    problems.update(find_problems(tuple(shares.values())))
    for name, each in shares.items():
        if each.parent in unreadable:
            problems[name] = f'its ancestor "{each.parent}" cannot be used'
    known = {name: _flavor(each) for name, each in flavors.items()}
    queues = {
        name: _queue(each, problems.get(f"{CLUSTER_QUEUE_PREFIX}{name}", ""), known) for name, each in declared.items()
    }
    sound = tuple(each for each in shares.values() if each.name not in problems)
    labels = sorted({label for flavor in known.values() for label in flavor.labels})
    return Quotas(sound, queues, problems, tuple(known.values()), tuple(labels))


def with_amounts(quotas: Quotas, queue: api.ClusterQueue) -> tuple[Quotas, Share] | None:
    """Return the quotas with another version of a ClusterQueue, and its share; None if not only its amounts differ."""
    spec, name = queue.spec, f"{CLUSTER_QUEUE_PREFIX}{queue.metadata.name}"
    shares = {each.name: each for each in quotas.shares}
    declared: dict[str, Share] = {}
    _declare(declared, {}, name, spec.cohort_name, spec.resource_groups, spec.fair_sharing)
    before, share = shares.get(name), declared.get(name)
    if before is None or share is None or before.parent != share.parent or problem_of(share):
        return None
    if quotas.queues.get(queue.metadata.name) != _queue(queue, "", {each.name: each for each in quotas.flavors}):
        return None
    shares[name] = share
    return msgspec.structs.replace(quotas, shares=tuple(shares.values())), share


def _declare(
    shares: dict[str, Share],
    problems: dict[str, str],
    name: str,
    cohort: str,
    groups: tuple[api.ResourceGroup, ...] | None,
    fair_sharing: api.FairSharing | None,
) -> None:
    try:
        minimum, borrowing, lending = _amounts(groups or ())
        weight = 1.0
        if fair_sharing is not None and fair_sharing.weight is not None:
            weight = parse_quantity(fair_sharing.weight) / NANO
    except (ValueError, OverflowError) as error:
        problems[name] = f"its quotas cannot be read: {shortened(str(error), MAX_SHOWN)}"
        return
    shares[name] = Share(
        name=name,
        parent=f"{COHORT_PREFIX}{cohort}" if cohort else "",
        minimum=minimum,
        borrowing_limit=borrowing if cohort else {},
        lending_limit=lending if cohort else {},
        weight=weight,
    )


def _amounts(groups: Iterable[api.ResourceGroup]) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Return nominal quotas, borrowing limits and lending limits. Raises ValueError for what cannot be read."""
    minimum: dict[str, int] = {}
    borrowing: dict[str, int] = {}
    lending: dict[str, int] = {}
    for group in groups:
        for flavor in group.flavors or ():
            for quota in flavor.resources or ():
                key = key_of(flavor.name, quota.name)
                minimum[key] = _amount_of(quota.name, quota.nominal_quota)
                if quota.borrowing_limit is not None:
                    borrowing[key] = _amount_of(quota.name, quota.borrowing_limit)
                if quota.lending_limit is not None:
                    lending[key] = _amount_of(quota.name, quota.lending_limit)
                if len(minimum) > MAX_QUOTAS:
                    raise ValueError(f"there are more than {MAX_QUOTAS} of them")
    return minimum, borrowing, lending


def _amount_of(resource: str, quantity: api.Quantity) -> int:
    """Return a quantity as pods count it, at most MAX. Raises ValueError for one that cannot be read."""
    return min(amount_of(resource, quantity), MAX)


def _flavor(flavor: api.ResourceFlavor) -> Flavor:
    spec = flavor.spec
    taints = tuple(each for each in spec.node_taints or () if each.effect in KEEPS_PODS_AWAY)
    return Flavor(flavor.metadata.name, spec.node_labels or NOTHING, taints)


def _queue(queue: api.ClusterQueue, problem: str, flavors: Mapping[str, Flavor]) -> Queue:
    spec, name = queue.spec, queue.metadata.name
    groups = tuple(
        Group(
            frozenset(each.covered_resources or ()),
            tuple(flavors[flavor.name] for flavor in each.flavors or () if flavor.name in flavors),
        )
        for each in spec.resource_groups or ()
    )
    try:
        namespaces = parse_label_selector(spec.namespace_selector)
    except ValueError as error:
        namespaces = Selector(is_nothing=True)
        problem = problem or f"its namespaceSelector cannot be read: {shortened(str(error), MAX_SHOWN)}"
    reason, inactive = (MISCONFIGURED, problem) if problem else _why_inactive(queue, flavors)
    return Queue(
        name,
        f"{CLUSTER_QUEUE_PREFIX}{name}",
        groups,
        namespaces,
        spec.flavor_fungibility or api.FlavorFungibility(),
        _preemption(spec.preemption or api.Preemption()),
        inactive,
        reason,
    )


def _preemption(policies: api.Preemption) -> Preemption:
    """Read `spec.preemption`; an unknown policy evicts no pods."""
    borrow = policies.borrow_within_cohort
    return Preemption(
        within_share=_policy(policies.within_cluster_queue),
        reclaim_within_cohort=_policy(policies.reclaim_within_cohort),
        borrow_within_cohort=borrow is not None and _policy(borrow.policy) is Policy.LOWER_PRIORITY,
        max_priority_threshold=None if borrow is None else borrow.max_priority_threshold,
        needs_quota=True,
    )


def _policy(name: str) -> Policy:
    return Policy(name) if name in set(Policy) else Policy.NEVER


def _why_inactive(queue: api.ClusterQueue, flavors: Mapping[str, Flavor]) -> tuple[str, str]:
    """Say why a ClusterQueue takes no pods although its quotas are in order: by Kueue's reason, and in a clause."""
    spec = queue.spec
    if queue.metadata.deletion_timestamp is not None:
        return "Terminating", "it is being deleted"
    if is_stopped(spec.stop_policy):
        return "Stopped", f"it is stopped, its stopPolicy is {shortened(str(spec.stop_policy), MAX_SHOWN)}"
    named = [each.name for group in spec.resource_groups or () for each in group.flavors or ()]
    missing = [name for name in dict.fromkeys(named) if name not in flavors]
    if missing:
        return "FlavorNotFound", f"it references missing ResourceFlavors: {shortened(', '.join(missing), MAX_SHOWN)}"
    checks = spec.admission_checks_strategy
    if checks is not None and checks.admission_checks:
        names = ", ".join(each.name for each in checks.admission_checks)
        clause = f"it has AdmissionChecks, which only Kueue can carry out: {shortened(names, MAX_SHOWN)}"
        return "AdmissionCheckInactive", clause
    return READY, ""


def is_stopped(policy: str | None) -> bool:
    """Say whether a stopPolicy, of a ClusterQueue or a LocalQueue, keeps new pods waiting."""
    return policy not in (None, "", "None")
