"""What is kept of decisions: who won by how much, what failed and when, within bounds."""

from typing import Any

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.cycle_events import AttemptFailed, BindingRetried
from scheduler.engine.records import MAX_LISTED, DecisionRecords
from scheduler.explain.explainer import Explainer
from scheduler.framework.errors import BindRejected, SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.runtime.event_stream import EventStream
from scheduler.testing import a_node, a_pod
from tests.fakes import FakeClock, a_plugin, settle
from tests.unit.cycle.fakes import EngineUnderTest, an_engine


async def history(scheduler: EngineUnderTest, name: str) -> Any:
    report = await Explainer(scheduler.engine, scheduler.clock).about("default", name)
    return msgspec.json.decode(msgspec.json.encode(report.history))


def a_cluster() -> EngineUnderTest:
    scheduler = an_engine()
    scheduler.see(a_node("large", cpu="16"), a_node("medium", cpu="8"), a_node("small", cpu="4"))
    return scheduler


@pytest.mark.parametrize("before", [0, 1, 2, 3])
async def test_a_placed_pod_has_the_scores_of_its_node_and_those_that_come_next(before: int) -> None:
    """However many pods of its class came before: each way to decide notes the same."""
    scheduler = a_cluster()
    for i in range(before):
        scheduler.see(a_pod(f"before-{i}", requests={"cpu": 1}))
        await scheduler.schedule()
        scheduler.handlers.pod_deleted(a_pod(f"before-{i}", requests={"cpu": 1}, node_name="large"))
    scheduler.see(a_pod("web", requests={"cpu": 1}))
    await scheduler.schedule()

    (record,) = scheduler.engine.records.of("default/web")
    assert (record.node, record.result, record.evaluated, record.feasible) == ("large", "bound", 3, 3)
    assert record.totals is not None
    best = record.totals.best(3, scheduler.cache.table)
    assert [name for name, _ in best] == ["large", "medium", "small"]
    assert sum(record.scores) == best[0][1]
    assert dict(zip(record.scored_by, record.scores, strict=True))["NodeResourcesFit"] > 0


async def test_a_refused_pod_has_its_message_and_who_refused_it() -> None:
    scheduler = a_cluster()
    scheduler.see(a_pod("web", requests={"cpu": 20}))
    await scheduler.schedule()
    (record,) = scheduler.engine.records.of("default/web")
    assert (record.node, record.result, record.plugins) == ("", "unschedulable", ("NodeResourcesFit",))
    assert record.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")


async def test_a_binding_that_fails_is_the_end_of_the_same_attempt() -> None:
    scheduler = a_cluster()
    scheduler.world.refusal = BindRejected("the node is gone")
    scheduler.see(a_pod("web"))
    await scheduler.schedule()
    records = scheduler.engine.records.of("default/web")
    assert [(record.node, record.result) for record in records] == [("large", "error")]


async def test_a_pod_for_which_room_is_made_has_its_node() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("only", cpu="2"), a_pod("low", requests={"cpu": 2}, priority=1, node_name="only"))
    scheduler.see(a_pod("high", requests={"cpu": 2}, priority=10))
    await scheduler.schedule()
    (told,) = await history(scheduler, "high")
    assert told["text"].endswith("Room is being made on only by evicting default/low.")
    assert (told["nominated"], told["victims"], told["victimCount"]) == ("only", ["default/low"], 1)


async def test_of_many_victims_a_few_are_named_and_the_rest_is_counted() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("only", cpu="64"))
    scheduler.see(*(a_pod(f"low-{i:02}", requests={"cpu": 1}, priority=1, node_name="only") for i in range(64)))
    scheduler.see(a_pod("high", requests={"cpu": 60}, priority=10))
    await scheduler.schedule()
    (told,) = await history(scheduler, "high")
    assert (len(told["victims"]), told["victimCount"]) == (MAX_LISTED, 60)
    assert told["text"].endswith(f" and {60 - MAX_LISTED} more.")


async def test_why_a_preemption_found_no_room_is_part_of_the_message() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("only", cpu="2"), a_pod("low", requests={"cpu": 2}, priority=1, node_name="only"))
    high = a_pod("high", requests={"cpu": 2}, priority=10)
    scheduler.see(msgspec.structs.replace(high, spec=msgspec.structs.replace(high.spec, preemption_policy="Never")))
    await scheduler.schedule()
    (record,) = scheduler.engine.records.of("default/high")
    assert record.message.endswith("preemption: not eligible due to preemptionPolicy=Never.")
    assert (record.nominated, record.victims) == ("", ())


