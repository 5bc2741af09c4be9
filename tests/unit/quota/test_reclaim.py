from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.api.pods.pod import Pod
from scheduler.quota.dominant import dominant_share
from scheduler.quota.policies import Policy, Preemption
from scheduler.quota.reclaim.fair_targets import Reckon
from scheduler.quota.reclaim.minimal import Fits, minimal_victims
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit
from scheduler.quota.tree import Share, ShareTree
from tests.unit.quota.reclaiming import NoBudgets, Reclaiming, a_ledger, found_everywhere

ANY = Preemption(within_share=Policy.LOWER_PRIORITY, reclaim_within_cohort=Policy.ANY)
of_both_kinds = pytest.mark.parametrize("fair", [None, dominant_share], ids=["classical", "fair"])


def tree(*units: QuotaUnit) -> ShareTree:
    shares = ShareTree(
        [
            Share(name="root"),
            Share(name="a", parent="root", minimum={"gpu": 10}),
            Share(name="b", parent="root", minimum={"gpu": 10}),
            Share(name="c", parent="root", minimum={"gpu": 10}),
        ]
    )
    for unit in units:
        shares.add(unit.share, unit.usage)
    return shares


def units(share: str, count: int, gpus: int = 1) -> list[QuotaUnit]:
    return [
        QuotaUnit(uid=f"{share}{number:04}", share=share, usage={"gpu": gpus}, priority=number)
        for number in range(count)
    ]


class Allowing:
    """A budget that covers the units of `b` whose names have a number, and allows so many to go."""

    def __init__(self, allowed: int) -> None:
        self.left = allowed

    def allow(self, pods: Sequence[Pod]) -> bool:
        return self.left > 0 or not self._covers(pods)

    def use(self, pods: Sequence[Pod]) -> bool:
        self.left -= self._covers(pods)
        return bool(self._covers(pods)) and self.left < 0

    def _covers(self, pods: Sequence[Pod]) -> int:
        return sum(pod.name.startswith("b0") for pod in pods)


class Nodes:
    """Says that a preemptor finds its nodes if certain units are gone, and counts how often it is asked."""

    def __init__(self, *needed: str) -> None:
        self.needed = set(needed)
        self.asked = 0

    def __call__(self, gone: Collection[str]) -> bool:
        self.asked += 1
        return self.needed <= set(gone)


def uids(victims: Sequence[QuotaUnit]) -> list[str]:
    return [unit.uid for unit in victims]


def victims(
    runs: Sequence[QuotaUnit],
    gpus: int,
    fits: Callable[[Collection[str]], bool] = found_everywhere,
    *,
    shares: ShareTree | None = None,
    fair: Reckon | None = None,
    allowed: int | None = None,
) -> list[str]:
    """Return who goes for so many GPUs for the share `a`. `allowed`: how many a budget lets go."""
    ledger = a_ledger(tree(*runs) if shares is None else shares, {"a": ANY})
    budgets = NoBudgets if allowed is None else partial(Allowing, allowed)
    return uids(Reclaiming(ledger, runs, fair).victims(Preemptor(share="a", request={"gpu": gpus}), fits, budgets))


def test_nodes_are_asked_about_only_where_quota_suffices() -> None:
    nodes = Nodes()

    assert victims(units("b", 30), 8, nodes) == [f"b000{number}" for number in range(8)]
    assert nodes.asked == 1


def test_units_that_make_no_space_on_nodes_are_left_alone() -> None:
    assert victims(units("b", 20), 1, Nodes("b0007")) == ["b0007"]


def test_nobody_is_evicted_if_the_pod_finds_no_node_in_any_case() -> None:
    runs = units("b", 20)
    shares = tree(*runs)
    nodes = Nodes("somebody else")

    assert victims(runs, 1, nodes, shares=shares) == []

    assert shares.usage("b", "gpu") == 20
    assert nodes.asked <= 12


def test_a_thousand_candidates_cost_few_questions_about_nodes() -> None:
    runs = units("b", 2000)
    nodes = Nodes("b0700", "b0701", "b0950")
    shares = tree(*runs)
    preemptor = Preemptor(share="b", request={"gpu": 1}, priority=5000, contested=frozenset({"gpu"}))
    shares.remove("b", {"gpu": 1990})

    found = Reclaiming(a_ledger(shares, {"b": ANY}), runs).victims(preemptor, nodes)

    assert uids(found) == ["b0700", "b0701", "b0950"]
    assert nodes.asked < 60


def test_a_share_that_uses_what_it_is_guaranteed_loses_nothing() -> None:
    assert victims(units("b", 10) + units("c", 20), 10) == [f"c000{number}" for number in range(10)]


