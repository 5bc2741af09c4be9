"""Gangs that have lost pods and each hold nodes that the other lacks."""

import pytest

from scheduler import framework as fw
from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.api.objects import Affinity, Taint
from scheduler.config.types import LoadmasterSettings
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.testing import a_node, a_requirement, a_term, required
from tests.unit.cycle.fakes import newer
from tests.unit.plugins.preemption import a_budget
from tests.unit.quota.in_time import Life

SECONDS = 1_800 + 300
"""The setting, and the time until what waits is tried again in any case."""


class Damaged(Life):
    """Two gangs of three that have lost a pod each, whose nodes others have taken."""

    def __init__(self, *without: str, second: int = 3, priority: int = 0, grace: float = 10) -> None:
        """`second`: the size of the second gang. `priority`: that of its first pods."""
        super().__init__(grace=grace, without=("CapacityScheduling", *without))
        self._second, self._priority = second, priority
        self.said: list[tuple[str, str, str]] = []
        """Events of groups: group, reason, note."""

    def group_event(self, group: PodGroup, member: fw.Pod, type_: str, reason: str, action: str, note: str) -> None:
        self.said.append((group.name, reason, note))

    def lose(self) -> None:
        """Let both have their nodes, lose a pod, and have it created again."""
        sizes = {"first": 3, "second": self._second}
        self.set_node(a_node("n1", cpu=3), a_node("n2", cpu=self._second))
        for name, size in sizes.items():
            self.group(name, size, "default", priority=self._priority if name == "second" else 0)
            self.advance(5)
        assert self.engine.group_parts.cycle is not None
        self.engine.group_parts.cycle._events = self
        for name in sizes:
            self.end(f"default/{name}-0")
            self.pod(f"urgent-{name}", "other", priority=100)
            self.advance(5)
        for name in sizes:
            self.pod(f"{name}-new", labels={POD_GROUP_LABEL: name}, team="default")
            self.advance(5)

    def text(self, name: str) -> str:
        """What the last decision about a group says."""
        assert self.engine.group_parts.cycle is not None
        return next(
            each.text for each in self.engine.group_parts.cycle.records._records.values() if each.group.name == name
        )


def test_after_a_time_the_last_that_was_damaged_gives_way() -> None:
    with Damaged() as life:
        life.lose()
        life.advance(1_800 - 60)
        assert life.victims == []

        life.advance(360)

        assert sorted(life.victims) == ["default/second-1", "default/second-2"]
        assert life.with_node("default") == ["default/first-1", "default/first-2", "default/first-new"]
        note = "the 2 of its pods that have a node are evicted for default/first: both are incomplete"
        assert ("second", "PodGroupGivenUp", note) in life.said
        assert life.engine.group_parts.cycle is not None
        assert life.engine.group_parts.cycle._metrics.given_up.value == 1


def test_it_leaves_as_a_whole_also_nodes_on_which_the_other_one_may_not_be() -> None:
    with Damaged() as life:
        life.lose()
        of_second = [pod for pod in life.engine.cache.counted_pods() if pod.name.startswith("second")]
        assert {pod.node_name for pod in of_second} == {"n1", "n2"}
        term = a_term(fields=[a_requirement("metadata.name", "In", "n1")])
        only_there = Affinity(node_affinity=required(term))
        life.create(newer(life.engine.pods["default/first-new"], affinity=only_there))

        life.advance(SECONDS)

        assert sorted(life.victims) == ["default/second-1", "default/second-2"]


def test_the_one_of_which_fewer_pods_run_gives_way() -> None:
    with Damaged(second=4) as life:
        life.lose()

        life.advance(SECONDS)

        assert sorted(life.victims) == ["default/first-1", "default/first-2"]
        assert len(life.with_node("default")) == 4


def test_the_one_whose_pods_run_with_a_lower_priority_gives_way() -> None:
    with Damaged(priority=1) as life:
        life.lose()

        life.advance(SECONDS)

        assert sorted(life.victims) == ["default/first-1", "default/first-2"]


def test_groups_that_lack_nothing_but_pods_are_left_alone() -> None:
    with Damaged() as life:
        life.lose()
        life.end("default/first-new")

        life.advance(SECONDS)

        assert life.victims == []


def test_nothing_is_given_up_where_it_is_turned_off() -> None:
    with Damaged() as life:
        life.engine.group_parts.groups.damaged.use(LoadmasterSettings(damaged_group_seconds=0))
        life.lose()

        life.advance(SECONDS)

        assert life.victims == []
        assert "damaged" not in life.text("first")


@pytest.mark.parametrize(
    ("without", "policy", "budgets", "is_cordoned", "why"),
    [
        pytest.param((), "", 1, False, "a PodDisruptionBudget protects it: default/budget", id="a budget"),
        pytest.param((), "Never", 0, False, "not eligible due to preemptionPolicy=Never.", id="its policy"),
        pytest.param(("DefaultPreemption",), "", 0, False, "DefaultPreemption is not enabled", id="the profile"),
        pytest.param((), "", 0, True, "that would not be enough", id="it is of no use"),
    ],
)
def test_where_it_may_not_be_that_is_said(
    without: tuple[str, ...], policy: str, budgets: int, is_cordoned: bool, why: str
) -> None:
    with Damaged(*without) as life:
        for _ in range(budgets):
            life.put("policy/PodDisruptionBudget", a_budget(0, **{POD_GROUP_LABEL: "second"}))
        life.lose()
        if policy:
            life.create(newer(life.engine.pods["default/first-new"], preemption_policy=policy))
        if is_cordoned:
            life.set_node(a_node("n1", cpu=3, unschedulable=True), a_node("n2", cpu=3, unschedulable=True))

        life.advance(SECONDS)

        note = f"what is left of default/second, damaged as it is, is not evicted for it: {why}"
        assert life.victims == []
        assert life.text("first").endswith(f"; {note}")
        assert any(name == "first" and text.endswith(note) for name, _, text in life.said)


def test_a_group_gets_the_node_that_is_kept_for_it_though_another_victim_is_on_a_dead_one() -> None:
    with Damaged(grace=600) as life:
        life.lose()
        while not life.victims:
            life.advance(5)
        (kept,) = life.engine.nominator.nodes
        of_second = [pod for pod in life.engine.cache.counted_pods() if pod.name.startswith("second")]
        (lost,) = {pod.node_name for pod in of_second} - {kept}
        life.set_node(a_node(lost, cpu=3, taints=(Taint(key="dead", effect="NoExecute"),)))
        life.pod("other", "other")
        life.advance(350)  # it is tried meanwhile

        life.end(*(str(pod) for pod in of_second if pod.node_name == kept), wait=20)

        assert "default/first-new" in life.with_node("default")
