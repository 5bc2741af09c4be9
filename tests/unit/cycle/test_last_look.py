"""What the scheduler sees just before it sends a binding."""

from collections.abc import Hashable
from typing import ClassVar

import pytest

from scheduler import framework as fw
from scheduler.testing import a_node, a_pod
from tests.fakes import a_plugin, fail, settle
from tests.unit.cycle.fakes import EngineUnderTest, an_engine, newer

Hold = a_plugin("Hold", fw.PermitPlugin, permit=lambda *_: fw.PermitWait(600.0))


def ours(name: str, cpu: str) -> fw.Pod:
    return a_pod(name, requests={"cpu": cpu})


def theirs(name: str, cpu: str) -> fw.Pod:
    """A pod that another scheduler has bound to n1."""
    return a_pod(name, requests={"cpu": cpu}, node_name="n1", scheduler_name="another")


POD = ours("ours", "600m")


class Seats(fw.FilterPlugin, fw.SignPlugin, fw.ReservePlugin):
    """Has one seat on each node: what it has reserved for a pod is no reason to refuse that pod."""

    name: ClassVar[str] = "Seats"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.EXTERNAL
    signs_spec: ClassVar[bool] = True

    def start(self, handle: fw.Handle) -> None:
        self.columns = handle.columns
        self.taken: set[str] = set()

    def sign(self, pod: fw.Pod) -> Hashable | None:
        return ""

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return fw.unschedulable("the seat is taken") if node.name in self.taken else None

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        self.taken.add(node_name)
        self.columns.mark()
        return None

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.taken.discard(node_name)
        self.columns.mark()


def on_hold(*plugins: type[fw.Plugin]) -> tuple[EngineUnderTest, fw.WaitingPod]:
    """An engine whose plugin holds a pod that was decided to run on n1, which has room for one such pod."""
    engine = an_engine(Hold, *plugins)
    engine.see(a_node("n1", cpu="1"), POD)
    engine.loop.schedule_one(engine.pop())
    waiting = engine.framework.handle.waiting_pods.get(POD.uid)
    assert waiting is not None
    return engine, waiting


async def allow(engine: EngineUnderTest, waiting: fw.WaitingPod) -> None:
    waiting.allow("Hold")
    await settle()
    engine.check()


async def test_a_node_that_nobody_else_changed_is_not_asked_again() -> None:
    engine, waiting = on_hold()
    engine.framework.run_filter_again = fail  # type: ignore[method-assign,assignment]
    await allow(engine, waiting)

    assert engine.world.bound == {POD.uid: "n1"}


async def test_a_binding_is_withdrawn_if_another_scheduler_has_taken_the_room_meanwhile() -> None:
    engine, waiting = on_hold()
    engine.see(theirs("big", "600m"))
    await allow(engine, waiting)

    assert engine.world.bound == {}
    assert engine.where(POD.uid) == "backoff"
    (note,) = engine.world.notes()
    assert "node 'n1' changed since it was chosen: Insufficient cpu" in note
    assert engine.count("loadmaster_bindings_withdrawn_total") == 1


async def test_a_binding_goes_on_if_what_others_bound_leaves_room_enough() -> None:
    engine, waiting = on_hold()
    engine.see(theirs("small", "100m"))
    await allow(engine, waiting)

    assert engine.world.bound == {POD.uid: "n1"}


async def test_a_plugin_that_knows_more_than_the_node_is_not_asked_again_about_what_it_has_reserved_itself() -> None:
    engine, waiting = on_hold(Seats)
    engine.see(theirs("small", "100m"))
    await allow(engine, waiting)

    assert engine.world.bound == {POD.uid: "n1"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(a_node("n1", cpu="1", unschedulable=True), "unschedulable", id="cordoned"),
        pytest.param(a_node("n1", cpu="500m"), "Insufficient cpu", id="smaller"),
        pytest.param(a_node("n1", cpu="1", taints=[fw.Taint("a", "b", "NoExecute")]), "taint", id="tainted"),
        pytest.param(None, "the node is gone", id="gone"),
    ],
)
async def test_a_binding_is_withdrawn_if_the_node_is(change: fw.Node | None, reason: str) -> None:
    engine, waiting = on_hold()
    if change is None:
        engine.handlers.node_deleted(a_node("n1", cpu="1"))
    else:
        engine.see(change)
    await allow(engine, waiting)

    assert engine.world.bound == {}
    assert reason in engine.world.notes()[0]


async def test_of_two_bindings_to_a_node_that_has_room_for_one_only_one_is_withdrawn() -> None:
    engine = an_engine(Hold)
    pair = [ours("a", "400m"), ours("b", "400m")]
    engine.see(a_node("n1", cpu="1"), *pair)
    for _ in pair:
        engine.loop.schedule_one(engine.pop())
    engine.see(theirs("other", "600m"))
    for waiting in tuple(engine.framework.handle.waiting_pods):
        await allow(engine, waiting)

    assert len(engine.world.bound) == 1
    assert engine.count("loadmaster_bindings_withdrawn_total") == 1


async def test_a_pod_that_was_resized_counts_as_a_change_by_others() -> None:
    engine, waiting = on_hold()
    small = theirs("small", "100m")
    engine.see(small)
    version = engine.cache.changed_by_others("n1")
    engine.see(newer(small, labels={"a": "b"}))
    assert engine.cache.changed_by_others("n1") == version

    engine.see(theirs("small", "900m"))
    await allow(engine, waiting)

    assert engine.world.bound == {}
