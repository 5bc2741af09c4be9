"""What is kept of decisions: who won by how much, what failed and when, within bounds."""

import pytest

from scheduler.cycle.records import DecisionRecords
from scheduler.explain.explainer import Explainer
from scheduler.framework.errors import BindRejected
from scheduler.framework.queued import QueuedPod
from scheduler.testing import a_node, a_pod
from tests.fakes import FakeClock
from tests.unit.cycle.fakes import EngineUnderTest, an_engine


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
    document = await Explainer(scheduler.engine, scheduler.clock).about("default", "high")
    assert document["history"][0]["text"].endswith("Room is being made on only.")


async def test_the_history_is_told_in_sentences() -> None:
    scheduler = a_cluster()
    scheduler.see(a_pod("web", requests={"cpu": 1}))
    await scheduler.schedule()
    document = await Explainer(scheduler.engine, scheduler.clock).about("default", "web")
    (told,) = document["history"]
    assert told["text"].startswith("attempt 1: placed on large, the best of 3 nodes that fit (total score ")
    assert "next: medium" in told["text"]


def test_memory_is_bounded_and_scores_go_first() -> None:
    scheduler = an_engine()
    records = DecisionRecords(scheduler.cache.table, FakeClock(), max_bytes=20_000)
    for i in range(1000):
        records.failed("loadmaster", QueuedPod(a_pod(f"p{i}"), 0.0, attempts=1), "unschedulable", "x" * 1000, 0.0)
        assert records.bytes <= 20_000
    assert len(records) == 11
    assert records.of("default/p0") == ()
    assert records.of("default/p999")[0].message


def test_one_message_that_is_larger_than_the_bound_is_the_only_one() -> None:
    records = DecisionRecords(an_engine().cache.table, FakeClock(), max_bytes=10_000)
    for i in range(3):
        records.failed("loadmaster", QueuedPod(a_pod(f"p{i}"), 0.0, attempts=1), "error", "x" * 50_000, 0.0)
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
