"""Random life with groups of pods: their members are where the watch and the cache say, and no gang is torn.

All that happens to single pods happens here too, to members and others; groups come, go, and come again otherwise. Not
covered: decisions with extenders.
"""

from collections.abc import Iterator
from typing import Final

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import initialize, invariant, rule

from scheduler import framework as fw
from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta
from scheduler.config.feature_gates import FeatureGates
from scheduler.framework.events import POD_GROUP
from scheduler.framework.queued import Entry
from scheduler.groups.apis.kubernetes import KubernetesGroups
from scheduler.testing import a_pod
from tests.unit.cycle import test_cycle_model as single
from tests.unit.cycle.fakes import EngineUnderTest, newer
from tests.unit.groups.groups import GATES, Groups

CORES: Final = {"g": 1, "h": 2}
"""Group → what each of its pods asks for: alike, so that it can be said how many fit."""

PRIORITIES: Final = {"g": 1, "h": 0}

ALL_GATES: Final = FeatureGates(
    generic_workload=True,
    topology_aware_workload_scheduling=True,
)
HOSTNAME: Final = "kubernetes.io/hostname"

names = st.sampled_from(sorted(CORES))
minima = st.sampled_from([None, 1, 2, 2, 3, 4])


class GroupLife(single.CycleLife):
    gates = GATES

    def make_engine(self, *plugins: type[fw.Plugin]) -> EngineUnderTest:
        self.groups = Groups(*plugins, nodes=0, gates=self.gates)
        return self.groups.under_test

    # The cluster.

    @initialize(minimum=minima, count=st.integers(1, 4))
    def there_is_a_group(self, minimum: int | None, count: int) -> None:
        self.a_group_comes_or_goes("g", minimum, is_constrained=False)
        self.members_come("g", count, held=False, gated=False, is_late=False)

    @rule(name=names, minimum=minima, is_constrained=single.rarely)
    def a_group_comes_or_goes(self, name: str, minimum: int | None, is_constrained: bool) -> None:
        old = self.groups.object(name)
        if old is not None:
            self.engine.engine.object_handlers.object_deleted(POD_GROUP, old)
            return
        self.made += 1
        gang = None if minimum is None else api.GangPolicy(min_count=minimum)
        topology = (api.TopologyConstraint(key=HOSTNAME),) if is_constrained else ()
        spec = api.PodGroupSpec(
            scheduling_policy=api.SchedulingPolicy(gang=gang),
            scheduling_constraints=api.SchedulingConstraints(topology=topology) if is_constrained else None,
            priority=PRIORITIES[name],
            disruption_mode=api.TOGETHER if minimum == 2 else "Pod",
        )
        metadata = ObjectMeta(name=name, namespace="default", uid=f"group {self.made}")
        self.groups.store(api.PodGroup(metadata=metadata, spec=spec))

    @rule(
        name=names,
        count=st.integers(1, 4),
        held=single.rarely,
        gated=single.rarely,
        is_late=single.rarely,
    )
    def members_come(self, name: str, count: int, held: bool, gated: bool, is_late: bool) -> None:
        """One of them may be held in Permit, or gated."""
        for number in range(count):
            self.made += 1
            labels = {"held": ""} if held and not number else {}
            gates = ("gate",) if gated and not number else ()
            requests, priority = {"cpu": CORES[name]}, PRIORITIES[name]
            pod = a_pod(
                f"{name}{self.made}",
                group=name,
                requests=requests,
                priority=priority,
                labels=labels,
                gates=gates,
            )
            self.cluster.put(newer(pod))
            if not is_late:
                self.cluster.deliver(pod.uid)

    # The scheduler.

    def decide(self, queued: Entry) -> None:
        """A decision about a group places members of it only, on nodes that take them, and enough for a gang."""
        cache, groups = self.engine.cache, self.engine.framework.handle.pod_groups
        before = {pod.uid for pod in cache.assumed_pods()}
        super().decide(queued)
        placed = [pod for pod in cache.assumed_pods() if pod.uid not in before]
        name, table = KubernetesGroups.name_of(queued.pod), cache.table
        for pod in placed:
            row = table.row_of(pod.node_name)
            assert row is not None
            assert table.requested("cpu")[row] <= table.allocatable("cpu")[row], f"{pod} does not fit"
            assert KubernetesGroups.name_of(pod) == name if name else pod.uid == queued.pod.uid
        if name and placed:
            group = groups.of(queued.pod)
            assert group is not None
            assert groups.members(queued.pod).scheduled_count >= group.minimum, "a gang is torn"

    # What always holds.

    @invariant()
    def members_are_where_the_watch_and_the_cache_say(self) -> None:
        engine, groups = self.engine, self.engine.framework.handle.pod_groups
        known = [pod for pod in engine.handlers.known_pods().values() if KubernetesGroups.name_of(pod)]
        for name in CORES:
            some = a_pod(group=name)
            members = groups.members(some)
            of_group = [pod for pod in known if KubernetesGroups.name_of(pod) == name]
            assumed = {pod.uid for pod in of_group if not pod.node_name and engine.cache.is_assumed(pod.uid)}
            assert members.count == len(of_group)
            assert set(members.assumed) == assumed
            assert {pod.uid for pod in members.unscheduled} == {
                pod.uid for pod in of_group if not pod.node_name and pod.uid not in assumed
            }
            assert {pod.uid for pod in members.scheduled} == assumed | {pod.uid for pod in of_group if pod.node_name}

    # In the end.

    def check_that_it_cannot_run(self, pod: fw.Pod) -> None:
        """A member waits for its group, for others, or for space; one that is held or gated has others wait, too."""
        name = KubernetesGroups.name_of(pod)
        if not name:
            super().check_that_it_cannot_run(pod)
            return
        group: api.PodGroup | None = self.groups.object(name)
        members = list(self.members_of(name))
        waiting = [each for each in members if not (each.node_name or each.is_deleting)]
        if any("held" in each.labels or each.spec.scheduling_gates for each in waiting):
            return
        if group is None or group.spec.scheduling_constraints:
            return
        gang = group.spec.scheduling_policy.gang
        minimum = 0 if gang is None else gang.min_count
        fit = sum(max(0, self.cluster.free_cpu(node)) // (CORES[name] * 1000) for node in self.cluster.nodes.values())
        running = sum(bool(each.node_name) for each in members)
        assert not fit or running + min(fit, len(waiting)) < minimum, f"{len(waiting)} of {name} wait, {fit} fit"

    def members_of(self, name: str) -> Iterator[fw.Pod]:
        return (
            pod for pod in self.cluster.pods.values() if KubernetesGroups.name_of(pod) == name and not pod.is_terminated
        )


class GroupLifeWithAllGates(GroupLife):
    gates = ALL_GATES


TestGroupLife = GroupLife.TestCase
TestGroupLife.settings = settings(max_examples=40, stateful_step_count=40, deadline=None, derandomize=True)
TestGroupLifeWithAllGates = GroupLifeWithAllGates.TestCase
TestGroupLifeWithAllGates.settings = TestGroupLife.settings
