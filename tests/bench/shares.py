"""What a decision about victims costs in a large tree of shares: `python -m tests.bench.shares`.

1,000 shares in four levels (a root, 10 organisations, 100 departments, 890 teams), and 100,000 pods of two resources
that run in the teams. Everybody borrows from one team, which claims its guarantee back. Times are by the clock, the
median and the largest of `--runs` decisions with different requests; the nodes always suffice, so they are what the
choice itself costs.

Then, what it costs the next decision that one quota was changed: one of 1,000 ElasticQuotas, or of 1,000 ClusterQueues
in 100 Cohorts, of as many selectors who use something.
"""

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from scheduler.api import kueue
from scheduler.api.decoding import convert
from scheduler.api.elastic_quotas import ElasticQuota
from scheduler.api.pod import Pod
from scheduler.framework.events import (
    CLUSTER_QUEUE,
    COHORT,
    ELASTIC_QUOTA,
    ELASTIC_QUOTA_SIGS,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
)
from scheduler.quota.adapter import Adapter
from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.apis.elastic_quotas import ElasticQuotas
from scheduler.quota.apis.kueue import KueueQueues
from scheduler.quota.dominant import dominant_share
from scheduler.quota.ledger import Ledger
from scheduler.quota.order import FairOrder, Head
from scheduler.quota.policies import Policy, Preemption
from scheduler.quota.reclaim.units import Preemptor, QuotaUnit
from scheduler.quota.tree import Share, ShareTree
from scheduler.runtime.event_stream import EventStream
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_pod
from tests.unit.quota.reclaiming import Reclaiming, a_ledger

ORGANISATIONS, DEPARTMENTS, TEAMS = 10, 100, 889
PODS: Final = 100_000
TENANTS: Final = 1_000
LIMIT: Final = 50.0
"""Milliseconds that a decision may take."""

CLAIMING: Final = "claiming"
EVERYBODY: Final = Preemption(
    within_share=Policy.LOWER_PRIORITY, reclaim_within_cohort=Policy.ANY, borrow_within_cohort=True
)
LOWER_ONLY: Final = Preemption(within_share=Policy.LOWER_PRIORITY, reclaim_within_cohort=Policy.LOWER_PRIORITY)
WITHIN_ONLY: Final = Preemption(within_share=Policy.LOWER_OR_NEWER_EQUAL_PRIORITY)


def shares() -> Iterator[Share]:
    yield Share(name="root")
    for number in range(ORGANISATIONS):
        yield Share(name=f"organisation-{number}", parent="root")
    for number in range(DEPARTMENTS):
        yield Share(name=f"department-{number}", parent=f"organisation-{number % ORGANISATIONS}")
    for number in range(TEAMS):
        parent = f"department-{number % DEPARTMENTS}"
        yield Share(name=f"team-{number}", parent=parent, minimum={"cpu": 50_000, "memory": 100}, weight=1 + number % 3)
    yield Share(name=CLAIMING, parent="department-0", minimum={"cpu": 60_000_000, "memory": 200_000})


def world(seed: int = 1) -> tuple[ShareTree, list[QuotaUnit]]:
    """Return a tree whose quota is all in use, most of it by teams that borrow, and what runs."""
    chance = random.Random(seed)
    tree, running = ShareTree(list(shares())), list[QuotaUnit]()
    for number in range(PODS):
        unit = QuotaUnit(
            uid=f"pod-{number}",
            share=f"team-{number % TEAMS}",
            usage={"cpu": 1000, "memory": 1},
            priority=chance.randrange(5),
            queued_at=number,
            started=number,
        )
        running.append(unit)
        tree.add(unit.share, unit.usage)
    tree.add(CLAIMING, {resource: tree.available(CLAIMING, resource) for resource in ("cpu", "memory")})
    return tree, running


def claims(priority: int) -> Iterator[Preemptor]:
    for pods in (1, 10, 100, 1000):
        yield Preemptor(share=CLAIMING, request={"cpu": 1000 * pods, "memory": pods}, priority=priority, queued_at=PODS)


def timed(decide: Callable[[], int], runs: int) -> tuple[float, float, int]:
    """Return the median and the largest time in milliseconds, and the last answer."""
    times, answer = [], 0
    for _ in range(runs):
        start = time.process_time()
        answer = decide()
        times.append((time.process_time() - start) * 1000)
    return statistics.median(times), max(times), answer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=5)
    runs = options.parse_args().runs
    tree, running = world()
    print(f"{len(tree.shares):,} shares, {PODS:,} pods, {runs} runs")
    print(f"{'decision':46} {'asked':>7} {'victims':>8} {'median ms':>10} {'largest ms':>11}")
    kinds = (
        ("classical, reclaim from any", EVERYBODY, None, 2),
        ("classical, reclaim from lower priority", LOWER_ONLY, None, 2),
        ("classical, reclaim, nobody is lower", LOWER_ONLY, None, 0),
        ("classical, within the share only", WITHIN_ONLY, None, 2),
        ("fair sharing, reclaim from any", EVERYBODY, dominant_share, 2),
        ("fair sharing, nobody is lower", LOWER_ONLY, dominant_share, 0),
    )
    for title, preemption, reckon, priority in kinds:
        reclaim = Reclaiming(a_ledger(tree, {CLAIMING: preemption}), running, reckon)
        for claim in claims(priority):
            median, largest, victims = timed(lambda c=claim, r=reclaim: len(r.victims(c)), runs)  # type: ignore[misc]
            note = "" if median <= LIMIT else f"  over {LIMIT:.0f} ms"
            print(f"{title:46} {claim.request['cpu'] // 1000:7,} {victims:8,} {median:10.2f} {largest:11.2f}{note}")
    order = FairOrder(tree)
    for name in {unit.share for unit in running}:
        order.offer(Head(share=name, uid=name, request={"cpu": 1000, "memory": 1}))
    measure_changes(runs)
    median, largest, _ = timed(lambda: first_and_next(order), 1000)
    print(f"{'next share in fair order, after a change':46} {'':7} {'':8} {median:10.3f} {largest:11.2f}")


