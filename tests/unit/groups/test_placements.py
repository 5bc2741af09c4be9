"""Groups that are tried in several placements: the domains of a topology."""

import pytest

from plugins.pod_group_pods_count import PodGroupPodsCount
from plugins.topology_placement import TopologyPlacementGenerator
from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta, PodStatus
from scheduler.config.feature_gates import FeatureGates
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.groups import Groups

GATES = FeatureGates(generic_workload=True, topology_aware_workload_scheduling=True)
RACK = "rack"
NO_VICTIMS = "No preemption victims found for incoming preemptor"


class Racks(Groups):
    """Racks of nodes with room for two pods each; `racks`: name → number of nodes."""

    def __init__(self, gates: FeatureGates = GATES, **racks: int) -> None:
        super().__init__(nodes=0, gates=gates)
        for rack, nodes in racks.items():
            for number in range(nodes):
                self.under_test.see(a_node(f"{rack}-{number}", cpu="2", labels={RACK: rack}))

    def create_in_racks(self, minimum: int, key: str = RACK, priority: int | None = None) -> None:
        self.create_constrained(minimum, key, priority=priority)

    def create_constrained(self, minimum: int, *keys: str, priority: int | None = None) -> None:
        constraints = api.SchedulingConstraints(topology=tuple(api.TopologyConstraint(key=key) for key in keys))
        spec = api.PodGroupSpec(
            scheduling_policy=api.SchedulingPolicy(gang=api.GangPolicy(min_count=minimum)),
            scheduling_constraints=constraints,
            priority=priority,
        )
        self.store(api.PodGroup(metadata=ObjectMeta(name="g", namespace="default", uid="g"), spec=spec))

    @property
    def racks(self) -> set[str]:
        return {node.partition("-")[0] for node in self.bound.values()}


async def test_all_members_go_to_the_one_domain_that_holds_them() -> None:
    groups = Racks(a=1, b=2, c=1)
    groups.create_in_racks(3)

    await groups.try_pods(3)

    assert len(groups.bound) == 3
    assert groups.racks == {"b"}
    assert groups.condition() == ("True", "Scheduled", "")
    count = groups.under_test.count
    assert count("scheduler_generated_placements_total", profile=PROFILE) == 3
    assert count("scheduler_placement_evaluations_total", result="feasible", profile=PROFILE) == 1
    assert count("scheduler_placement_evaluations_total", result="infeasible", profile=PROFILE) == 2


async def test_a_group_that_no_domain_holds_is_refused_though_all_nodes_would() -> None:
    groups = Racks(a=1, b=1)
    groups.create_in_racks(3)

    await groups.try_pods(3)

    text = (
        "pod group is unschedulable, 0/2 placements are available, first placement status: "
        "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    )
    assert groups.problem() == f"{text}, pod group preemption: {NO_VICTIMS}"
    assert groups.bound == {}
    assert groups.under_test.world.notes()[-1].startswith("0/1 nodes are available: 1 Insufficient cpu.")


async def test_a_refused_group_is_woken_by_what_helps_any_domain() -> None:
    groups = Racks(b=1)
    groups.under_test.see(a_node("a-0", cpu="2", labels={RACK: "a"}, unschedulable=True))
    running = a_pod("running", node_name="b-0", requests={"cpu": "2"})
    groups.under_test.see(running)
    groups.create_in_racks(2)
    await groups.try_pods(2)

    groups.under_test.handlers.pod_deleted(running)
    groups.under_test.clock.advance(60)
    groups.engine.queue.flush_backoff_completed()
    await groups.schedule()

    assert groups.racks == {"b"}


async def test_a_topology_that_no_node_has_is_no_placement() -> None:
    groups = Racks(a=2)
    groups.create_in_racks(2, key="block")

    await groups.try_pods(2)

    text = f"no feasible placements found, pod group preemption: {NO_VICTIMS}"
    assert groups.problem() == text
    assert groups.under_test.world.notes() == ["no feasible placements found"] * 2


async def test_of_several_domains_the_one_is_chosen_that_holds_most_members_and_is_fullest() -> None:
    groups = Racks(a=2, b=2, c=1)
    groups.under_test.see(a_pod("there", node_name="b-0", requests={"cpu": "1"}))
    groups.create_in_racks(2)

    await groups.try_pods(3)

    assert groups.racks == {"b"}  # c holds two of the three; b is fuller than a


async def test_a_group_goes_to_the_domain_that_its_members_are_nominated_to() -> None:
    groups = Racks(a=2, b=2)
    groups.under_test.see(a_pod("there", node_name="b-0", requests={"cpu": "1"}))
    groups.create_in_racks(2)

    await groups.try_pods(2, status=PodStatus(nominated_node_name="a-0"))

    assert groups.racks == {"a"}  # b is fuller


async def test_a_member_that_comes_later_joins_the_others() -> None:
    groups = Racks(a=2, b=2)
    groups.under_test.see(a_pod("there", node_name="b-0", requests={"cpu": "1"}))
    groups.create_in_racks(2)
    pods = await groups.try_pods(2)
    assert groups.racks == {"b"}
    groups.under_test.see(*(newer(pod, node_name=groups.bound[pod.name]) for pod in pods))
    groups.under_test.handlers.pod_deleted(a_pod("there", node_name="b-0", requests={"cpu": "1"}))

    await groups.try_pods(1, first=2)

    assert len(groups.bound) == 3
    assert groups.racks == {"b"}


async def test_a_group_without_constraints_has_all_nodes() -> None:
    groups = Racks(a=1, b=1)

    await groups.try_group(minimum=3, pods=3)

    assert len(groups.bound) == 3


@pytest.mark.parametrize("keys", [(RACK,), ()])
async def test_no_member_of_a_constrained_group_evicts_others(keys: tuple[str, ...]) -> None:
    groups = Racks(a=1)
    groups.under_test.see(a_pod("low", node_name="a-0", priority=0, requests={"cpu": "2"}))
    groups.create_constrained(2, *keys)

    await groups.try_pods(2, priority=0)

    assert groups.under_test.world.notes()[0] == "0/1 nodes are available: 1 Insufficient cpu."
    assert not any(hasattr(write, "victim") for write in groups.under_test.world.writes)


async def test_an_error_in_one_placement_ends_the_search() -> None:
    groups = Racks(a=1, b=1)
    groups.create_in_racks(1)
    pods = groups.pods(2)
    groups.under_test.see(newer(pods[0], node_name="a-0"), newer(pods[1], node_name="b-0"))

    await groups.try_pods(1, first=2)

    text = "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: a, b"
    assert groups.problem("SchedulerError") == text


def test_the_plugins_need_their_gate() -> None:
    framework = Groups().under_test.framework

    assert {TopologyPlacementGenerator.name, PodGroupPodsCount.name}.isdisjoint(framework.plugins.by_name)
    assert TopologyPlacementGenerator.name in Racks().under_test.framework.plugins.by_name
