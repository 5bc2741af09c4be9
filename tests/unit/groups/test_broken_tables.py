"""A table that a failed what-if left with a wrong count is rebuilt before a group is judged by it."""

from scheduler.testing import a_node
from tests.unit.groups.coscheduling import Coscheduled


def break_table(stage: Coscheduled, node: str = "n0") -> None:
    """Have a node counted as full, as if a what-if had failed half-way."""
    table = stage.engine.cache.table
    row = table.row_of(node)
    assert row is not None
    table._amounts.requested["cpu"].values[row] = 2_000
    table.is_broken = True


async def test_what_a_group_needs_together_is_counted_in_a_table_that_was_put_right() -> None:
    stage = Coscheduled(nodes=2)
    stage.create(minimum=4, min_resources={"cpu": "4"}, pods=4)
    break_table(stage)

    await stage.schedule()

    assert len(stage.bound) == 4


async def test_how_many_pods_fit_in_a_required_domain_is_counted_in_a_table_that_was_put_right() -> None:
    stage = Coscheduled(nodes=0)
    stage.under_test.see(*(a_node(name, cpu="2", labels={"rack": "r1"}) for name in ("n0", "n1")))
    stage.annotated(4, 4, annotations={"loadmaster.dev/required-topology": "rack"})
    break_table(stage)

    await stage.schedule()

    assert len(stage.bound) == 4


async def test_a_group_that_comes_back_is_judged_by_a_table_that_was_put_right() -> None:
    stage = Coscheduled(nodes=2)
    await stage.try_group(minimum=6, pods=6)
    assert stage.bound == {}
    stage.under_test.see(a_node("n2", cpu="2"))
    break_table(stage)
    await stage.later()

    assert len(stage.bound) == 6
