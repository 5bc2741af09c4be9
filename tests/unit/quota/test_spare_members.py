"""Quota is taken back first from pods that no gang needs."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.api.groups import coscheduling as api
from scheduler.api.objects import PodStatus
from scheduler.framework.shares import DeclaredShare
from scheduler.testing import a_node
from tests.unit.quota.in_time import ROOT, Life, a_team

START = datetime(2026, 1, 1, tzinfo=UTC)
SHARES = (ROOT, a_team("a", 4), a_team("b", 4, reclaim="Any"))


def gangs(life: Life, minimums: dict[str, int], *nodes: str) -> None:
    """Let four pods of each gang run on its node, all nodes being full; they started by turns."""
    for node in set(nodes):
        life.set_node(a_node(node, cpu=4 * nodes.count(node)))
    for place, (name, minimum) in enumerate(minimums.items()):
        life.group(name, 0, "a", minimum=minimum)
        for number in range(4):
            status = PodStatus(start_time=START + timedelta(seconds=number * len(minimums) + place))
            life.pod(f"{name}-{number}", "a", labels={api.POD_GROUP_LABEL: name}, node_name=nodes[place], status=status)


def victims(life: Life) -> Counter[str]:
    return Counter(name.partition("/")[2].rpartition("-")[0] for name in life.victims)


@pytest.mark.parametrize("shares", [(), SHARES])
def test_spare_members_of_an_elastic_gang_go_before_a_strict_one_is_broken(shares: tuple[DeclaredShare, ...]) -> None:
    with Life(*shares, grace=5, default_preemption=False) as life:
        if not shares:
            life.quota("a", 4)
            life.quota("b", 4)
        gangs(life, {"elastic": 2, "strict": 4}, "n1", "n2")
        life.pods(2, "b", wait=60)

        assert life.running("b") == 2
        assert victims(life) == {"elastic": 2}


def test_one_gang_is_broken_and_not_two() -> None:
    with Life(*SHARES, grace=5, default_preemption=False) as life:
        gangs(life, {"one": 4, "two": 4}, "n", "n")
        life.pod("mine", "b", cpu=3, wait=60)

        assert life.running("b") == 1
        assert len(victims(life)) == 1
