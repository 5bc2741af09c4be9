import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.quota.apis.declared import DeclaredShares
from scheduler.quota.decay import MAX_GONE, MAX_RESOURCES, DecayedUsage
from scheduler.quota.ledger import Ledger
from scheduler.quota.order import FairOrder, Head
from scheduler.quota.share_orders import Candidate, ShareOrder
from scheduler.quota.tree import Share, ShareTree
from scheduler.state.objects import ObjectStore

ONE = {"gpu": 1}


def tree(*shares: Share, capacity: int = 0) -> ShareTree:
    return ShareTree([Share(name="root", minimum={"gpu": capacity}), *shares])


def head(share: str, gpus: int = 1, priority: int = 0, queued_at: float = 0.0) -> Head:
    return Head(share=share, uid=f"{share}-pod", request={"gpu": gpus}, priority=priority, queued_at=queued_at)


def order(shares: ShareTree, *heads: Head) -> list[str]:
    """Return the shares of heads in fair order, without admitting any."""
    fair = FairOrder(shares)
    for each in heads:
        fair.offer(each)
    found = []
    while first := fair.first():
        found.append(first.share)
        fair.withdraw(first.share)
    return found


def a_ledger(shares: ShareTree) -> Ledger:
    ledger = Ledger(DeclaredShares((), ObjectStore()))
    ledger.tree = shares
    return ledger


def first_of(order: ShareOrder, ledger: Ledger, *heads: Head) -> str:
    """Return the share of the head that goes first."""
    offered = order.heads(lambda _: True)
    for each in heads:
        offered.offer(Candidate(each.share, ledger, each, each.by_age))
    first = offered.take()
    assert first is not None
    return first.head.share


def test_a_share_below_its_guarantee_goes_first_whatever_its_priority() -> None:
    shares = tree(
        Share(name="a", parent="root", minimum={"gpu": 4}), Share(name="b", parent="root", minimum={"gpu": 4})
    )
    shares.add("b", {"gpu": 4})

    assert order(shares, head("b", priority=1000), head("a", queued_at=9)) == ["a", "b"]
    assert first_of(ShareOrder(), a_ledger(shares), head("b", priority=1000), head("a", queued_at=9)) == "a"


def test_pods_that_wait_for_more_important_ones_of_their_share_cost_at_most_one_question_each() -> None:
    ledger, asked = a_ledger(tree(Share(name="a", parent="root", minimum={"gpu": 1}))), []
    offered = ShareOrder().heads(lambda candidate: not asked.append(candidate.kind))  # type: ignore[func-returns-value]
    for number in range(100):
        each = head("a", gpus=1 + number % 2, priority=number)
        offered.offer(Candidate(number, ledger, each, each.by_age))

    assert [candidate.kind for candidate in iter(offered.take, None) if candidate] == [*reversed(range(100))]
    assert len(asked) <= 100


def test_by_priority_a_pod_goes_first_that_borrows_of_its_nearest_relatives() -> None:
    shares = tree(
        Share(name="far", parent="root"),
        Share(name="near", parent="root", minimum={"gpu": 4}),
        Share(name="a", parent="far"),
        Share(name="b", parent="near"),
        capacity=4,
    )
    ledger = a_ledger(shares)

    assert first_of(ShareOrder(), ledger, head("a", priority=1000), head("b")) == "b"
    shares.add("near", {"gpu": 4})
    assert first_of(ShareOrder(), ledger, head("a", priority=1000), head("b")) == "a"


def test_of_those_that_borrow_the_least_dominant_share_goes_first_by_weight() -> None:
    shares = tree(Share(name="a", parent="root", weight=1), Share(name="b", parent="root", weight=3), capacity=12)
    shares.add("a", {"gpu": 1})
    shares.add("b", {"gpu": 3})

    assert order(shares, head("a"), head("b")) == ["b", "a"]


def test_equal_shares_go_by_priority_then_by_age() -> None:
    shares = tree(*(Share(name=name, parent="root") for name in "abc"), capacity=9)

    assert order(shares, head("a", queued_at=2), head("b", queued_at=1), head("c", priority=1, queued_at=3)) == list(
        "cba"
    )


def test_the_tournament_compares_whole_subtrees() -> None:
    shares = tree(
        Share(name="busy", parent="root"),
        Share(name="idle", parent="root"),
        Share(name="a", parent="busy"),
        Share(name="b", parent="busy"),
        Share(name="c", parent="idle"),
        capacity=20,
    )
    shares.add("b", {"gpu": 9})
    shares.add("c", {"gpu": 3})

    assert order(shares, head("a"), head("b"), head("c")) == ["c", "a", "b"]


def test_usage_that_changes_changes_the_order() -> None:
    shares = tree(Share(name="a", parent="root"), Share(name="b", parent="root"), capacity=9)
    fair = FairOrder(shares)
    fair.offer(head("a"))
    fair.offer(head("b", queued_at=1))

    winners = []
    for _ in range(4):
        first = fair.first()
        assert first is not None
        winners.append(first.share)
        shares.add(first.share, ONE)
        fair.offer(first)

    assert winners == ["a", "b", "a", "b"]