@of_both_kinds
def test_a_guarantee_is_cut_only_if_quota_does_not_suffice_otherwise(fair: Reckon | None) -> None:
    large = QuotaUnit(uid="large", share="b", usage={"gpu": 8}, priority=-1)
    runs = [large, *units("b", 6), *units("c", 16)]

    spared = victims(runs, 9, fair=fair)

    assert len(spared) == 9
    assert "large" not in spared
    assert victims(runs, 10, Nodes("large"), fair=fair) == []


@of_both_kinds
def test_a_guarantee_is_cut_for_a_preemptor_that_has_no_quota_otherwise(fair: Reckon | None) -> None:
    runs = [QuotaUnit(uid=f"b{number}", share="b", usage={"gpu": 7}) for number in range(2)]
    shares = tree(*runs)
    shares.add("c", {"gpu": 10})

    assert victims(runs, 10, shares=shares, fair=fair) == ["b0"]


def test_a_preemptor_that_borrows_cuts_no_guarantee() -> None:
    runs = [QuotaUnit(uid="large", share="b", usage={"gpu": 12}, priority=-1)]
    shares = tree(*runs)
    shares.add("a", {"gpu": 10})
    shares.add("c", {"gpu": 8})
    borrows = Preemption(reclaim_within_cohort=Policy.ANY, borrow_within_cohort=True)
    preemptor = Preemptor(share="a", request={"gpu": 1})

    assert Reclaiming(a_ledger(shares, {"a": borrows}), runs).victims(preemptor) == []
    assert Reclaiming(a_ledger(shares, {"a": borrows}), runs, dominant_share).victims(preemptor) == []


@of_both_kinds
def test_a_preemptor_that_borrows_one_resource_takes_back_none_of_another_for_it(fair: Reckon | None) -> None:
    runs = [
        QuotaUnit(uid="all", share="b", usage={"cpu": 2, "gpu": 2}, priority=-1),
        QuotaUnit(uid="gpus", share="b", usage={"gpu": 2}),
    ]
    shares = ShareTree(
        [
            Share(name="root"),
            Share(name="a", parent="root", minimum={"gpu": 4}),
            Share(name="b", parent="root", minimum={"cpu": 2}),
        ]
    )
    for unit in runs:
        shares.add(unit.share, unit.usage)
    takes_back = Preemption(reclaim_within_cohort=Policy.ANY, borrow_within_cohort=True)
    quotas = Reclaiming(a_ledger(shares, {"a": takes_back}), runs, fair)

    assert quotas.victims(Preemptor(share="a", request={"cpu": 1, "gpu": 2})) == []
    assert uids(quotas.victims(Preemptor(share="a", request={"gpu": 2}))) == ["all"]


def test_a_share_borrows_no_less_because_of_own_pods_that_stay_after_all() -> None:
    shares = ShareTree([Share(name="root", minimum={"gpu": 12}), *(Share(name=each, parent="root") for each in "ab")])
    less = QuotaUnit(uid="less", share="a", usage={"gpu": 1}, priority=-1)
    for share, gpus in {"a": 5, "b": 7}.items():
        shares.add(share, {"gpu": gpus})
    runs = [less, *units("b", 3, gpus=2)]

    assert victims(runs, 1, shares=shares, fair=dominant_share) == ["less"]
    assert victims(runs, 2, shares=shares, fair=dominant_share) == []


def test_a_group_goes_as_a_whole() -> None:
    runs = [QuotaUnit(uid="group", share="b", usage={"gpu": 12}), *units("b", 18)]

    assert victims(runs, 2, Nodes("group")) == ["group"]


def test_a_unit_that_breaks_a_budget_goes_last() -> None:
    runs = units("b", 10) + units("c", 20)
    runs += [QuotaUnit(uid=f"b-late-{number}", share="b", usage={"gpu": 1}, priority=100) for number in range(5)]
    shares = tree(*runs)
    shares.remove("c", {"gpu": 10})
    of_b = [unit for unit in runs if unit.share == "b"]

    assert victims(of_b, 8, shares=shares, allowed=9) == ["b0000", "b0001", "b0002"]
    assert victims(of_b, 8, shares=shares, allowed=2) == ["b0000", "b0001", "b-late-0"]
    assert sorted(victims(of_b, 8, shares=shares, allowed=0)) == ["b-late-0", "b-late-1", "b-late-2"]


@of_both_kinds
def test_a_budget_is_broken_if_nothing_else_helps(fair: Reckon | None) -> None:
    assert len(victims(units("b", 30), 3, fair=fair, allowed=1)) == 3


