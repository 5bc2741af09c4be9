"""Quota is taken back from pods that no gang needs first."""

from scheduler.framework.shares import DeclaredShare
from scheduler.testing import a_node
from tests.unit.quota.in_time import Life


def _gangs(life: Life, *, nodes: int = 1) -> None:
    """`a` uses all eight cores with two gangs of four pods: `elastic` needs two of them, `strict` all."""
    life.set_node(*[a_node(f"n{number}", cpu=8 // nodes) for number in range(nodes)])
    life.group("elastic", 4, "a", minimum=2)
    life.advance(1)
    life.group("strict", 4, "a", minimum=4)
    life.advance(1)
    assert life.running("a") == 8


def test_spare_members_of_an_elastic_gang_go_before_a_strict_one_is_broken() -> None:
    with Life(grace=5, default_preemption=False) as life:
        life.quota("a", 4)
        life.quota("b", 4)
        _gangs(life, nodes=2)
        life.pods(2, "b")
        life.advance(60)

        assert life.running("b") == 2
        assert {name[:9] for name in life.victims} == {"a/elastic"}


def test_one_gang_is_broken_and_not_two_where_no_more_members_are_spare() -> None:
    shares = (
        DeclaredShare("root"),
        DeclaredShare("a", "root", minimum={"cpu": 4}, namespaces=("a",)),
        DeclaredShare("b", "root", minimum={"cpu": 4}, reclaim="Any", namespaces=("b",)),
    )
    with Life(*shares, grace=5, default_preemption=False) as life:
        _gangs(life)
        life.pods(4, "b")
        life.advance(60)

        assert life.running("b") == 4
        assert len(life.victims) == 4
        assert {name[:9] for name in life.victims} == {"a/elastic"}
