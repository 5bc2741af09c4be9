"""Objects of other resources: first the store, then the pods that wait for them."""

from typing import Any, NamedTuple

import pytest

from scheduler import framework as fw
from scheduler.cycle.object_handlers import ObjectEventHandlers
from scheduler.framework.errors import ConfigError
from scheduler.process.metrics import Metrics
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_node, a_pod, an_object
from tests.fakes import a_plugin
from tests.unit.cycle.fakes import EngineUnderTest, an_engine

BUDGETS = "budgets.v1.example.com"


class Move(NamedTuple):
    event: str
    old: Any
    new: Any
    stored: list[Any]
    """What the store had at that time."""


class Setup:
    """Handlers that move pods in a queue which only writes it down."""

    def __init__(self) -> None:
        self.store = ObjectStore()
        self.moves: list[Move] = []
        queue: Any = self
        self.handlers = ObjectEventHandlers(self.store, queue, [BUDGETS], lambda: None, Metrics())

    def move_all(self, event: fw.ClusterEvent, old: Any, new: Any) -> None:
        self.moves.append(Move(event.label, old, new, list(self.store.list(BUDGETS))))

    def report(self, *objects: Any) -> list[Move]:
        """What hearing of these objects moves."""
        before = len(self.moves)
        for each in objects:
            self.handlers.object_changed(BUDGETS, each)
        self.store.check_invariants()
        return self.moves[before:]

    def told_deleted(self, gone: Any) -> list[Move]:
        before = len(self.moves)
        self.handlers.object_deleted(BUDGETS, gone)
        self.store.check_invariants()
        return self.moves[before:]


@pytest.fixture
def setup() -> Setup:
    return Setup()


def test_an_object_that_appears_is_in_the_store_before_pods_are_moved(setup: Setup) -> None:
    budget = an_object("shop", version=1)

    assert setup.report(budget) == [Move(f"{BUDGETS}Add", None, budget, [budget])]
    assert dict(setup.handlers.known_objects(BUDGETS)) == {"/shop": budget}


def test_a_new_version_is_an_update_from_the_old_one(setup: Setup) -> None:
    old, new = an_object("shop", version=1), an_object("shop", version=2)
    setup.report(old)

    assert setup.report(new) == [Move(f"{BUDGETS}Update", old, new, [new])]


def test_a_deletion_reports_the_object_as_it_was_known(setup: Setup) -> None:
    budget, last = an_object("shop", version=1), an_object("shop", version=2)
    setup.report(budget)

    assert setup.told_deleted(last) == [Move(f"{BUDGETS}Delete", budget, None, [])]


@pytest.mark.parametrize("version", [1, None])
def test_the_same_version_twice_is_nothing(setup: Setup, version: int | None) -> None:
    budget = an_object("shop", version=version)
    again = an_object("shop", version=version) if version else budget
    setup.report(budget)

    assert setup.report(budget, again) == []


def test_the_deletion_of_an_unknown_object_is_nothing(setup: Setup) -> None:
    assert setup.told_deleted(an_object("shop")) == []


def test_an_object_that_was_made_again_is_a_deletion_and_an_addition(setup: Setup) -> None:
    old, new = an_object("shop", uid="1", version=1), an_object("shop", uid="2", version=2)
    setup.report(old)

    assert setup.report(new) == [
        Move(f"{BUDGETS}Delete", old, None, [new]),
        Move(f"{BUDGETS}Add", None, new, [new]),
    ]
    assert setup.told_deleted(old) == []


def test_late_news_of_an_object_that_was_made_again_are_nothing(setup: Setup) -> None:
    new, late = an_object("shop", uid="2", version=2), an_object("shop", uid="1", version=1)
    setup.report(new)

    assert setup.report(late) == []


def waiting_for_a_budget(*also_registered: str) -> EngineUnderTest:
    """An engine with a plugin that refuses every pod until there is a budget called shop."""

    class Budgeted(fw.PreFilterPlugin):
        name = "Budgeted"

        def start(self, handle: fw.Handle) -> None:
            self.handle = handle

        def events_to_register(self) -> list[fw.ClusterEventWithHint]:
            events = (fw.ClusterEvent(resource, fw.Action.ALL) for resource in (BUDGETS, *also_registered))
            return [fw.ClusterEventWithHint(event) for event in events]

        def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
            is_there = self.handle.objects.get(BUDGETS, "shop") is not None
            return None if is_there else fw.unschedulable("no budget")

    return an_engine(Budgeted)


async def test_a_pod_is_bound_when_the_object_that_it_waits_for_appears() -> None:
    made = waiting_for_a_budget()
    made.see(a_node("n"), a_pod("p"))
    await made.schedule()
    (note,) = made.world.notes()
    assert note.startswith("0/1 nodes are available: no budget.")
    made.wait(10)
    made.engine.object_handlers.object_changed(BUDGETS, an_object("shop", version=1))
    await made.schedule()
    made.check()

    assert list(made.world.bound) == ["default/p"]


def test_an_engine_watches_what_its_plugins_name() -> None:
    assert set(waiting_for_a_budget().engine.watched) - set(an_engine().engine.watched) == {BUDGETS}


async def test_a_plugin_that_asks_for_an_unwatched_resource_fails_with_what_to_do() -> None:
    def pre_filter(state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> None:
        made.framework.handle.objects.list("foos.v1.example.com")

    made = an_engine(a_plugin("Careless", fw.PreFilterPlugin, pre_filter=pre_filter))

    made.see(a_node("n"), a_pod("p"))
    await made.schedule()
    (note,) = made.world.notes()

    assert "plugin \"Careless\": LookupError: 'foos.v1.example.com' is not watched" in note


def test_a_resource_that_there_cannot_be_stops_the_start_with_profile_and_plugin() -> None:
    with pytest.raises(ConfigError) as raised:
        waiting_for_a_budget("foos", "bars")

    lines = [problem.partition(" is no resource")[0] for problem in raised.value.problems]
    assert lines == [f"profile 'default-scheduler': plugin 'Budgeted': '{name}'" for name in ("bars", "foos")]
