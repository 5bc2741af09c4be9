"""Listeners that raise."""

from typing import Any

import pytest

from scheduler.state.listeners import ListenerFailed
from scheduler.state.objects import ObjectStore
from scheduler.testing import an_object

BUDGETS = "budgets.v1.example.com"


class Table:
    """What a listener keeps: the names of the objects that it was told of. It raises as it is told to."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.fails_once = False
        self.fails_for = ""
        self.cannot_start_over = False
        self.starts = 0

    def changed(self, old: Any, new: Any) -> None:
        if old is not None:
            self.names.remove(old.metadata.name)  # a KeyError for an object that it was not told of
        if self.fails_once or (new is not None and new.metadata.name == self.fails_for):
            self.fails_once = False
            raise RuntimeError("half way")
        if new is not None:
            self.names.add(new.metadata.name)

    def reset(self) -> None:
        if self.cannot_start_over:
            raise RuntimeError("not even this")
        self.starts += 1
        self.names.clear()


def a_store(*names: str) -> tuple[ObjectStore, Table]:
    store, table = ObjectStore(), Table()
    store.watch([BUDGETS])
    store.listen(BUDGETS, table.changed, table.reset)
    for name in names:
        store.set(BUDGETS, an_object(name, uid=name))
    return store, table


def test_a_listener_that_raises_is_told_of_all_objects_again() -> None:
    store, table = a_store("a", "b")
    table.fails_once = True

    store.set(BUDGETS, an_object("a", uid="a", version=2))

    assert table.names == {"a", "b"}
    assert (table.starts, store.listener_failures) == (1, 1)
    assert store.is_known_to_all(BUDGETS, "a")


def test_the_other_listeners_are_told_all_the_same() -> None:
    store, table = a_store()
    other = Table()
    store.listen(BUDGETS, other.changed)
    table.fails_for = "a"

    store.set(BUDGETS, an_object("a", uid="a"))

    assert other.names == {"a"}
    assert store.get(BUDGETS, "a") is not None


def with_one_left_out() -> tuple[ObjectStore, Table]:
    """A store with an object for which its listener raises each time."""
    store, table = a_store("a")
    table.fails_for = "bad"
    store.set(BUDGETS, an_object("bad", uid="bad"))
    return store, table


def test_an_object_for_which_it_always_raises_is_left_out() -> None:
    store, table = with_one_left_out()

    store.set(BUDGETS, an_object("c", uid="c"))

    assert table.names == {"a", "c"}
    assert not store.is_known_to_all(BUDGETS, "bad")
    assert store.is_known_to_all(BUDGETS, "a")


def test_what_was_left_out_is_tried_again() -> None:
    store, table = with_one_left_out()
    table.fails_for = ""

    store.mend(BUDGETS)

    assert table.names == {"a", "bad"}
    assert store.is_known_to_all(BUDGETS, "bad")


def test_nothing_is_said_of_the_end_of_an_object_that_was_left_out() -> None:
    store, table = with_one_left_out()
    failures = store.listener_failures

    store.remove(BUDGETS, "bad")

    assert (table.names, store.listener_failures) == ({"a"}, failures)


def test_an_object_that_was_left_out_comes_as_new_when_it_is_right() -> None:
    store, table = with_one_left_out()
    table.fails_for = ""

    store.set(BUDGETS, an_object("bad", uid="bad", version=2))

    assert table.names == {"a", "bad"}
    assert table.starts == 2  # none for the last change


def test_a_listener_that_cannot_start_over_is_not_called_until_it_can() -> None:
    store, table = a_store("a")
    table.fails_once = table.cannot_start_over = True
    store.set(BUDGETS, an_object("b", uid="b"))
    table.names.clear()

    store.set(BUDGETS, an_object("c", uid="c"))
    while_broken = set(table.names)
    with pytest.raises(ListenerFailed):
        store.mend(BUDGETS)
    table.cannot_start_over = False
    store.mend(BUDGETS)

    assert while_broken == set()
    assert table.names == {"a", "b", "c"}


def test_a_listener_that_missed_a_change_starts_over_at_the_next() -> None:
    """Something else failed between the change and the call: the fault tests find where."""
    store, table = a_store("a")
    (listener,) = store._listeners[BUDGETS]
    listener.behind = 1
    table.names.clear()

    store.set(BUDGETS, an_object("b", uid="b"))

    assert table.names == {"a", "b"}