async def test_a_refusal_has_its_plugin_and_how_many_nodes_it_concerns() -> None:
    scheduler = an_engine()
    scheduler.see(*(a_node(f"small-{i}", cpu="1") for i in range(3)), a_node("cordoned", unschedulable=True))
    scheduler.see(a_pod("web", requests={"cpu": 2}))
    await scheduler.schedule()
    (told,) = await history(scheduler, "web")
    assert told["refusals"] == [
        {"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 3},
        {"plugin": "NodeUnschedulable", "reason": "node(s) were unschedulable", "nodes": 1},
    ]


async def test_a_binding_that_went_well_in_the_end_says_what_went_wrong_before() -> None:
    scheduler = a_cluster()
    scheduler.world.retried = "etcd is away"
    scheduler.see(a_pod("web"))
    await scheduler.schedule()
    (told,) = await history(scheduler, "web")
    assert told["retried"] == "etcd is away"
    assert told["text"].endswith("(at first the binding failed: etcd is away)")


async def test_a_pod_that_waited_on_permit_says_how_long_and_for_whom() -> None:
    scheduler = an_engine(a_plugin("Hold", fw.PermitPlugin, permit=lambda *_: fw.PermitWait(60)))
    scheduler.see(a_node("only"), a_pod("web"))
    await scheduler.schedule()
    held = scheduler.framework.handle.waiting_pods.get("default/web")
    assert held is not None
    held.allow("Hold")
    await settle()
    (told,) = await history(scheduler, "web")
    assert told["permit"]["plugins"] == ["Hold"]
    assert " s for the Permit of Hold, and bound " in told["text"]


async def test_the_history_is_told_in_sentences() -> None:
    scheduler = a_cluster()
    scheduler.see(a_pod("web", requests={"cpu": 1}))
    await scheduler.schedule()
    (told,) = await history(scheduler, "web")
    assert told["text"].startswith("attempt 1: placed on large, the best of 3 nodes that fit (total score ")
    assert "next: medium" in told["text"]


def test_memory_is_bounded_and_scores_go_first() -> None:
    scheduler = an_engine()
    stream = EventStream()
    records = DecisionRecords(scheduler.cache.table, stream, FakeClock(), max_bytes=20_000)
    for i in range(1000):
        queued = QueuedPod(a_pod(f"p{i}"), 0.0, attempts=1)
        stream.publish(AttemptFailed("loadmaster", queued, Unplaced("x" * 1000), 0.0))
        assert records.bytes <= 20_000
    assert len(records) == 11
    assert records.of("default/p0") == ()
    assert records.of("default/p999")[0].message


async def test_a_binding_that_is_tried_more_than_once_takes_the_memory_of_its_last_trouble() -> None:
    scheduler = a_cluster()
    scheduler.see(a_pod("web"))
    await scheduler.schedule()
    records = scheduler.engine.records
    for size in (5_000, 100, 3_000):
        scheduler.engine.stream.publish(BindingRetried("default/web", "x" * size))
        (record,) = records.of("default/web")
        assert records.bytes == record.bytes


def test_one_message_that_is_larger_than_the_bound_is_the_only_one() -> None:
    stream = EventStream()
    records = DecisionRecords(an_engine().cache.table, stream, FakeClock(), max_bytes=10_000)
    for i in range(3):
        queued = QueuedPod(a_pod(f"p{i}"), 0.0, attempts=1)
        stream.publish(AttemptFailed("loadmaster", queued, SchedulerError("x" * 50_000), 0.0))
    assert len(records) == 1


async def test_a_row_that_is_another_node_by_now_is_not_taken_for_the_old_one() -> None:
    scheduler = a_cluster()
    scheduler.see(a_pod("web", requests={"cpu": 1}))
    await scheduler.schedule()
    scheduler.handlers.node_deleted(a_node("medium", cpu="8"))
    scheduler.see(a_node("another", cpu="1"))
    (record,) = scheduler.engine.records.of("default/web")
    assert record.totals is not None
    assert [name for name, _ in record.totals.best(3, scheduler.cache.table)] == ["large", "small"]
