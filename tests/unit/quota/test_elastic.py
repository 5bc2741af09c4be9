"""The rule of scheduler-plugins' CapacityScheduling for victims."""

from collections.abc import Sequence

import pytest

from scheduler.quota.apis.elastic_quotas import ElasticQuotas
from scheduler.quota.policies import Policy
from scheduler.quota.reclaim.elastic import elastic_candidates, elastic_victims, giving_shares
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit
from scheduler.quota.reservations import Rank
from scheduler.quota.tree import Share, ShareTree
from scheduler.state.objects import ObjectStore
from tests.unit.quota.reclaiming import NoBudgets


def quotas(*units: QuotaUnit) -> ShareTree:
    """Three quotas of 4 cpus of at most 8, under a root that has what they have together."""
    tree = ShareTree(
        [
            Share(name="*"),
            *(Share(name=name, parent="*", minimum={"cpu": 4}, maximum={"cpu": 8}) for name in ("a", "b", "c")),
        ]
    )
    for unit in units:
        if unit.share in tree.shares:
            tree.add(unit.share, unit.usage)
    return tree


def unit(uid: str, share: str, cpus: int, priority: int = 0, started: int = 0) -> QuotaUnit:
    return QuotaUnit(uid=uid, share=share, usage={"cpu": cpus}, priority=priority, started=started)


def uids(units: Sequence[QuotaUnit]) -> list[str]:
    return [each.uid for each in units]


def test_a_preemptor_within_its_minimum_takes_back_from_quotas_over_theirs_whatever_their_priority() -> None:
    units = [unit("b-old", "b", 4, 1000), unit("b-new", "b", 4, 1000, started=9), unit("c", "c", 4, -5)]
    tree, preemptor = quotas(*units), Preemptor(share="a", request={"cpu": 4})

    found = elastic_candidates(tree, preemptor, units, NoBudgets)

    assert uids(found) == ["b-new"]
    assert elastic_victims(tree, preemptor, found) == [units[1]]
    assert [tree.usage(name, "cpu") for name in ("*", "a", "b", "c")] == [12, 0, 8, 4]


def test_what_is_reserved_in_the_same_quota_counts_as_used_by_it_but_no_pod_gives_it_back() -> None:
    units = [unit("a", "a", 2, -1), unit("b", "b", 8)]
    tree, preemptor = quotas(*units), Preemptor(share="a", request={"cpu": 2})
    tree.reserve("a", {"cpu": 1})
    tree.reserve("c", {"cpu": 9})

    assert uids(elastic_candidates(tree, preemptor, units, NoBudgets)) == ["a"]
    assert giving_shares(tree, Preemptor(share="a", request={"cpu": 1})) == {"b": Policy.ANY}


def test_pods_without_quota_and_pods_with_one_leave_each_other_alone() -> None:
    units = [unit("b", "b", 8, -9), unit("free-low", "", 1, -1), unit("free-high", "", 1, 1)]
    tree = quotas(*units)

    assert uids(elastic_candidates(tree, Preemptor(share="", request={"cpu": 1}), units, NoBudgets)) == ["free-low"]
    assert uids(elastic_candidates(tree, Preemptor(share="a", request={"cpu": 1}), units, NoBudgets)) == ["b"]


def test_a_pod_without_quota_is_held_up_by_nodes_only() -> None:
    units = [unit("x", "", 1, -2), unit("y", "elsewhere", 1, -1)]
    preemptor = Preemptor(share="", request={"cpu": 1})

    victims = elastic_victims(quotas(), preemptor, units, fits=lambda gone: "y" in uids(gone))

    assert victims == [units[1]]


@pytest.mark.parametrize(("request_", "reserved"), [(9, 0), (4, 9)], ids=["its maximum", "all minimums"])
def test_nobody_goes_if_quota_does_not_suffice_even_so(request_: int, reserved: int) -> None:
    units = [unit("b", "b", 8)]
    tree = quotas(*units)
    tree.reserve("c", {"cpu": reserved})

    assert elastic_victims(tree, Preemptor(share="a", request={"cpu": request_}), units) == []


def test_the_largest_go_first_where_small_ones_have_given_all_that_their_quota_borrows() -> None:
    units = [unit("b-large", "b", 4), unit("b-small", "b", 1, started=9)]
    tree, preemptor = quotas(*units), Preemptor(share="a", request={"cpu": 4})

    newest = elastic_candidates(tree, preemptor, units, NoBudgets)
    largest = elastic_candidates(tree, preemptor, units, NoBudgets, largest_first=True)

    assert (uids(newest), uids(largest)) == (["b-small"], ["b-large"])


@pytest.mark.parametrize(("borrows", "goes_ahead"), [(True, True), (False, False)])
def test_where_shares_decide_what_another_quota_borrows_goes_ahead_of_those_that_borrow_only(
    borrows: bool, goes_ahead: bool
) -> None:
    tree = quotas(unit("b", "b", 5))
    reserved, request = Rank("b", 0, borrows=True, by_share=True), Rank("a", 0, borrows=borrows)

    assert ElasticQuotas(ObjectStore()).goes_ahead(tree, reserved, request) is goes_ahead
