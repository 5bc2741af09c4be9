"""The victims for a group of alike pods are those that are found by deciding about it again and again."""

import random
from typing import Any

import pytest

from plugins.default_preemption import pod_groups as victims
from scheduler import framework as fw
from scheduler.api.objects import ContainerPort
from scheduler.cycle.steps import Steps, in_one_go
from scheduler.groups import preemption
from scheduler.groups.counting import counted
from scheduler.testing import a_node, a_pod, an_object
from tests.fakes import a_plugin
from tests.unit.groups.groups import Groups
from tests.unit.groups.test_preemption import GATES, Preempting


def a_cluster(seed: int) -> Preempting:
    """Nodes that pods of several priorities have filled, and a gang."""
    chance = random.Random(seed)
    groups = Preempting(nodes=0)
    nodes = [f"n{number}" for number in range(chance.randint(1, 8))]
    for name in nodes:
        taints = [fw.Taint("for", "others", "NoSchedule")] if chance.random() < 0.15 else []
        cpu, pods, labels = chance.choice("248"), chance.choice(("3", "5", "110")), {"kind": chance.choice("ab")}
        groups.under_test.see(a_node(name, taints=taints, labels=labels, cpu=cpu, memory="8Gi", pods=pods))
    groups.create_disrupted_together("together", priority=chance.randint(0, 3))
    for number in range(chance.randint(0, 30)):
        group = "together" if chance.random() < 0.2 else ""
        groups.run_pod(
            f"low-{number}",
            chance.choice(nodes),
            priority=chance.randint(0, 4),
            start=number + 1,
            requests={"cpu": chance.choice(("0", "500m", "1", "2")), "memory": chance.choice(("0", "1Gi", "3Gi"))},
            ports=[ContainerPort(host_port=80)] if chance.random() < 0.2 else [],
            labels={"app": chance.choice("xy")},
            group=group,
        )
    if chance.random() < 0.5:
        spec, status = {"selector": {"matchLabels": {"app": "x"}}}, {"disruptionsAllowed": chance.randint(0, 2)}
        budget = an_object("budget", namespace="default", spec=spec, status=status)
        groups.engine.object_handlers.object_changed("policy/PodDisruptionBudget", budget)
    members = chance.randint(1, 8)
    groups.create(minimum=chance.choice((None, members, max(1, members - 2))), priority=4)
    groups.pods(
        members,
        requests={"cpu": chance.choice(("1", "2", "1500m")), "memory": chance.choice(("0", "2Gi"))},
        ports=[ContainerPort(host_port=80)] if chance.random() < 0.2 else [],
        node_selector={"kind": "a"} if chance.random() < 0.3 else None,
    )
    return groups


def never_counted(*_: object, is_charged: bool) -> Steps[None]:
    yield


async def outcome(groups: Preempting) -> tuple[list[str], object, list[str]]:
    await groups.schedule()
    groups.check()
    return groups.victims, groups.condition(), sorted(groups.under_test.world.notes())


@pytest.mark.parametrize("seed", range(150))
async def test_counting_finds_what_deciding_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await outcome(a_cluster(seed))

    monkeypatch.setattr(preemption, "counted", never_counted)

    assert found == await outcome(a_cluster(seed))


def quick(groups: Groups, pods: list[fw.Pod]) -> object:
    engine = groups.engine
    group = groups.under_test.framework.handle.pod_groups.of(pods[0])
    assert group is not None
    framework = groups.under_test.framework
    return in_one_go(counted(framework, engine.cache, None, group, pods, lambda pod: True, is_charged=False))


def test_alike_pods_are_counted() -> None:
    groups = Preempting(nodes=2)
    groups.create(minimum=3, priority=10)

    assert quick(groups, groups.pods(3)) is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"requests": {"cpu": "2"}},
        {"node_selector": {"a": "b"}},
        {"tolerations": [fw.Toleration(operator="Exists")]},
        {"ports": [ContainerPort(host_port=80)]},
    ],
)
def test_pods_that_differ_in_what_a_plugin_looks_at_are_not_counted(fields: dict[str, Any]) -> None:
    groups = Preempting(nodes=2)
    groups.create(minimum=3, priority=10)

    assert quick(groups, groups.pods(2) + groups.pods(1, first=2, **fields)) is None


def test_pods_that_other_pods_keep_away_are_not_counted() -> None:
    groups = Preempting(nodes=2)
    groups.create(minimum=3, priority=10)
    groups.engine.nominator.add(a_pod("nominated", priority=20), "n0")

    assert quick(groups, groups.pods(3)) is None


@pytest.mark.parametrize("kind", [fw.FilterPlugin, fw.ReservePlugin, fw.PermitPlugin, fw.PreFilterPlugin])
def test_with_plugins_of_others_pods_are_not_counted(kind: type[fw.Plugin]) -> None:
    def nothing(*_: object) -> None:
        return None

    methods = dict.fromkeys(("filter", "reserve", "unreserve", "permit", "pre_filter"), nothing)
    groups = Groups(a_plugin("Foreign", kind, **methods), gates=GATES)
    groups.create(minimum=3, priority=10)

    assert quick(groups, groups.pods(3)) is None


async def test_a_group_of_unlike_pods_for_which_too_many_might_leave_evicts_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = Preempting(nodes=2)
    for number, node in enumerate(("n0", "n0", "n1", "n1")):
        groups.run_pod(f"low-{number}", node)
    groups.create(minimum=3, priority=10, pods=2)
    groups.pods(1, first=2, requests={"cpu": "1", "memory": "1"})
    monkeypatch.setattr(victims, "MAX_DECISIONS", 3)

    found, condition, _ = await outcome(groups)

    assert found == []
    text = "pod group preemption: preemption takes too long for so many pods that are not alike"
    released = "deallocation and deletion of ResourceClaims completed"
    refused = "minCount (3) cannot be satisfied: 0 scheduled, 2 remaining"
    assert condition == ("False", "Unschedulable", f"{refused}, {released}, {text}")
