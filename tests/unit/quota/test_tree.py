import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api.quota.quota_amounts import MAX
from scheduler.framework.shares import ShareLack
from scheduler.quota.tree import Share, ShareTree


def tree(*shares: Share) -> ShareTree:
    return ShareTree([Share(name="root"), *shares])


def test_a_maximum_includes_what_those_below_keep_for_themselves() -> None:
    shares = tree(
        Share(name="company", minimum={"gpu": 64}),
        Share(name="research", parent="company", maximum={"gpu": 32}),
        Share(name="vision", parent="research", minimum={"gpu": 16}, lending_limit={"gpu": 8}),
        Share(name="audio", parent="research"),
    )

    assert (shares.potential("vision", "gpu"), shares.potential("audio", "gpu")) == (32, 24)
    assert (shares.available("vision", "gpu"), shares.available("audio", "gpu")) == (32, 24)
    shares.add("audio", {"gpu": 24})
    assert shares.fits("vision", {"gpu": 8})
    assert not shares.fits("vision", {"gpu": 9})
    assert shares.lacks("vision", {"gpu": 9}) == (ShareLack("research", "gpu", 1, is_limit=True),)


def problems(*shares: Share) -> dict[str, str]:
    return ShareTree([Share(name="root", minimum={"cpu": 20}), *shares]).problems


def test_a_minimum_above_the_maximum_of_an_ancestor_is_a_problem_of_that_share_alone() -> None:
    assert problems(
        Share(name="team", parent="root", maximum={"cpu": 4, "gpu": 1}),
        Share(name="inner", parent="team"),
        Share(name="a", parent="inner", minimum={"cpu": 5}),
        Share(name="b", parent="inner", minimum={"cpu": 4}),
        Share(name="a1", parent="a"),
    ) == {
        "a": 'its minimum of cpu, 5, is above the maximum of "team", 4',
        "a1": 'its ancestor "a" cannot be used',
    }


def test_shares_that_keep_more_than_the_maximum_above_them_are_a_problem_of_that_one() -> None:
    assert problems(
        Share(name="team", parent="root", maximum={"cpu": 4}),
        Share(name="a", parent="team", minimum={"cpu": 3}, lending_limit={"cpu": 0}),
        Share(name="b", parent="team", minimum={"cpu": 3}, lending_limit={"cpu": 1}),
        Share(name="other", parent="root", minimum={"cpu": 4}, maximum={"cpu": 4}),
    ) == {
        "team": "the shares below it keep 5 of cpu for themselves, more than its maximum, 4",
        "a": 'its ancestor "team" cannot be used',
        "b": 'its ancestor "team" cannot be used',
    }


def test_a_deep_tree_with_many_shares_takes_no_time() -> None:
    deep = [Share(name=f"d{n}", parent=f"d{n - 1}" if n else "", maximum={"cpu": 9}) for n in range(5_000)]
    circle = [Share(name=f"c{n}", parent=f"c{(n + 1) % 5_000}") for n in range(5_000)]

    shares = ShareTree([*deep, *circle, Share(name="leaf", parent="d4999", minimum={"cpu": 1})])

    assert shares.fits("leaf", {"cpu": 1})
    assert len(shares.problems) == 5_000


@given(
    st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=8),
    st.data(),
)
def test_no_maximum_is_ever_exceeded_and_what_is_kept_is_there(
    declared: list[tuple[int, int | None, int | None]], data: st.DataObject
) -> None:
    shares = [Share(name="s0", minimum={"cpu": 9}, maximum={"cpu": 20})]
    for number, (minimum, maximum, lent) in enumerate(declared, 1):
        shares.append(
            Share(
                name=f"s{number}",
                parent=f"s{data.draw(st.integers(0, number - 1))}",
                minimum={"cpu": minimum},
                maximum={} if maximum is None else {"cpu": maximum},
                lending_limit={} if lent is None else {"cpu": lent},
            )
        )
    made = ShareTree(shares)
    leaves = [name for name in made.shares if not made.children[name]]
    used = dict.fromkeys(made.shares, 0)
    for name in data.draw(st.lists(st.sampled_from(leaves or [""]), max_size=30)):
        if name and made.fits(name, {"cpu": 1}):
            made.add(name, {"cpu": 1})
            while name:
                used[name] += 1
                name = made.shares[name].parent

    for name, share in made.shares.items():
        assert used[name] <= share.maximum.get("cpu", MAX)
    for name in leaves:
        keeps = made.local(name, "cpu")
        assert used[name] >= keeps or made.fits(name, {"cpu": keeps - used[name]})


