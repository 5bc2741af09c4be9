"""What becomes of a pod whose attempt failed, and what is reported to its owner."""

import pytest

from scheduler import framework as fw
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.failure import FailureHandler
from scheduler.framework.errors import SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.testing import a_node, a_pod
from tests.fakes import Unschedulable, a_plugin, nominated_node, settle
from tests.unit.cycle.fakes import PROFILE, EngineUnderTest, an_engine, newer

POD = "default/pod"
NO_FIT = Unplaced("0/3 nodes are available: 3 Insufficient cpu.", frozenset({"NodeResourcesFit"}))


def popped(pod: fw.Pod) -> tuple[EngineUnderTest, QueuedPod]:
    """A pod in the middle of its attempt."""
    engine = an_engine()
    engine.see(pod)
    return engine, engine.pop()


def fail(engine: EngineUnderTest, queued: QueuedPod, cause: Unplaced | SchedulerError = NO_FIT) -> None:
    handler = FailureHandler(
        engine.queue,
        engine.nominator,
        engine.engine.pods,
        engine.world.writers,
        engine.metrics,
        engine.engine.stream,
        {PROFILE},
    )
    handler.handle(PROFILE, queued, cause, started=0.0)
    engine.check()


def test_the_plugins_that_refused_it_are_remembered_for_the_events_that_may_help() -> None:
    engine, queued = popped(a_pod())

    fail(engine, queued, Unplaced("no", frozenset({"NodeAffinity"}), frozenset({"Volumes"})))

    assert engine.waiting(POD).unschedulable_plugins == {"NodeAffinity"}
    assert engine.waiting(POD).pending_plugins == {"Volumes"}


def test_an_error_blames_no_plugin_so_that_the_pod_is_tried_again_after_its_backoff() -> None:
    engine, queued = popped(a_pod())
    queued.unschedulable_plugins, queued.pending_plugins = {"NodeAffinity"}, {"Volumes"}

    fail(engine, queued, SchedulerError("disk on fire"))

    assert engine.where(POD) == "backoff"
    assert engine.waiting(POD).unschedulable_plugins == engine.waiting(POD).pending_plugins == set()
    assert engine.world.written(Unschedulable) == [Unschedulable(POD, "SchedulerError", "disk on fire", "")]
    assert engine.world.notes() == ["disk on fire"]
    assert engine.count("scheduler_schedule_attempts_total", result="error", profile=PROFILE) == 1


@pytest.mark.parametrize(
    ("named", "nominated", "promised"),
    [
        pytest.param("n1", None, "n1", id="left as it is"),
        pytest.param("n1", "", "", id="cleared"),
        pytest.param("n1", "n2", "n2", id="replaced"),
        pytest.param("", "n2", "n2", id="new"),
        pytest.param("", None, "", id="none before, none now"),
    ],
)
def test_the_nomination_is_left_cleared_or_replaced(named: str, nominated: str | None, promised: str) -> None:
    engine, queued = popped(newer(a_pod(), nominated_node_name=named))

    fail(engine, queued, Unplaced("no", nominated_node_name=nominated))

    assert nominated_node(engine.nominator, POD) == promised
    assert [condition.nominated for condition in engine.world.written(Unschedulable)] == [nominated]


@pytest.mark.parametrize("outcome", ["bound", "deleted", "ended"])
def test_a_pod_that_is_bound_or_gone_meanwhile_does_not_come_back(outcome: str) -> None:
    pod = a_pod()
    engine, queued = popped(pod)
    if outcome == "bound":
        engine.see(newer(pod, node_name="n1"))
    elif outcome == "ended":
        engine.see(newer(pod, phase="Failed"))
    else:
        engine.handlers.pod_deleted(pod)

    fail(engine, queued, Unplaced("no", nominated_node_name="n1"))

    assert engine.where(POD) == ""
    assert engine.world.events == []
    assert engine.world.written(Unschedulable) == []
    assert nominated_node(engine.nominator, POD) == ""
    assert engine.count("scheduler_schedule_attempts_total", result="unschedulable", profile=PROFILE) == 1


def test_the_newest_version_comes_back() -> None:
    pod = a_pod()
    engine, queued = popped(pod)
    update = newer(pod, labels={"app": "web"})
    engine.see(update)

    fail(engine, queued)

    assert engine.waiting(POD).pod is update


@pytest.mark.parametrize("ending", ["permit", "binding"])
async def test_a_version_that_came_while_the_pod_was_assumed_is_the_one_that_comes_back(ending: str) -> None:
    hold = a_plugin("Hold", fw.PermitPlugin, permit=lambda *_: fw.PermitWait(60))
    pod = a_pod()
    update = newer(pod, labels={"app": "web"})

    engine = an_engine(*[hold] if ending == "permit" else [])
    engine.world.hangs = True
    await engine.schedule(a_node("n1"), pod)
    engine.see(update)
    if ending == "permit":
        (held,) = engine.framework.handle.waiting_pods
        held.reject("Hold", "not today")
        await settle()
    else:
        await engine.world.answer_binding(POD, fw.BindRejected("no"))

    assert engine.waiting(POD).pod is update


@pytest.mark.parametrize("ended", [True, False])
async def test_a_pod_on_hold_that_another_scheduler_bound_is_not_counted_after_its_end(ended: bool) -> None:
    hold = a_plugin("Hold", fw.PermitPlugin, permit=lambda *_: fw.PermitWait(60))
    pod = a_pod(requests={"cpu": "1"})
    bound = newer(pod, node_name="n1")

    engine = an_engine(hold)
    await engine.schedule(a_node("n1"), pod)
    engine.see(bound)
    if ended:
        engine.see(newer(bound, phase="Succeeded"))
    else:
        engine.handlers.pod_deleted(bound)
    await settle()

    assert engine.cache.get(POD) is None
    assert engine.loop.bindings == 0
    assert engine.world.asked == []
    assert engine.where(POD) == ""
