"""NodeResourcesFit: which events help a pod that found too little room."""

import pytest

from plugins.node_resources.fit import NodeResourcesFit
from scheduler import framework as fw
from scheduler.api.devices import ClassSpec, DeviceClass
from scheduler.api.objects import ContainerStatus, ObjectMeta, PodStatus, ResourceRequirements
from scheduler.api.unstructured import Unstructured
from scheduler.testing import a_container, a_node, a_pod
from tests.unit.plugins.hints import NODE_ADDED, NODE_RESIZED, POD_SCALED_DOWN, wakes

GPU = "example.com/gpu"
CLASS_ADDED = fw.ClusterEvent(fw.DEVICE_CLASS, fw.Action.ADD)
CLASS_UPDATED = fw.ClusterEvent(fw.DEVICE_CLASS, fw.Action.UPDATE)


ONE_CORE = a_pod("waiting", requests={"cpu": "1"})


def test_a_resize_frees_nothing_before_the_kubelet_has_done_it() -> None:
    def resized(actuated: str) -> fw.Pod:
        has = ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": actuated}))
        return a_pod("running", node_name="n1", requests={"cpu": "1"}, status=PodStatus(container_statuses=(has,)))

    before = a_pod("running", node_name="n1", requests={"cpu": "2"}, status=resized("2").status)

    assert not wakes(NodeResourcesFit(), ONE_CORE, POD_SCALED_DOWN, before, resized("2"))
    assert wakes(NodeResourcesFit(), ONE_CORE, POD_SCALED_DOWN, resized("2"), resized("1"))


def test_a_pod_without_a_node_frees_nothing_but_may_help_itself() -> None:
    less = a_pod("waiting", requests={"memory": "1Gi"})

    assert not wakes(NodeResourcesFit(), a_pod("third"), POD_SCALED_DOWN, ONE_CORE, less)
    assert wakes(NodeResourcesFit(), ONE_CORE, POD_SCALED_DOWN, ONE_CORE, less)


@pytest.mark.parametrize(
    ("pod", "node", "expected"),
    [
        pytest.param(a_pod(requests={"cpu": "4"}), a_node(cpu="4"), True, id="it is large enough"),
        pytest.param(a_pod(requests={"cpu": "4"}), a_node(cpu="3999m"), False, id="it is too small"),
        pytest.param(a_pod(requests={GPU: "1"}), a_node(), False, id="it has nothing of that resource"),
        pytest.param(a_pod(requests={GPU: "0"}), a_node(), True, id="the pod asks for none of it"),
        pytest.param(a_pod(), a_node(pods=0), False, id="it takes no pods"),
        pytest.param(a_pod(), a_node(cpu="0", memory="0", pods=1), True, id="the pod asks for nothing"),
        pytest.param(
            a_pod(pod_requests={"cpu": "5"}, containers=[a_container(requests={"cpu": "1"})]),
            a_node(cpu="4"),
            False,
            id="it is too small for the pod as a whole",
        ),
        pytest.param(a_pod(requests={"cpu": "1"}, overhead={"cpu": "4"}), a_node(cpu="4"), False, id="overhead counts"),
    ],
)
def test_a_new_node_helps_that_would_take_the_pod_if_empty(pod: fw.Pod, node: fw.Node, expected: bool) -> None:
    assert wakes(NodeResourcesFit(), pod, NODE_ADDED, None, node) == expected


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(ONE_CORE, a_node(cpu="500m"), a_node(cpu="2"), True, id="it is large enough now"),
        pytest.param(ONE_CORE, a_node(cpu="2"), a_node(cpu="4"), True, id="it was large enough, and has more now"),
        pytest.param(ONE_CORE, a_node(cpu="500m"), a_node(cpu="800m"), False, id="more, yet still too little"),
        pytest.param(ONE_CORE, a_node(cpu="4"), a_node(cpu="2"), False, id="less"),
        pytest.param(ONE_CORE, a_node(cpu="2"), a_node(cpu="500m"), False, id="too little now"),
        pytest.param(ONE_CORE, a_node(), a_node(), False, id="neither more nor less"),
        pytest.param(ONE_CORE, a_node(memory="1Gi"), a_node(memory="2Gi"), False, id="more of something else"),
        pytest.param(ONE_CORE, a_node(), a_node(allocatable={GPU: "1"}), False, id="a resource that it had not"),
        pytest.param(a_pod(requests={GPU: "1"}), a_node(), a_node(allocatable={GPU: "1"}), True, id="a new resource"),
        pytest.param(a_pod(requests={GPU: "0"}), a_node(), a_node(allocatable={GPU: "1"}), False, id="none is wanted"),
        pytest.param(a_pod(), a_node(cpu="1"), a_node(cpu="2"), False, id="more, and the pod asks for nothing"),
        pytest.param(a_pod(), a_node(pods=10), a_node(pods=11), True, id="more pods, and the pod asks for nothing"),
        pytest.param(ONE_CORE, a_node(pods=10), a_node(pods=11), True, id="more pods"),
        pytest.param(ONE_CORE, a_node(pods=10), a_node(pods=11, cpu="0"), False, id="more pods, and too little now"),
        pytest.param(ONE_CORE, a_node(pods=0), a_node(pods=0, cpu="8"), False, id="more, and still no pods"),
    ],
)
def test_a_changed_node_helps_that_has_more_of_what_is_wanted_and_enough(
    pod: fw.Pod, old: fw.Node, new: fw.Node, expected: bool
) -> None:
    assert wakes(NodeResourcesFit(), pod, NODE_RESIZED, old, new) == expected


