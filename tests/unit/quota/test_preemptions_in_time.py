"""Preemptions over time: what is freed goes to the pod it was freed for, and none is begun again and again."""

import pytest

from scheduler.framework.shares import DeclaredShare
from scheduler.testing import a_node
from tests.unit.quota.in_time import Life

HOUR = 3_600


def teams() -> tuple[DeclaredShare, ...]:
    """`a` may take back its 4 cores, `c` uses its own 4, `b` borrows."""
    return (
        DeclaredShare("root"),
        DeclaredShare("a", "root", minimum={"cpu": 4}, reclaim="Any", namespaces=("a",)),
        DeclaredShare("b", "root", namespaces=("b",)),
        DeclaredShare("c", "root", minimum={"cpu": 4}, namespaces=("c",)),
    )


def churning(life: Life, seconds: int, *, every: int = 20, borrowers: int = 10, priority: int = 0) -> None:
    """Let a job of `c` end and another come every few seconds, and evicted pods of `b` come again."""
    for second in range(0, seconds, every):
        life.advance(every)
        life.end(*life.with_node("c")[:1])
        life.pod(f"c-new{second}-{life.engine.cache.changes}", "c")
        for number in range(
            borrowers - sum(p.namespace == "b" and not p.is_deleting for p in life.engine.pods.values())
        ):
            life.pod(f"b-new{second}-{number}", "b", priority=priority)


@pytest.mark.parametrize("order", ["Priority", "DominantShare"])
def test_a_claimant_keeps_its_nomination_while_its_victims_end_though_default_preemption_is_asked_first(
    order: str,
) -> None:
    with Life(*teams(), grace=30, order=order) as life:
        life.set_node(a_node("n", cpu=1000))
        life.pods(4, "c")
        life.pods(10, "b")
        life.advance(5)
        claimant = life.pod("claimant", "a", cpu=4)
        churning(life, HOUR // 4)

        assert life.outcome(claimant).node == "n"
        assert len(life.victims) == 4
