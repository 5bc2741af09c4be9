"""What the hints of all in-tree plugins promise: pods of equal key get equal answers."""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from plugins import IN_TREE
from plugins.node_affinity import NodeAffinity
from plugins.pod_topology_spread.default_selectors import RESOURCES
from plugins.pod_topology_spread.plugin import PodTopologySpread
from plugins.shared.queueing import OncePerEvent
from scheduler import framework as fw
from scheduler.api.devices import Allocation, ClaimMeta, ClaimStatus, ClassSpec, DeviceClass, ResourceClaim
from scheduler.api.groups.pod_groups import PodGroup
from scheduler.api.objects import (
    AWSElasticBlockStore,
    ContainerPort,
    EphemeralVolumeSource,
    GCEPersistentDisk,
    LabelSelector,
    ObjectMeta,
    PersistentVolumeClaimVolumeSource,
    PodStatus,
    TopologySpreadConstraint,
    Volume,
)
from scheduler.api.unstructured import Unstructured
from scheduler.testing import a_node, a_pod, a_requirement, a_term, required, started
from tests.fakes import a_handle
from tests.unit.plugins.spread import a_constraint, a_spread_pod
from tests.unit.plugins.storage import any_object
from tests.unit.plugins.test_contract import by_default

GPU = "example.com/gpu"
ZONE_A = a_term(a_requirement("zone", "In", "a"))
IN_APP = LabelSelector(match_labels={"app": "x"})
SPREADS: Sequence[Sequence[TopologySpreadConstraint]] = (
    (),
    (a_constraint("zone", label_selector=IN_APP),),
    (a_constraint("zone", label_selector=LabelSelector(), match_label_keys=("app",), node_taints_policy="Honor"),),
)
VOLUMES = (
    Volume(name="a", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data")),
    Volume(name="own", ephemeral=EphemeralVolumeSource()),
    Volume(name="b", gce_persistent_disk=GCEPersistentDisk(pd_name="disk")),
    Volume(name="c", aws_elastic_block_store=AWSElasticBlockStore(volume_id="vol-1")),
)
PLUGINS = [by_default(cls) for cls in IN_TREE.values()] + [
    NodeAffinity(added_affinity=required(ZONE_A)),
    started(PodTopologySpread((a_constraint("zone", label_selector=None),), "List"), a_handle()),
]
HINTED = [
    pytest.param(each, id=f"{plugin.name} {each.event.resource}")
    for plugin in PLUGINS
    for each in plugin.events_to_register()
    if each.hint is not None
]


PODS = (fw.ASSIGNED_POD, fw.UNSCHEDULED_POD, fw.TARGET_POD)


def waiting_pods(dice: random.Random) -> Iterator[fw.Pod]:
    """Pods that often agree in what a hint looks at, and seldom in all."""
    tolerations = [fw.Toleration(key=key, operator="Exists") for key in ("a", "b", "node.kubernetes.io/unschedulable")]
    for i in range(120):
        yield a_spread_pod(
            *dice.choice(SPREADS),
            name=f"waiting-{i}",
            labels={"app": dice.choice("xyz")},
            requests=dice.choice([{}, {"cpu": "1"}, {"cpu": "1000m"}, {"cpu": "3", GPU: "1"}, {GPU: "0"}]),
            ports=dice.choice([[], [ContainerPort(host_port=80)], [ContainerPort(host_port=81)]]),
            node_selector=dice.choice([None, {"zone": "a"}]),
            node_affinity=dice.choice([None, required(ZONE_A), required(a_term(a_requirement("zone", "Exists")))]),
            tolerations=dice.sample(tolerations, dice.randint(0, 2)),
            priority=dice.randint(0, 9),
            volumes=dice.sample(VOLUMES, dice.choice([0, 0, 1, 2])),
        )


def observed_events(dice: random.Random, resource: str) -> Iterator[tuple[Any, Any]]:
    """Old and new objects, either of which may be missing."""
    makers: dict[str, Callable[[random.Random], Any]] = {fw.NODE: any_node, **dict.fromkeys(PODS, any_pod)}
    makers |= {fw.DEVICE_CLASS: any_class, fw.RESOURCE_CLAIM: any_claim, fw.NAMESPACE: any_namespace}
    makers[fw.POD_GROUP] = makers[fw.POD_GROUP_V1BETA1] = any_group
    makers |= dict.fromkeys(RESOURCES, any_selector)
    for _ in range(40):
        make = makers.get(resource)
        old, new = (any_object(dice, resource) if make is None else make(dice) for _ in range(2))
        yield from ((None, new), (old, new)) if resource not in PODS else ((old, None), (old, new))


def any_node(dice: random.Random) -> fw.Node:
    return a_node(
        cpu=dice.choice(["0", "2", "4"]),
        pods=dice.choice([0, 110, 120]),
        allocatable=dice.choice([{}, {GPU: "1"}]),
        labels=dice.choice([{}, {"zone": "a"}, {"zone": "b"}]),
        taints=[fw.Taint(key=key, effect="NoSchedule") for key in dice.sample("abc", dice.randint(0, 2))],
        unschedulable=dice.random() < 0.3,
    )


def any_pod(dice: random.Random) -> fw.Pod:
    return a_pod(
        "other",
        labels=dice.choice([None, {"app": "x"}, {"app": "y"}]),
        node_name=dice.choice(["", "n1"]),
        requests=dice.choice([{}, {"cpu": "1"}, {"cpu": "2", GPU: "1"}]),
        ports=dice.choice([[], [ContainerPort(host_port=80)]]),
        volumes=dice.sample(VOLUMES, dice.choice([0, 1])),
        status=PodStatus(nominated_node_name=dice.choice(["", "n1"])),
    )


def any_class(dice: random.Random) -> DeviceClass:
    spec = ClassSpec(extended_resource_name=dice.choice([None, GPU]))
    return DeviceClass(metadata=ObjectMeta(name="gpus"), spec=spec)


def any_claim(dice: random.Random) -> ResourceClaim:
    status = ClaimStatus(allocation=dice.choice([None, Allocation()]))
    return ResourceClaim(metadata=ClaimMeta(name="claim", namespace="default", uid="claim"), status=status)


def any_group(dice: random.Random) -> PodGroup:
    return PodGroup(metadata=ObjectMeta(name=dice.choice("gh"), namespace="default"))


def any_namespace(dice: random.Random) -> Unstructured:
    return Unstructured.from_dict({"metadata": {"name": "default", "labels": dice.choice([{}, {"team": "red"}])}})


def any_selector(dice: random.Random) -> Unstructured:
    spec = {"selector": dice.choice([{}, {"app": "x"}, {"app": "y"}])}
    return Unstructured.from_dict({"metadata": {"name": "web", "namespace": "default"}, "spec": spec})


def answer(registered: fw.ClusterEventWithHint, pod: fw.Pod, old: Any, new: Any) -> fw.QueueingHint:
    """What the hint says, or what an error counts as."""
    assert registered.hint is not None
    try:
        return registered.hint(pod, old, new)
    except AttributeError:  # an update where only a deletion can be: NodePorts looks at the old pod alone
        return fw.QueueingHint.QUEUE


@pytest.mark.parametrize("registered", HINTED)
def test_pods_of_equal_key_get_equal_answers(registered: fw.ClusterEventWithHint) -> None:
    dice = random.Random(11)
    pods = list(waiting_pods(dice))
    assert registered.key is not None, "without a key every waiting pod is asked"

    for old, new in observed_events(dice, registered.event.resource):
        by_key: dict[object, fw.QueueingHint] = {}
        for pod in pods:
            said = answer(registered, pod, old, new)
            assert by_key.setdefault(registered.key(pod), said) == said


@pytest.mark.parametrize("registered", HINTED)
def test_equal_requests_and_tolerations_make_equal_keys(registered: fw.ClusterEventWithHint) -> None:
    one, other = (
        a_pod(name, requests={"cpu": cores}, tolerations=[fw.Toleration(key="a")], ports=[ContainerPort(host_port=80)])
        for name, cores in (("one", "1"), ("other", "1000m"))
    )

    assert registered.key is not None
    assert registered.key(one) == registered.key(other)


def test_what_an_event_changed_is_worked_out_once_for_all_pods() -> None:
    numbers = count(1)
    once = OncePerEvent(lambda old, new: next(numbers))
    old, new, newer = object(), object(), object()

    found = [once(old, new), once(old, new), once(new, newer), once(None, newer), once(old, new)]

    assert found == [1, 1, 2, 3, 4]


def test_what_could_not_be_worked_out_is_tried_again() -> None:
    def fail(old: object, new: object) -> int:
        raise ValueError("unreadable")

    once = OncePerEvent(fail)

    for _ in range(2):
        with pytest.raises(ValueError, match="unreadable"):
            once(None, "new")