def test_a_node_helps_that_lacks_ignored_resources_only() -> None:
    plugin = NodeResourcesFit(ignored_resources=(GPU,))

    assert wakes(plugin, a_pod(requests={GPU: "1", "cpu": "1"}), NODE_ADDED, None, a_node())
    assert not wakes(plugin, a_pod(requests={GPU: "1", "cpu": "100"}), NODE_ADDED, None, a_node())


def test_one_set_of_hints_tells_events_apart() -> None:
    registered = NodeResourcesFit().events_to_register()
    hint = next(each.hint for each in registered if each.event.matches(NODE_RESIZED))
    small, large = a_node(cpu="500m"), a_node(cpu="2")

    assert hint is not None
    assert [
        hint(ONE_CORE, old, new) for old, new in ((small, large), (large, small), (None, large), (None, small))
    ] == [
        fw.QueueingHint.QUEUE,
        fw.QueueingHint.SKIP,
        fw.QueueingHint.QUEUE,
        fw.QueueingHint.SKIP,
    ]


def a_class(extended: str | None, name: str = "gpus") -> DeviceClass:
    return DeviceClass(metadata=ObjectMeta(name=name), spec=ClassSpec(extended_resource_name=extended))


WANTS_GPU = a_pod(requests={GPU: "1"})
WANTS_CLASS = a_pod(requests={"deviceclass.resource.kubernetes.io/gpus": "1"})


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(WANTS_GPU, None, a_class(GPU), True, id="a new class of that resource"),
        pytest.param(WANTS_GPU, None, a_class("example.com/fpga"), False, id="a new class of another resource"),
        pytest.param(WANTS_GPU, None, a_class(None), False, id="a new class of none"),
        pytest.param(WANTS_GPU, a_class(None), a_class(GPU), True, id="a class names the resource now"),
        pytest.param(WANTS_GPU, a_class(GPU), a_class(GPU), False, id="a class that named it before"),
        pytest.param(WANTS_GPU, a_class(GPU), a_class(None), False, id="a class names it no more"),
        pytest.param(WANTS_GPU, a_class(""), a_class(None), False, id="an empty name is none"),
        pytest.param(WANTS_CLASS, None, a_class(None), True, id="a new class that the pod asks for by its own name"),
        pytest.param(WANTS_CLASS, None, a_class(None, "nics"), False, id="a new class of another name"),
        pytest.param(WANTS_CLASS, a_class(None), a_class(GPU), False, id="a class of that name was there before"),
    ],
)
def test_a_device_class_helps_that_stands_for_what_the_pod_asks_for(
    pod: fw.Pod, old: Unstructured | None, new: Unstructured, expected: bool
) -> None:
    event = CLASS_ADDED if old is None else CLASS_UPDATED

    assert wakes(NodeResourcesFit(), pod, event, old, new) == expected
