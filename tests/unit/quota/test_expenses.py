"""Pods that run at the expense of shares whose pods were evicted for them."""

from collections.abc import Sequence

from scheduler.quota.expenses import Expenses
from scheduler.quota.tree import Share, ShareTree

TREE = ShareTree(
    (
        Share(name="root"),
        *(Share(name=name, parent="root") for name in ("left", "right", "x")),
        *(Share(name=name, parent="left") for name in ("a", "b")),
        Share(name="c", parent="right"),
    )
)


def evicting(*evictions: tuple[str, str, str, str]) -> Expenses:
    """Let pods of a share evict others, one each: share, UID, share, UID."""
    expenses = Expenses()
    for share, uid, gave, victim in evictions:
        expenses.note(TREE, share, [uid], [(gave, victim)])
    return expenses


def paying(expenses: Expenses, uid: str) -> Sequence[str]:
    return [name for name in sorted(TREE.shares) if expenses.include(name, [uid])]


def test_a_pod_runs_at_the_expense_of_the_share_that_was_compared() -> None:
    expenses = evicting(("a", "pod", "b", "1"), ("a", "pod", "c", "2"))

    assert paying(expenses, "pod") == ["b", "right"]


def test_whoever_takes_the_place_of_a_pod_takes_over_at_whose_expense_it_ran() -> None:
    expenses = evicting(("a", "first", "c", "1"), ("x", "second", "a", "first"))

    assert paying(expenses, "second") == ["left", "right"]


def test_a_pod_of_the_same_share_pays_for_nothing_but_what_it_had() -> None:
    expenses = evicting(("a", "first", "c", "1"), ("a", "second", "a", "first"), ("b", "third", "b", "other"))

    assert paying(expenses, "second") == ["right"]
    assert paying(expenses, "third") == []


def test_nothing_is_kept_of_a_pod_that_is_gone() -> None:
    expenses = evicting(("a", "first", "c", "1"), ("a", "second", "c", "2"))

    expenses.forget("first")

    assert paying(expenses, "first") == []
    assert paying(expenses, "second") == ["right"]