def test_a_refusal_names_the_ancestor_that_lacks_something_and_who_borrows_it() -> None:
    shares = tree(
        Share(name="a", parent="root", minimum={"cpu": 4}, maximum={"cpu": 5}),
        Share(name="b", parent="root", minimum={"cpu": 6}),
    )

    shares.add("b", {"cpu": 9})

    assert shares.lacks("a", {"cpu": 6}) == (
        ShareLack("a", "cpu", 1, is_limit=True),
        ShareLack("root", "cpu", 5, is_limit=False, borrowers={"b": 3}),
    )


def test_no_share_above_holds_what_is_only_reserved() -> None:
    shares = tree(
        Share(name="team", parent="root", minimum={"cpu": 4}),
        Share(name="a", parent="team"),
        Share(name="b", parent="team", minimum={"cpu": 1}, lending_limit={"cpu": 0}),
    )

    shares.reserve("b", {"cpu": 2})
    shares.add("b", {"cpu": 1})
    shares.add("a", {"cpu": 4})

    assert shares.uses_more("team", ["cpu"])
    assert not shares.holds_more("team", ["cpu"])


amounts = st.dictionaries(st.sampled_from(("cpu", "gpu")), st.integers(0, 9) | st.just(MAX), min_size=2)
limits: st.SearchStrategy[dict[str, int]] = st.just({}) | amounts
versions = st.builds(
    Share,
    name=st.sampled_from("abcd"),
    minimum=amounts,
    borrowing_limit=limits,
    lending_limit=limits,
    weight=st.just(1.0) | st.just(2.0),
)


uses = st.lists(st.tuples(st.sampled_from("abcd"), amounts), max_size=6)


@given(st.lists(versions, max_size=12), uses, uses)
def test_a_tree_whose_amounts_have_changed_is_as_one_that_is_made_of_the_new_ones(
    changes: list[Share], used: list[tuple[str, dict[str, int]]], reserved: list[tuple[str, dict[str, int]]]
) -> None:
    parents = {"a": "", "b": "a", "c": "b", "d": "a"}
    shares = {name: Share(name=name, parent=parents[name], minimum={"cpu": 1, "gpu": 1}) for name in "abcd"}
    changed = ShareTree(list(shares.values()))
    for name, requests in reserved:
        changed.reserve(name, requests)
    for name, requests in used:
        changed.add(name, requests)

    for each in changes:
        shares[each.name] = msgspec.structs.replace(each, parent=parents[each.name])
        assert changed.put(shares[each.name])
    made, without = ShareTree(list(shares.values())), ShareTree(list(shares.values()))
    for name, requests in used:
        made.add(name, requests)
        without.add(name, requests)
    for name, requests in reserved:
        made.reserve(name, requests)

    assert changed.shares == made.shares
    for name in "abcd":
        for resource in ("cpu", "gpu"):
            for ask in (made.usage, made.quota, made.local, made.available, made.potential):
                assert getattr(changed, ask.__name__)(name, resource) == ask(name, resource)
            assert changed.held(name, resource) == without.usage(name, resource)
            assert changed.held_by_own_pods(name, resource) == without.used_by_own_pods(name, resource)


