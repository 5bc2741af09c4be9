from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.state.objects import ObjectStore
from scheduler.testing import an_object

BUDGETS = "budgets.v1.example.com"


def a_store(*objects: Any) -> ObjectStore:
    store = ObjectStore()
    store.watch([BUDGETS, "Service"])
    for each in objects:
        store.set(BUDGETS, each)
    store.check_invariants()
    return store


def names(store: ObjectStore, namespace: str | None = None) -> list[str]:
    return [each.metadata.name for each in store.list(BUDGETS, namespace)]


def test_objects_are_found_by_namespace_and_name() -> None:
    in_web, in_shop, without = an_object("a", namespace="web"), an_object("a", namespace="shop"), an_object("b")
    store = a_store(in_web, in_shop, without)

    assert store.get(BUDGETS, "a", "web") is in_web
    assert store.get(BUDGETS, "a", "shop") is in_shop
    assert store.get(BUDGETS, "b") is without
    assert store.get(BUDGETS, "a") is None
    assert store.get(BUDGETS, "a", "elsewhere") is None


def test_objects_are_listed_by_namespace_or_all() -> None:
    store = a_store(an_object("a", namespace="web"), an_object("b", namespace="web"), an_object("c"))

    assert names(store) == ["a", "b", "c"]
    assert names(store, "web") == ["a", "b"]
    assert names(store, "") == ["c"]
    assert names(store, "elsewhere") == []
    assert list(store.list("Service")) == []


def test_a_new_version_takes_the_place_of_the_old_one() -> None:
    old, new = an_object("a", version=1), an_object("a", version=2)
    store = a_store(old)

    assert store.set(BUDGETS, new) is old
    assert store.get(BUDGETS, "a") is new
    assert list(store.known(BUDGETS).values()) == [new]
    store.check_invariants()


def test_an_object_made_again_under_its_name_takes_the_place_of_the_old_one() -> None:
    old, new = an_object("a", uid="1", version=1), an_object("a", uid="2", version=2)
    store = a_store(old)

    assert store.set(BUDGETS, new) is old
    assert list(store.known(BUDGETS)) == ["2"]
    assert store.remove(BUDGETS, "1") is None
    assert store.get(BUDGETS, "a") is new
    store.check_invariants()


def test_late_news_of_an_object_that_was_made_again_changes_nothing() -> None:
    new, late = an_object("a", uid="2", version=2), an_object("a", uid="1", version=1)
    store = a_store(new)

    assert store.set(BUDGETS, late) is late
    assert store.get(BUDGETS, "a") is new
    store.check_invariants()


def test_what_is_removed_is_gone() -> None:
    budget = an_object("a", namespace="web")
    store = a_store(budget)

    assert store.remove(BUDGETS, budget.metadata.uid) is budget
    assert store.get(BUDGETS, "a", "web") is None
    assert names(store) == []
    assert store.remove(BUDGETS, budget.metadata.uid) is None
    store.check_invariants()


def test_the_version_grows_with_each_change_of_its_own_resource() -> None:
    store = a_store()
    versions = [store.version(BUDGETS)]
    for version in (1, 2):
        store.set(BUDGETS, an_object("a", version=version))
        versions.append(store.version(BUDGETS))
    store.remove(BUDGETS, "/a")
    versions.append(store.version(BUDGETS))

    assert versions == sorted(set(versions))
    assert store.version("Service") == 0


def test_a_listener_gets_the_existing_objects_and_each_change() -> None:
    first, second, third = (an_object("a", version=version, uid="u") for version in (1, 2, 3))
    again = an_object("a", version=4, uid="v")
    store = a_store(first)
    reported: list[tuple[Any, Any]] = []

    store.listen(BUDGETS, lambda old, new: reported.append((old, new)))
    store.set(BUDGETS, second)
    store.set("Service", an_object("s"))
    store.set(BUDGETS, third)
    store.set(BUDGETS, again)
    store.remove(BUDGETS, "u")
    store.remove(BUDGETS, "v")

    assert reported == [(None, first), (first, second), (second, third), (third, again), (again, None)]


def test_a_listener_may_come_before_its_resource_is_watched() -> None:
    store = ObjectStore()
    reported: list[Any] = []
    store.listen(BUDGETS, lambda old, new: reported.append(new))

    with pytest.raises(LookupError):
        store.list(BUDGETS)
    store.watch([BUDGETS])
    budget = an_object("a")
    store.set(BUDGETS, budget)

    assert reported == [budget]


def test_a_resource_that_is_not_watched_cannot_be_asked_for() -> None:
    store = a_store()

    for ask in (
        lambda: store.get("foos.v1.example.com", "a"),
        lambda: store.list("foos.v1.example.com"),
        lambda: store.version("foos.v1.example.com"),
    ):
        with pytest.raises(
            LookupError, match=r"'foos.v1.example.com' is not watched: .* events_to_register or in reads"
        ):
            ask()


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from(["", "web"]),
            st.sampled_from("123"),
            st.integers(1, 9),
            st.booleans(),
        )
    )
)
def test_both_indexes_agree_whatever_is_reported_in_whatever_order(
    steps: list[tuple[str, str, str, int, bool]],
) -> None:
    store = a_store()
    for name, namespace, generation, version, is_deletion in steps:
        uid = f"{namespace}/{name}/{generation}"
        if is_deletion:
            store.remove(BUDGETS, uid)
        else:
            store.set(BUDGETS, an_object(name, namespace=namespace, uid=uid, version=version))
        store.check_invariants()


def test_an_object_in_another_version_is_there_for_a_moment_and_listeners_hear_of_both() -> None:
    stored, other, further = an_object("a", version=2), an_object("a", version=2, spec={"x": 1}), an_object("b")
    store = a_store(stored)
    heard: list[tuple[Any, Any]] = []
    store.listen(BUDGETS, lambda old, new: heard.append((old, new)))

    with store.what_if([(BUDGETS, other), (BUDGETS, further)], replaces=True):
        there = [store.get(BUDGETS, "a"), store.get(BUDGETS, "b")]

    assert there == [other, further]
    assert list(store.list(BUDGETS)) == [stored]
    assert heard == [(None, stored), (stored, other), (None, further), (further, None), (other, stored)]


def test_without_replacing_the_object_of_a_taken_name_stays() -> None:
    stored, other = an_object("a"), an_object("a", spec={"x": 1})
    store = a_store(stored)

    with store.what_if([(BUDGETS, other)]):
        there = store.get(BUDGETS, "a")

    assert there is stored
