"""Random life with reservations: no pod is lost, nothing spins, and nothing is kept for those that do not wait."""

import random

import pytest

from scheduler import framework as fw
from scheduler.config.types import GroupBackfill
from scheduler.testing import a_node
from tests.unit.groups.reservations.stage import Stage


class Life:
    """Pods, groups and nodes that come and go, and settings that change."""

    def __init__(self, seed: int) -> None:
        self.random, self.stage, self.made = random.Random(seed), Stage(nodes=3), 0

    async def step(self) -> None:
        happens = self.random.choice(
            (self.pod_comes, self.pod_comes, self.group_comes, self.pod_ends, self.pod_ends, self.node_changes)
        )
        happens()
        if self.random.random() < 0.1:
            self.stage.use(self.random.choice((0.0, 30.0, 60.0)), self.random.choice(tuple(GroupBackfill)))
        await self.stage.wait(self.random.choice((1.0, 5.0, 20.0)))
        self.check()

    def pod_comes(self) -> None:
        self.made += 1
        deadline = self.random.choice((None, 10, 100, 1_000))
        priority = self.random.choice((0, 0, 3))
        self.stage.small(f"pod-{self.made}", self.random.choice(("500m", "1", "2")), deadline, priority=priority)

    def group_comes(self) -> None:
        self.made += 1
        size, priority = self.random.randint(1, 4), self.random.choice((0, 2))
        cpu = self.random.choice(("1", "2"))
        self.stage.annotated(size, size, f"group-{self.made}", requests={"cpu": cpu}, priority=priority)

    def pod_ends(self) -> None:
        if pods := sorted(self.stage.engine.pods.values(), key=lambda pod: pod.uid):
            self.stage.end(self.random.choice(pods))

    def node_changes(self) -> None:
        name, handlers = f"n{self.random.randrange(4)}", self.stage.engine.handlers
        node = self.stage.engine.cache.table.node(name)
        if node is not None and self.random.random() < 0.3:
            handlers.node_deleted(node)
        else:
            self.stage.under_test.see(a_node(name, cpu=self.random.choice((2, 4))))

    def check(self) -> None:
        stage, reservation = self.stage, self.stage.engine.group_parts.reserved.reservation
        stage.under_test.check()
        assert (reservation is None) == (stage.reservations.reserved is None)
        if reservation is not None:
            members = stage.engine.group_parts.groups.members_by_group
            assert members.some_unscheduled(reservation.group, 1), "it does not wait"
            assert all(amount > 0 for amounts in reservation.kept.values() for amount in amounts)

    def could_run(self, pod: fw.Pod) -> bool:
        """Return whether a node has space that is not kept for those who wait until their victims are gone."""
        table, nominated = self.stage.engine.cache.table, self.stage.engine.nominator.nodes
        free = table.allocatable("cpu") - table.requested("cpu")
        rows = {name: table.row_of(name) for name in table.node_names() if name not in nominated}
        return any(row is not None and free[row] >= pod.requests["cpu"] for row in rows.values())


@pytest.mark.parametrize("seed", range(4))
async def test_in_the_end_all_run_that_fit(seed: int) -> None:
    life = Life(seed)
    for _ in range(80):
        await life.step()

    life.stage.use(seconds=0)
    for _ in range(3):
        await life.stage.wait(20)

    alone = [pod for pod in life.stage.engine.pods.values() if not pod.group_annotations and not pod.node_name]
    waiting = [pod for pod in alone if not life.stage.engine.cache.is_assumed(pod.uid)]
    assert life.stage.engine.group_parts.reserved.reservation is None
    assert [str(pod) for pod in waiting if life.could_run(pod)] == []