@pytest.mark.parametrize(
    "other",
    [
        Share(name="new", parent="root", minimum={"cpu": 1}),
        Share(name="a", parent="b", minimum={"cpu": 1}),
        Share(name="a", parent="root", minimum={"gpu": 1}),
        Share(name="a", parent="root", minimum={"cpu": -1}),
    ],
    ids=["another", "another parent", "another resource", "a problem"],
)
def test_a_tree_takes_over_nothing_but_amounts(other: Share) -> None:
    shares = tree(Share(name="a", parent="root", minimum={"cpu": 1}), Share(name="b", parent="root"))
    before = dict(shares.shares)

    assert not shares.put(other)
    assert shares.shares == before


def test_what_is_wrong_with_shares_is_said_of_all_of_them_and_harms_no_other() -> None:
    shares = tree(
        Share(name="x", parent="y"),
        Share(name="y", parent="x"),
        Share(name="below", parent="x"),
        Share(name="lost", parent="nobody"),
        Share(name="above", minimum={"cpu": 2}, maximum={"cpu": 1}),
        Share(name="twice"),
        Share(name="twice"),
        Share(name="absurd", minimum={"cpu": 2**63}),
        Share(name="sound", parent="root", minimum={"cpu": 1}),
    )

    assert shares.problems == {
        "x": "its parents form a cycle: x → y → x",
        "y": "its parents form a cycle: x → y → x",
        "below": 'its ancestor "x" cannot be used',
        "lost": 'its parent "nobody" does not exist',
        "above": "its minimum of cpu, 2, is above its maximum, 1",
        "twice": 'there are several shares with the name "twice"',
        "absurd": f"its minimum of cpu is {2**63}: must be from 0 to {2**63 - 1}",
    }
    assert shares.available("sound", "cpu") == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=30), st.data())
def test_checked_admissions_keep_the_quota_and_usage_equals_a_recomputation(
    wishes: list[tuple[str, int]], data: st.DataObject
) -> None:
    declared = (
        Share(name="team", parent="root", minimum={"cpu": 2}),
        Share(name="a", parent="team", minimum={"cpu": 4}, lending_limit={"cpu": 1}),
        Share(name="b", parent="team", minimum={"cpu": 3}, maximum={"cpu": 5}),
        Share(name="c", parent="root", minimum={"cpu": 5}, borrowing_limit={"cpu": 2}, lending_limit={"cpu": 3}),
    )
    shares, admitted = tree(*declared), []

    for name, amount in wishes:
        fits = shares.fits(name, {"cpu": amount})
        assert fits == (amount <= shares.available(name, "cpu")) == (not shares.lacks(name, {"cpu": amount}))
        if fits:
            shares.add(name, {"cpu": amount})
            admitted.append((name, amount))
        elif admitted:
            gone = admitted.pop(data.draw(st.integers(0, len(admitted) - 1)))
            shares.remove(gone[0], {"cpu": gone[1]})

    fresh = tree(*declared)
    for name, amount in admitted:
        fresh.add(name, {"cpu": amount})
    names = list(shares.shares)
    assert [shares.usage(each, "cpu") for each in names] == [fresh.usage(each, "cpu") for each in names]
    assert sum(amount for _, amount in admitted) <= 14
    assert shares.usage("b", "cpu") <= 5
    assert shares.usage("c", "cpu") <= 7


def test_only_those_are_borrowers_that_use_what_others_are_guaranteed() -> None:
    shares = tree(
        Share(name="rich", parent="root", minimum={"cpu": 8}),
        Share(name="a", parent="rich"),
        Share(name="b", parent="root", minimum={"cpu": 2}),
        Share(name="alone", minimum={"cpu": 1}),
    )
    shares.add("a", {"cpu": 9})
    shares.add("alone", {"cpu": 3})

    assert shares.borrowers("root", "cpu") == {"a": 1}
    assert shares.borrowers("alone", "cpu") == {}
    shares.remove("a", {"cpu": 1})
    assert shares.borrowers("root", "cpu") == {}