def adapted(adapter: Callable[[ObjectStore], Adapter], objects: Mapping[str, Sequence[Any]], labels: Any) -> Any:
    """Return shares with objects, by resource, and a running pod in each of `TENANTS` namespaces."""
    store = ObjectStore()
    store.watch([*objects, NAMESPACE])
    for resource, found in objects.items():
        for each in found:
            store.set(resource, each)
    shares, pods = AdaptedShares(Nominator(EventStream())), [a_pod_of(number, labels) for number in range(TENANTS)]
    shares.use([Ledger(adapter(store))], lambda: [pod.bound_to("node") for pod in pods])
    assert shares.refusal(pods[0]) is None
    return store, shares, pods


def a_pod_of(selector: int, labels: Any) -> Pod:
    return a_pod(f"pod-{selector}", namespace=f"team-{selector}", requests={"cpu": "1", "memory": "1Gi"}, labels=labels)


def a_quota(selector: int, cores: int) -> Any:
    metadata = {"name": "quota", "namespace": f"team-{selector}", "uid": f"quota-{selector}"}
    amounts = {"cpu": str(cores), "memory": "100Gi"}
    return convert({"metadata": metadata, "spec": {"min": amounts, "max": amounts}}, ElasticQuota)


def a_cluster_queue(selector: int, cores: int) -> Any:
    resources = [{"name": "cpu", "nominalQuota": str(cores)}, {"name": "memory", "nominalQuota": "100Gi"}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "default", "resources": resources}]}
    spec = {"cohortName": f"cohort-{selector % 100}", "namespaceSelector": {}, "resourceGroups": [group]}
    name = f"queue-{selector}"
    return convert({"metadata": {"name": name, "uid": name}, "spec": spec}, kueue.ClusterQueue)


def local_queues() -> Iterator[Any]:
    for selector in range(TENANTS):
        metadata = {"name": "q", "namespace": f"team-{selector}", "uid": f"local-{selector}"}
        yield convert({"metadata": metadata, "spec": {"clusterQueue": f"queue-{selector}"}}, kueue.LocalQueue)


def measure_changes(runs: int) -> None:
    flavor = convert({"metadata": {"name": "default", "uid": "default"}}, kueue.ResourceFlavor)
    queues = [a_cluster_queue(selector, 10) for selector in range(TENANTS)]
    of_kueue = {
        RESOURCE_FLAVOR: [flavor],
        CLUSTER_QUEUE: queues,
        COHORT: [],
        LOCAL_QUEUE: [*local_queues()],
    }
    quotas = {ELASTIC_QUOTA: [a_quota(selector, 10) for selector in range(TENANTS)], ELASTIC_QUOTA_SIGS: []}
    for title, adapter, objects, resource, changed, labels in (
        ("an ElasticQuota", ElasticQuotas, quotas, ELASTIC_QUOTA, a_quota, {}),
        ("a ClusterQueue", of_queues, of_kueue, CLUSTER_QUEUE, a_cluster_queue, {kueue.QUEUE_LABEL: "q"}),
    ):
        store, shares, pods = adapted(adapter, objects, labels)
        kinds = (("amounts of", lambda n, of=changed: of(7, 10 + n)), ("another", lambda n, of=changed: of(-1 - n, 10)))
        for what, version in kinds:
            numbers = itertools.count(1)

            def change_and_decide(of: Any = version, numbers: Any = numbers) -> int:
                store.set(resource, of(next(numbers)))  # noqa: B023
                return int(shares.refusal(pods[0]) is None)  # noqa: B023

            median, largest, _ = timed(change_and_decide, runs)
            print(f"{f'next decision after {what} {title}':46} {'':7} {'':8} {median:10.2f} {largest:11.2f}")


def of_queues(objects: ObjectStore) -> KueueQueues:
    return KueueQueues(objects, lambda _: {})


def first_and_next(order: FairOrder) -> int:
    head = order.first()
    if head is None:
        return 0
    order.withdraw(head.share)
    order.offer(head)
    return 1


if __name__ == "__main__":
    main()