def test_a_budget_is_kept_where_fair_sharing_spares_another_unit_until_pods_of_the_own_share_go() -> None:
    shares = ShareTree([Share(name="root"), *(Share(name=each, parent="root", minimum={"gpu": 4}) for each in "abc")])
    for share, gpus in {"a": 4, "b": 6, "c": 2}.items():
        shares.add(share, {"gpu": gpus})
    own = [QuotaUnit(uid=f"b0-own-{number}", share="a", usage={"gpu": 1}, priority=-1) for number in range(3)]
    protected = QuotaUnit(uid="b0-newest", share="b", usage={"gpu": 1}, started=9)
    other = QuotaUnit(uid="other", share="b", usage={"gpu": 1})

    found = victims([*own, protected, other], 4, shares=shares, fair=dominant_share, allowed=0)

    assert sorted(found) == ["b0-own-0", "b0-own-1", "b0-own-2", "other"]


@of_both_kinds
def test_of_units_that_cut_a_guarantee_those_under_a_budget_go_last(fair: Reckon | None) -> None:
    runs = [
        QuotaUnit(uid=uid, share="b", usage={"gpu": 8}, started=at) for at, uid in enumerate(("other", "b0-newest"))
    ]
    shares = tree(*runs)
    shares.add("c", {"gpu": 14})

    assert victims(runs, 8, shares=shares, fair=fair, allowed=0) == ["other"]


def test_what_leaves_already_counts_as_gone() -> None:
    runs = units("b", 30)
    reclaiming = Reclaiming(a_ledger(tree(*runs), {"a": ANY}), runs)

    assert reclaiming.victims(Preemptor(share="a", request={"gpu": 1}), leaving=["b0029"]) == []
    assert uids(reclaiming.victims(Preemptor(share="a", request={"gpu": 2}), leaving=["b0029"])) == ["b0000"]


def test_a_preemptor_that_has_its_quota_but_no_node_takes_back_from_those_that_borrow() -> None:
    assert victims(units("b", 12), 2, Nodes("b0001")) == ["b0001"]


def test_a_fault_of_the_caller_leaves_the_tree_as_it_was() -> None:
    runs = units("b", 20)
    shares = tree(*runs)

    for fair in (None, dominant_share):
        for asked in range(4):
            answers = iter([False, False, True, True][:asked])

            def fails(_: Collection[str], answers: Iterator[bool] = answers) -> bool:
                for answer in answers:
                    return answer
                raise RuntimeError("no nodes")

            with pytest.raises(RuntimeError, match="no nodes"):
                victims(runs, 1, fails, shares=shares, fair=fair)

            assert [shares.usage(name, "gpu") for name in ("root", "a", "b")] == [20, 0, 20]


def test_a_share_that_says_nothing_evicts_nobody() -> None:
    runs = units("b", 30)

    assert Reclaiming(a_ledger(tree(*runs), {}), runs).victims(Preemptor(share="a", request={"gpu": 1})) == []


POLICIES = st.sampled_from(list(Policy))
WORLDS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(1, 4), st.integers(0, 3)),
    max_size=25,
)


