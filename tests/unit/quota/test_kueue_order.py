"""Kueue's tables of which workload goes first: by borrowing, priority and age, and by what was used lately."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from scheduler.quota.apis.declared import DeclaredShares
from scheduler.quota.decay import DecayedUsage
from scheduler.quota.ledger import Ledger
from scheduler.quota.order import FairOrder, Head
from scheduler.quota.share_orders import ByDecayedUsage, Candidate, ShareOrder
from scheduler.quota.share_refs import ShareRef
from scheduler.quota.tree import Share, ShareTree
from scheduler.state.objects import ObjectStore
from tests.fakes import FakeClock
from tests.unit.quota.tables import of_cases, table

HALF_LIFE = 10.0
INTERVAL = 300.0


ORDER, USAGE = table("kueue_order"), table("kueue_usage")


@of_cases(ORDER["orders"])
def test_entries_are_in_the_order_of_kueue(case: dict[str, Any]) -> None:
    entries = ORDER["entries"][case["entries"]]
    # One that borrows 0, 1 or 2 levels up: of what itself, its parent or the root is guaranteed.
    parents = [
        Share(name="root", minimum={"cpu": 9}),
        Share(name="near", parent="root", minimum={"cpu": 9}),
        Share(name="far", parent="root"),
    ]
    shares = [
        Share(
            name=name, parent="far" if each["borrows"] == 2 else "near", minimum={} if each["borrows"] else {"cpu": 1}
        )
        for name, each in entries.items()
    ]
    ledger = a_ledger(*parents, *shares)
    heads = [
        Head(
            share=name,
            uid=f"{number:02}",
            request={"cpu": 1},
            priority=each["priority"],
            queued_at=each.get(case["by"], each["created"]),
        )
        for number, (name, each) in enumerate(entries.items())
    ]

    assert [each.share for each in taken(ShareOrder(), ledger, *heads)] == case["order"]


@of_cases(ORDER["pairs"])
def test_of_two_shares_that_goes_first_in_the_fair_order_which_does_so_in_kueue(case: list[Any]) -> None:
    shares = [Share(name=name, parent="root", minimum={"cpu": each["minimum"]}) for name, each in case]
    order = FairOrder(ShareTree([Share(name="root", minimum={"cpu": 9}), *shares]))
    for name, each in reversed(case):
        order.offer(Head(share=name, uid=name, request={"cpu": 1}, queued_at=each["queued"]))

    first = order.first()

    assert first is not None
    assert first.share == case[0][0]


@of_cases(USAGE["firsts"])
def test_the_workload_goes_first_whose_queue_has_used_least(case: dict[str, Any]) -> None:
    shares = [Share(name=name, parent="cq", weight=each["weight"]) for name, each in case["queues"].items()]
    ledger = a_ledger(Share(name="cq", minimum={"cpu": 9000, "gpu": 9}), *shares)
    usages = {name: each["usage"] for name, each in case["queues"].items()}
    order = an_order(case, ledger, usages)
    heads = [
        Head(share=queue, uid=name, request={"cpu": 1000}, priority=priority)
        for name, (queue, priority) in case["workloads"].items()
    ]

    assert next(taken(order, ledger, *heads)).uid == case["first"]


@of_cases(USAGE["schedules"])
def test_the_workloads_start_that_start_in_kueue(case: dict[str, Any]) -> None:
    queues = sorted({queue for queue, _, _ in case["workloads"].values()})
    ledger = a_ledger(Share(name="cq", minimum={"cpu": 8000}), *(Share(name=name, parent="cq") for name in queues))
    order = an_order(case, ledger, {name: {"cpu": cores} for name, cores in case["usage"].items()})
    waiting = {
        name: Head(share=queue, uid=name, request={"cpu": cores * 1000}, queued_at=queued)
        for name, (queue, cores, queued) in case["workloads"].items()
    }

    admitted = []
    while waiting:
        firsts = {head.share: head for head in sorted(waiting.values(), key=lambda each: each.by_age, reverse=True)}
        head = next(taken(order, ledger, *firsts.values()))
        del waiting[head.uid]
        if ledger.tree.fits(head.share, head.request):
            ledger.tree.add(head.share, head.request)
            order.used(ShareRef(ledger, head.share, None))
            admitted.append(head.uid)

    assert sorted(admitted) == case["admitted"]


@of_cases(USAGE["decays"])
def test_usage_decays_as_in_kueue_or_as_the_case_says(case: dict[str, Any]) -> None:
    usage = DecayedUsage(case["half_life"], INTERVAL, {})
    if "before" in case:
        usage.run("lq", case["before"], -1000 * case["half_life"])
        usage.run("lq", case["runs"], -INTERVAL)
    usage.run("lq", case["runs"], 0)

    assert usage.usage("lq", 0) == pytest.approx(case.get("here", case["now"]), abs=0.002)  # Kueue rounds down


def a_ledger(*shares: Share) -> Ledger:
    ledger = Ledger(DeclaredShares((), ObjectStore()))
    ledger.tree = ShareTree(shares)
    return ledger


def an_order(case: Mapping[str, Any], ledger: Ledger, usages: Mapping[str, Mapping[str, int]]) -> ShareOrder:
    """The order that a case is about, where so much was used lately of each share."""
    if case.get("order") == "Priority":
        return ShareOrder()
    clock = FakeClock()
    order = ByDecayedUsage(HALF_LIFE, case.get("weights", {}), clock)
    amounts = {
        name: {each: amount * 1000 if each == "cpu" else amount for each, amount in used.items()}
        for name, used in usages.items()
    }
    for change in (ledger.tree.add, ledger.tree.remove):
        for name, used in amounts.items():
            change(name, used)
            order.used(ShareRef(ledger, name, None))
        clock.advance(1000 * HALF_LIFE if change == ledger.tree.add else 0)
    return order


def taken(order: ShareOrder, ledger: Ledger, *heads: Head) -> Iterator[Head]:
    """Yield heads in an order."""
    offered = order.heads(lambda _: True)
    for each in heads:
        offered.offer(Candidate(each.uid, ledger, each, each.by_age))
    while (candidate := offered.take()) is not None:
        yield candidate.head
