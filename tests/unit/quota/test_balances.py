"""What each share is guaranteed, uses, borrows and lends: of a parent, all that is below it."""

from hypothesis import given
from hypothesis import strategies as st

from scheduler.quota.balances import Balance, balances, depth_first
from scheduler.quota.tree import Share, ShareTree


def of(tree: ShareTree, resource: str = "gpu") -> dict[str, Balance]:
    return balances(tree, resource)


def a_tree(**minimums: int) -> ShareTree:
    """One root, and leaves that are guaranteed so much."""
    leaves = [Share(name=name, parent="all", minimum={"gpu": minimum}) for name, minimum in minimums.items()]
    return ShareTree([Share(name="all"), *leaves])


def test_what_one_borrows_the_others_lend_in_proportion_to_what_they_leave_idle() -> None:
    tree = a_tree(a=4, b=8, c=4)
    tree.add("a", {"gpu": 7})

    found = of(tree)

    assert found["a"] == Balance(guaranteed=4, maximum=None, used=7, borrowed=3)
    assert (found["b"].lent, found["c"].lent) == (2, 1)
    assert found["all"] == Balance(guaranteed=16, maximum=None, used=7)


def test_a_single_borrowed_device_is_lent_by_somebody() -> None:
    tree = a_tree(a=0, b=1, c=1, d=1)
    tree.add("a", {"gpu": 1})

    assert sum(each.lent for each in of(tree).values()) == 1


def test_what_is_not_lent_counts_in_the_total_of_the_parent_and_is_lent_to_nobody() -> None:
    keeps = Share(name="keeps", parent="all", minimum={"gpu": 8}, lending_limit={"gpu": 2})
    tree = ShareTree([Share(name="all"), keeps, Share(name="a", parent="all", minimum={"gpu": 1})])
    tree.add("keeps", {"gpu": 3})
    tree.add("a", {"gpu": 3})

    found = of(tree)

    assert found["all"] == Balance(guaranteed=9, maximum=None, used=6)
    assert (found["keeps"].used, found["keeps"].lent, found["a"].borrowed) == (3, 2, 2)


def test_a_whole_department_lends_through_its_teams_and_by_itself() -> None:
    tree = ShareTree(
        [
            Share(name="all"),
            Share(name="lab", parent="all", minimum={"gpu": 2}),
            Share(name="lab-a", parent="lab", minimum={"gpu": 2}),
            Share(name="team", parent="all", maximum={"gpu": 6}),
        ]
    )
    tree.add("team", {"gpu": 4})

    found = of(tree)

    assert found["team"] == Balance(guaranteed=0, maximum=6, used=4, borrowed=4)
    assert (found["lab"].guaranteed, found["lab"].lent, found["lab-a"].lent) == (4, 4, 2)


def test_the_tree_is_read_from_the_top_each_share_followed_by_those_below() -> None:
    names = [("all", ""), ("b", "all"), ("a", "all"), ("a1", "a"), ("other", "")]
    tree = ShareTree([Share(name=name, parent=parent) for name, parent in names])

    assert list(depth_first(tree)) == [("all", 0), ("b", 1), ("a", 1), ("a1", 2), ("other", 0)]


leaf = st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9), st.integers(0, 12))
"""Minimum, lending limit, usage."""


@given(st.lists(st.lists(leaf, max_size=3), max_size=3), st.integers(0, 9))
def test_nobody_lends_more_than_is_idle(groups: list[list[tuple[int, int | None, int]]], own: int) -> None:
    shares, usage = [Share(name="all", minimum={"gpu": own})], {}
    for number, leaves in enumerate(groups):
        shares.append(Share(name=f"g{number}", parent="all", minimum={"gpu": number}))
        for place, (minimum, lending, used) in enumerate(leaves):
            name = f"g{number}-{place}"
            limit = {} if lending is None else {"gpu": lending}
            shares.append(Share(name=name, parent=f"g{number}", minimum={"gpu": minimum}, lending_limit=limit))
            usage[name] = used
    tree = ShareTree(shares)
    for name, used in usage.items():
        tree.add(name, {"gpu": used})

    found = of(tree)

    assert found["all"].used == sum(usage.values())
    assert found["all"].guaranteed == sum(each.minimum.get("gpu", 0) for each in shares)
    for name, used in usage.items():
        minimum = tree.shares[name].minimum["gpu"]
        assert found[name].borrowed == max(0, used - minimum)
        assert 0 <= found[name].lent <= max(0, minimum - used)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=6))
def test_of_equals_as_much_is_lent_as_is_borrowed(leaves: list[tuple[int, int]]) -> None:
    tree = a_tree(**{f"s{number}": minimum for number, (minimum, _) in enumerate(leaves)})
    for number, (_, used) in enumerate(leaves):
        tree.add(f"s{number}", {"gpu": used})

    found = of(tree)

    idle = sum(max(0, minimum - used) for minimum, used in leaves)
    borrowed = sum(found[name].borrowed for name in found if name != "all")
    assert sum(each.lent for each in found.values()) == min(idle, borrowed)


def test_a_root_above_its_lowered_quota_borrows_of_none() -> None:
    tree = ShareTree([Share(name="alone", minimum={"cpu": 1})])
    tree.add("alone", {"cpu": 3})

    assert balances(tree, "cpu") == {"alone": Balance(guaranteed=1, maximum=None, used=3)}