@settings(max_examples=300, deadline=None)
@example(  # the preemptor is more than its share is guaranteed, and within what the team is
    world=[("a", 2, 0), ("c", 3, 0), ("c", 3, 0)],
    within=Policy.NEVER,
    reclaims=Policy.LOWER_PRIORITY,
    is_fair=True,
    may_borrow=False,
    asked=5,
    in_the_way=set(),
)
@example(  # the larger of two equal ones comes last, as it cuts its share's guarantee
    world=[("c", 1, 0), ("c", 1, 1), ("c", 4, 0), ("a", 4, 0)],
    within=Policy.NEVER,
    reclaims=Policy.LOWER_PRIORITY,
    is_fair=False,
    may_borrow=False,
    asked=4,
    in_the_way={0},
)
@given(
    world=WORLDS,
    within=POLICIES,
    reclaims=POLICIES,
    is_fair=st.booleans(),
    may_borrow=st.booleans(),
    asked=st.integers(1, 8),
    in_the_way=st.sets(st.integers(0, 24)),
)
def test_whatever_runs_the_victims_keep_what_is_promised(
    world: list[tuple[str, int, int]],
    within: Policy,
    reclaims: Policy,
    is_fair: bool,
    may_borrow: bool,
    asked: int,
    in_the_way: set[int],
) -> None:
    shares = ShareTree(
        [
            Share(name="root"),
            Share(name="team", parent="root", minimum={"gpu": 2}),
            Share(name="a", parent="team", minimum={"gpu": 4}, weight=2),
            Share(name="b", parent="team", minimum={"gpu": 3}, lending_limit={"gpu": 2}),
            Share(name="c", parent="root", minimum={"gpu": 4}, maximum={"gpu": 9}),
            Share(name="d", parent="root", weight=0),
        ]
    )
    runs = []
    for number, (share, gpus, priority) in enumerate(world):
        if shares.fits(share, {"gpu": gpus}):
            shares.add(share, {"gpu": gpus})
            unit = QuotaUnit(uid=f"u{number:02}", share=share, usage={"gpu": gpus}, priority=priority, started=number)
            runs.append(unit)
    preemption = Preemption(within_share=within, reclaim_within_cohort=reclaims, borrow_within_cohort=may_borrow)
    preemptor = Preemptor(share="a", request={"gpu": asked}, priority=1)
    needed = {unit.uid for number, unit in enumerate(runs) if number in in_the_way and number % 3 == 0}
    before = {name: shares.usage(name, "gpu") for name in shares.shares}
    used, quota = dict(before), {name: shares.quota(name, "gpu") for name in shares.shares}

    found = Reclaiming(a_ledger(shares, {"a": preemption}), runs, dominant_share if is_fair else None).victims(
        preemptor, lambda gone: needed <= set(gone)
    )

    assert {name: shares.usage(name, "gpu") for name in shares.shares} == before
    assert len(set(uids(found))) == len(found)
    if found:
        assert needed <= set(uids(found))
    for unit in sorted(found, key=lambda unit: unit.usage["gpu"]):  # a large one goes last if it cuts the guarantee
        assert unit.share == "a" or used[unit.share] > quota[unit.share]
        policy = within if unit.share == "a" else reclaims
        assert policy is Policy.ANY or (policy is not Policy.NEVER and unit.priority < preemptor.priority)
        shares.remove(unit.share, unit.usage)
        used = {name: shares.usage(name, "gpu") for name in shares.shares}
    if found:
        assert shares.fits("a", preemptor.request)
    for share in {unit.share for unit in found}:
        ours = ("a",) if share == "b" else ("a", "team")
        borrows = all(shares.usage(name, "gpu") + asked > quota[name] for name in ours)
        # Under fair sharing, units of the preemptor's own share may come back that others were cut for.
        is_settled = not is_fair or within is Policy.NEVER
        if borrows and is_settled and share != "a":
            assert used[share] >= quota[share]
    for unit in found:
        shares.add(unit.share, unit.usage)
        assert not (shares.fits("a", preemptor.request) and unit.uid not in needed) or keeps_from_borrowing(
            shares, preemptor
        )
        shares.remove(unit.share, unit.usage)


def keeps_from_borrowing(shares: ShareTree, preemptor: Preemptor) -> bool:
    """Say whether a preemptor would borrow: some victims go only so that it does not."""
    return shares.usage("a", "gpu") + preemptor.request["gpu"] > shares.quota("a", "gpu")


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from("bc"), st.integers(1, 3)), max_size=20), st.data())
def test_the_fewest_victims_are_those_of_one_candidate_at_a_time(
    world: list[tuple[str, int]], data: st.DataObject
) -> None:
    runs = [
        QuotaUnit(uid=f"u{number:02}", share=share, usage={"gpu": gpus}) for number, (share, gpus) in enumerate(world)
    ]
    asked = data.draw(st.integers(1, 40))
    needed = data.draw(st.sets(st.sampled_from([unit.uid for unit in runs] or ["none"]), max_size=4))

    def fits(gone: Sequence[QuotaUnit]) -> bool:
        return needed <= {unit.uid for unit in gone}

    shares, same = tree(*runs), tree(*runs)
    found = minimal_victims(
        shares,
        (unit for unit in runs),
        lambda: shares.fits("a", {"gpu": asked}),
        fits,
    )

    assert found == one_at_a_time(same, runs, asked, fits)


def one_at_a_time(shares: ShareTree, runs: Sequence[QuotaUnit], asked: int, fits: Fits) -> list[QuotaUnit]:
    """Do what Kueue does, plainly."""
    if shares.fits("a", {"gpu": asked}) and fits(()):
        return []
    gone: list[QuotaUnit] = []
    for unit in runs:
        shares.remove(unit.share, unit.usage)
        gone.append(unit)
        if shares.fits("a", {"gpu": asked}) and fits(gone):
            break
    else:
        return []
    for unit in list(reversed(gone))[1:]:
        shares.add(unit.share, unit.usage)
        rest = [each for each in gone if each is not unit]
        if shares.fits("a", {"gpu": asked}) and fits(rest):
            gone = rest
        else:
            shares.remove(unit.share, unit.usage)
    return gone
