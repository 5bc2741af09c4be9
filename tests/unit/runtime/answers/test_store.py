"""What leaves the store, and what goes with it."""

import numpy as np
import pytest

from scheduler.api.pods.requests import PodResources
from scheduler.framework.nodes.nodes import Aspect
from scheduler.runtime.answers import store as store_module
from scheduler.runtime.answers.pod_classes import KnownSpec, PodClass
from scheduler.runtime.answers.store import AnswerStore, Column, Stored
from scheduler.runtime.answers.views import BestNodes, FeasibleNodes, TotalScores
from scheduler.testing import a_node
from tests.unit.plugins.cluster import a_cluster

ASPECTS = (Aspect.REQUESTED,)


class Entries:
    """What a store has of one pod class, as decisions put it there."""

    def __init__(self, store: AnswerStore, name: str = "web") -> None:
        self.store = store
        self.filtered, self.scored = self.column("filter", name), self.column("score", name)
        self.feasible = store.add(FeasibleNodes(("feasible", name), [self.filtered], ASPECTS, store))
        self.totals = store.add(TotalScores(("totals", name), [(self.scored, 1)], [], ASPECTS, store))
        self.feasible.update(None, store.nodes.size)
        self.totals.update(None, store.nodes.size)
        self.best = store.add(BestNodes(("best", name), self.feasible, self.totals))
        self.pod_class = store.add(PodClass(("class", name), {}))
        for view in (self.feasible, self.totals, self.best):
            store.link(self.pod_class, view)
        self.spec = store.add(KnownSpec(name.encode(), self.pod_class))

    def column(self, point: str, name: str) -> Column:
        return self.store.column(((point, "Plugin"), name), ASPECTS, np.int64, lambda rows: rows * 0)

    @property
    def stored(self) -> set[str]:
        """The names of the entries that are in the store."""
        return {name for name, each in vars(self).items() if isinstance(each, Stored) and each in self.store}


def forget_idle(store: AnswerStore) -> int:
    """Let it forget; return how often others got their turn meanwhile."""
    return sum(1 for _ in store.forget_idle())


ALL = {"filtered", "scored", "feasible", "totals", "best", "pod_class", "spec"}


NODES = [a_node(f"n{number}") for number in range(20)]


@pytest.mark.parametrize(
    ("dropped", "left"),
    [
        ("filtered", {"scored", "totals"}),
        ("scored", {"filtered", "feasible"}),
        ("feasible", {"filtered", "scored", "totals"}),
        ("best", {"filtered", "scored", "feasible", "totals"}),
        ("pod_class", {"filtered", "scored", "feasible", "totals", "best"}),
        ("spec", ALL - {"spec"}),
    ],
)
def test_everything_that_is_made_of_an_entry_is_dropped_with_it(dropped: str, left: set[str]) -> None:
    store = AnswerStore(a_cluster(*NODES))
    web, db = Entries(store), Entries(store, "db")
    plans = web.pod_class.filter_plans, web.pod_class.score_plans
    for each in plans:
        each[frozenset()] = None  # type: ignore[assignment]

    store.drop(getattr(web, dropped))

    assert web.stored == left
    assert (plans == ({}, {})) is ("pod_class" not in left)
    assert db.stored == ALL


def test_a_class_that_was_dropped_meanwhile_keeps_no_view_in_the_store() -> None:
    store = AnswerStore(a_cluster(*NODES))
    web, db = Entries(store), Entries(store, "db")
    store.drop(web.pod_class)

    store.link(web.pod_class, db.feasible)

    assert db.feasible.dependents == {db.best, db.pod_class}


def test_the_bytes_are_those_of_the_rows_and_of_the_entries_and_grow_with_the_table() -> None:
    table = a_cluster(*NODES)
    store = AnswerStore(table)
    web = Entries(store)
    per_row = 8 + 8 + (1 + 8) + 8 + (8 + 8)
    own = sum(each.own_bytes for each in vars(web).values() if isinstance(each, Stored))
    few = store.bytes

    table.set_node(a_node("n20"))
    many = store.bytes
    store.drop(web.filtered)
    store.drop(web.scored)

    assert (few, many) == (20 * per_row + own, 21 * per_row + own)
    assert store.bytes == len(store) == 0


def test_where_room_is_needed_the_class_that_was_used_least_recently_goes_with_what_only_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = AnswerStore(a_cluster(*NODES))
    classes = {name: Entries(store, name) for name in ("web", "db", "cache")}
    store.link(classes["cache"].feasible, classes["db"].filtered)
    monkeypatch.setattr(store_module, "FEWEST", 0)
    monkeypatch.setattr(store_module, "STORE_BYTES", store.bytes)

    assert store.find(b"web", KnownSpec) is not None
    store.add(KnownSpec(b"one more", classes["web"].pod_class))
    after_one = {name: entries.stored for name, entries in classes.items()}
    for number in range(300):
        store.column((("filter", "Other"), number), ASPECTS, np.int64, lambda rows: rows * 0)
    after_many = {name: entries.stored for name, entries in classes.items()}

    assert after_one == {"web": ALL, "db": {"filtered"}, "cache": ALL}
    assert after_many == {"web": set(), "db": set(), "cache": set()}
    assert store.bytes <= store_module.STORE_BYTES


def test_an_entry_that_others_are_made_of_stays_though_it_was_not_looked_up_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = AnswerStore(a_cluster(*NODES))
    web = Entries(store)
    monkeypatch.setattr(store_module, "FEWEST", 0)
    column = store.column((("filter", "Other"), "a"), ASPECTS, np.int64, lambda rows: rows * 0)
    monkeypatch.setattr(store_module, "STORE_BYTES", store.bytes + 20 * 8 + column.own_bytes)

    for number in range(5):
        store.column((("filter", "Other"), number), ASPECTS, np.int64, lambda rows: rows * 0)
        assert store.find(b"web", KnownSpec) is web.spec

    assert web.stored == ALL


def test_what_was_not_used_from_one_call_to_the_next_is_forgotten_with_what_only_it_has() -> None:
    store = AnswerStore(a_cluster(*NODES))
    web, db = Entries(store), Entries(store, "db")

    forget_idle(store)
    assert store.find(b"web", KnownSpec) is web.spec
    forget_idle(store)

    assert (web.stored, db.stored) == (ALL, set())
    forget_idle(store)
    assert store.bytes == len(store) == 0


def test_a_spec_that_is_large_counts_as_large() -> None:
    store = AnswerStore(a_cluster(*NODES))
    small = store.add(PodClass("small", {}))
    before = store.bytes
    requests = {f"example.com/{number}": number for number in range(1000)}

    store.add(KnownSpec(b"x" * 100_000, small, PodResources(requests, 0, 0)))

    assert store.bytes - before > 100_000 + 1000 * len("example.com/100")


def test_much_is_forgotten_in_slices_and_what_is_used_meanwhile_stays() -> None:
    store = AnswerStore(a_cluster(*NODES))
    classes = [Entries(store, f"app-{number}") for number in range(3 * store_module.FORGOTTEN_AT_ONCE)]
    forget_idle(store)

    slices = store.forget_idle()
    next(slices)
    left = len(store)
    assert store.find(b"app-149", KnownSpec) is classes[149].spec
    rest = sum(1 for _ in slices)

    assert (left, rest) == (100 * len(ALL), 1)
    assert [number for number, each in enumerate(classes) if each.stored] == [149]