def test_the_pods_of_a_share_with_children_take_turns_with_these_whatever_its_own_guarantee() -> None:
    shares = tree(
        Share(name="team", parent="root", minimum={"gpu": 9}),
        Share(name="a", parent="team", weight=2),
        Share(name="b", parent="team", minimum={"gpu": 1}),
    )
    fair = FairOrder(shares)
    for number, name in enumerate(("team", "a", "b")):
        fair.offer(head(name, queued_at=number))

    winners = []
    while shares.fits("team", ONE) and (first := fair.first()):
        winners.append(first.share)
        shares.add(first.share, ONE)
        fair.offer(first)

    assert winners == [*"ba", "team", *"aba", "team", *"aba"]
    assert shares.used_by_own_pods("team", "gpu") == 2


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 3), st.booleans()), max_size=40))
def test_the_order_that_is_kept_is_the_one_of_a_new_tournament(changes: list[tuple[str, int, bool]]) -> None:
    shares = tree(
        Share(name="left", parent="root", minimum={"gpu": 3}),
        Share(name="a", parent="left", minimum={"gpu": 2}, lending_limit={"gpu": 1}),
        Share(name="b", parent="left", weight=0),
        Share(name="c", parent="root", minimum={"gpu": 4}),
        Share(name="d", parent="root", weight=2),
        capacity=8,
    )
    heads = {name: head(name, queued_at=number) for number, name in enumerate("abcd")}
    kept = FairOrder(shares)
    for each in heads.values():
        kept.offer(each)

    for share, gpus, comes in changes:
        if comes:
            heads[share] = head(share, gpus, priority=gpus)
        else:
            shares.add(share, {"gpu": gpus})
        kept.offer(heads[share])
        fresh = FairOrder(shares)
        for each in heads.values():
            fresh.offer(each)

        assert kept.first() == fresh.first()


def test_usage_halves_in_a_half_life() -> None:
    usage = DecayedUsage(half_life=100, interval=0, weights={})
    usage.run("a", {"gpu": 8}, now=0)

    assert usage.usage("a", now=100) == {"gpu": 4}
    usage.run("a", {}, now=100)
    assert usage.usage("a", now=200) == {"gpu": 2}
    assert usage.usage("a", now=150) == {"gpu": 2}


def test_a_placed_pod_is_charged_for_its_first_interval_at_once() -> None:
    usage = DecayedUsage(half_life=100, interval=100, weights={"gpu": 3.0})

    assert usage.key("a", weight=1, now=0, running={"gpu": 2, "cpu": 4}) == 3 * 1 + 2
    assert usage.key("a", weight=1, now=0) == 0
    usage.run("a", {"gpu": 2, "cpu": 4}, now=0)
    usage.run("a", {"gpu": 1}, now=0)

    assert usage.key("a", weight=1, now=0) == 3 * 1 + 2
    assert usage.key("a", weight=2, now=0) == 2.5
    assert usage.key("a", weight=0, now=0) == math.inf


def test_what_a_share_has_used_that_is_gone_fades_on_and_counts_when_it_comes_back() -> None:
    usage = DecayedUsage(half_life=100, interval=0, weights={})
    usage.run("a", {"gpu": 8}, now=0)

    usage.renew({}, now=100)
    usage.renew({"a": {}}, now=200)

    assert usage.key("a", weight=1, now=200) == 2


def test_of_shares_that_are_gone_nothing_is_kept_once_it_has_faded() -> None:
    usage = DecayedUsage(half_life=100, interval=100, weights={})
    usage.run("a", {"gpu": 8}, now=0)
    usage.renew({}, now=100)
    assert len(usage) == 1

    usage.renew({}, now=3000)

    assert len(usage) == 0


def test_of_many_shares_that_are_gone_those_are_known_that_used_most() -> None:
    usage = DecayedUsage(half_life=100, interval=100, weights={})
    usage.renew({"mine": {"gpu": 9}}, now=0)

    usage.renew({f"made-{number}": {"gpu": 8.0} for number in range(3 * MAX_GONE)}, now=0)
    usage.renew({"there": {"gpu": 1}}, now=0)

    assert len(usage) == MAX_GONE + 1
    assert usage.key("mine", weight=1, now=0) == 4.5


def test_of_many_names_of_resources_those_are_kept_that_weigh_most() -> None:
    usage = DecayedUsage(half_life=100, interval=100, weights={"gpu": 1000.0})
    usage.run("a", {"gpu": 1}, now=0)

    for number in range(3 * MAX_RESOURCES):
        usage.run("a", {f"example.com/r{number}": 1}, now=0)

    assert len(usage.usage("a", now=0)) == MAX_RESOURCES
    assert "gpu" in usage.usage("a", now=0)


def test_a_half_life_has_to_be_positive() -> None:
    with pytest.raises(ValueError, match="half-life is 0"):
        DecayedUsage(half_life=0, interval=1, weights={})


@given(st.lists(st.floats(0, 1000), max_size=10), st.integers(0, 1000))
def test_it_does_not_matter_how_often_usage_is_looked_at(looks: list[float], running: int) -> None:
    often, once = (DecayedUsage(half_life=70, interval=1, weights={}) for _ in range(2))
    for usage in (often, once):
        usage.run("a", {"gpu": running}, now=0)

    for now in sorted(looks):
        often.run("a", {"gpu": running}, now)

    assert often.key("a", 1, 1000) == pytest.approx(once.key("a", 1, 1000), rel=1e-9)
