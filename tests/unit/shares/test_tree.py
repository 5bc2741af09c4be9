from hypothesis import given
from hypothesis import strategies as st

from scheduler.shares.tree import Lack, Share, ShareTree


def tree(*shares: Share) -> ShareTree:
    return ShareTree([Share(name="root"), *shares])


def test_a_share_borrows_what_its_sibling_leaves_idle() -> None:
    shares = tree(
        Share(name="a", parent="root", minimum={"cpu": 4}), Share(name="b", parent="root", minimum={"cpu": 6})
    )

    shares.add("b", {"cpu": 2})

    assert shares.available("a", "cpu") == 8
    assert shares.potential("a", "cpu") == 10
    assert shares.fits("a", {"cpu": 8})
    assert not shares.fits("a", {"cpu": 9})


def test_what_a_share_does_not_lend_stays_with_it() -> None:
    shares = tree(
        Share(name="a", parent="root", minimum={"cpu": 4}),
        Share(name="b", parent="root", minimum={"cpu": 6}, lending_limit={"cpu": 1}),
    )

    shares.add("b", {"cpu": 5})

    assert shares.usage("root", "cpu") == 0
    assert (shares.available("a", "cpu"), shares.available("b", "cpu")) == (5, 5)


def test_a_refusal_names_the_ancestor_that_lacks_something_and_who_borrows_it() -> None:
    shares = tree(
        Share(name="a", parent="root", minimum={"cpu": 4}, maximum={"cpu": 5}),
        Share(name="b", parent="root", minimum={"cpu": 6}),
    )

    shares.add("b", {"cpu": 9})

    assert shares.lacks("a", {"cpu": 6}) == [
        Lack("a", "cpu", 1, is_limit=True),
        Lack("root", "cpu", 5, is_limit=False),
    ]
    assert shares.borrowers("root", "cpu") == {"b": 3}


def test_usage_that_is_taken_away_leaves_nothing_behind() -> None:
    shares = tree(Share(name="a", parent="root", minimum={"cpu": 4}, lending_limit={"cpu": 1}))

    shares.add("a", {"cpu": 7})
    shares.remove("a", {"cpu": 7})

    assert (shares.usage("a", "cpu"), shares.usage("root", "cpu")) == (0, 0)


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
