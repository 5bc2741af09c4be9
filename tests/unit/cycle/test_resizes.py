"""Preemption for deferred resizes, with the feature gate InPlacePodVerticalScalingSchedulerPreemption.

The scenarios are those of deferred_resize_preemption_test.go in kube-scheduler 1.37.2's integration tests.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import pytest

import plugins
from plugins.deferred_pod_scheduling import DISABLED, FITS, OTHER_NODE, DeferredPodScheduling
from scheduler import framework as fw
from scheduler.api.objects import NodePodPreemptionPolicy
from scheduler.api.pods.resize import is_deferred, resize_of
from scheduler.config.feature_gates import read_gates
from scheduler.simulate.engine import simulate
from scheduler.testing import a_node, pod_from_dict
from scheduler.testing.scheduler import Scheduler
from tests.fakes.config import config_with
from tests.unit.plugins.cluster import a_cluster

GATE: Final = "InPlacePodVerticalScalingSchedulerPreemption"


def a_scheduler(gate: str = GATE) -> Scheduler:
    gates, _ = read_gates([f"{gate}=true"])
    return Scheduler(config_with(plugins.IN_TREE, name="default-scheduler", gates=gates), plugins.IN_TREE)


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with a_scheduler() as made:
        yield made


def running(name: str, cpu: str, *, priority: int = 0, node: str = "n1", version: int = 1, **fields: Any) -> fw.Pod:
    """A pod on a node; `has`: what its kubelet gives it, if its resize is deferred."""
    has, status = fields.pop("has", None), dict[str, Any](phase="Running")
    if has is not None:
        given = {"cpu": has}
        status |= {
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": fields.pop("reason", "Deferred")}],
            "containerStatuses": [{"name": "c", "allocatedResources": given, "resources": {"requests": given}}],
        }
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"nodeName": node, "priority": priority, "schedulerName": "default-scheduler", "containers": containers}
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    return pod_from_dict({"metadata": metadata, "spec": spec | fields, "status": status})


def a_small_node(name: str = "n1", cpu: str = "300m", *, disables: bool = False) -> fw.Node:
    node = a_node(name, cpu=cpu)
    policy = NodePodPreemptionPolicy(disable_resize_preemption=("operator",)) if disables else None
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, pod_preemption_policy=policy))


def place_in_queue(scheduler: Scheduler, uid: str) -> str:
    pending = scheduler.engine.queue.pending_pods()
    return next((place for place, pods in pending.items() if any(each.pod.uid == uid for each in pods)), "")


def attempts(scheduler: Scheduler, uid: str = "resized") -> int:
    return next(
        each.attempts for pods in scheduler.engine.queue.pending_pods().values() for each in pods if each.pod.uid == uid
    )


@pytest.mark.parametrize(
    ("others", "resized", "disables", "evicted"),
    [
        pytest.param([running("v1", "200m")], {}, False, ["v1"], id="one pod"),
        pytest.param([running("v1", "100m"), running("v2", "100m")], {}, False, ["v1", "v2"], id="several pods"),
        pytest.param([running("v1", "200m")], {"preemptionPolicy": "Never"}, False, [], id="never"),
        pytest.param([], {}, False, [], id="fits"),
        pytest.param([running("v1", "200m")], {}, True, [], id="disabled on the node"),
        pytest.param([running("v1", "200m", priority=100)], {}, False, [], id="none is less important"),
        pytest.param([running("v1", "200m", node="n2")], {}, False, [], id="on another node"),
        pytest.param([running("v1", "200m")], {"reason": "Infeasible"}, False, [], id="infeasible"),
    ],
)
def test_others_are_evicted_for_a_deferred_resize(
    scheduler: Scheduler, others: list[fw.Pod], resized: dict[str, Any], disables: bool, evicted: list[str]
) -> None:
    scheduler.set_node(a_small_node(disables=disables), a_small_node("n2"))
    scheduler.create(*others)

    scheduler.create(running("resized", "300m", priority=100, has="100m", **resized))

    assert sorted(each.name for each in scheduler.evicted) == evicted
    assert bool(place_in_queue(scheduler, "resized")) == (resized.get("reason") is None)
    outcome = scheduler.outcome(running("resized", "300m"))
    assert (outcome.node, outcome.message, outcome.nominated_node) == ("n1", "", "")
    assert not [each for each in scheduler.events if each.pod == "default/resized"]


def test_without_the_gate_resizes_are_the_kubelets() -> None:
    with a_scheduler("ComponentFlagz") as scheduler:
        scheduler.set_node(a_small_node())
        scheduler.create(running("v1", "200m"), running("resized", "300m", priority=100, has="100m"))

        assert not scheduler.evicted
        assert place_in_queue(scheduler, "resized") == ""


def test_once_it_fits_it_waits_for_the_kubelet_and_is_forgotten_when_that_has_acted(scheduler: Scheduler) -> None:
    scheduler.set_node(a_small_node())
    scheduler.create(running("v1", "200m"))
    scheduler.create(running("resized", "300m", priority=100, has="100m"))
    scheduler.advance(20)
    waits, tried = place_in_queue(scheduler, "resized"), attempts(scheduler)

    scheduler.advance(120)
    same = attempts(scheduler)
    scheduler.update(running("resized", "300m", priority=100, version=2))

    assert (waits, tried, same) == ("unschedulable", 2, 2)
    assert place_in_queue(scheduler, "resized") == ""


def test_a_resize_ends_with_its_pod_or_its_profile(scheduler: Scheduler) -> None:
    scheduler.set_node(a_small_node())
    scheduler.create(running("resized", "300m", has="100m"), running("theirs", "300m", has="1m", schedulerName="x"))
    before = [place_in_queue(scheduler, name) for name in ("resized", "theirs")]

    scheduler.delete(running("resized", "300m"))

    assert before == ["unschedulable", ""]
    assert place_in_queue(scheduler, "resized") == ""


def test_a_pod_of_a_group_is_resized_by_itself_whatever_else_it_asks_for(scheduler: Scheduler) -> None:
    spec: dict[str, Any] = {
        "schedulingGroup": {"podGroupName": "job"},
        "schedulingGates": [{"name": "x"}],
        "nodeSelector": {"no": "such node"},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}],
        "resourceClaims": [{"name": "r", "resourceClaimName": "absent"}],
    }
    node = a_small_node()
    tainted = msgspec.structs.replace(
        node.spec, taints=(fw.Taint(key="broken", effect="NoSchedule"),), unschedulable=True
    )
    scheduler.set_node(msgspec.structs.replace(node, spec=tainted))
    scheduler.create(running("v1", "200m"))

    scheduler.create(running("resized", "300m", priority=100, has="100m", **spec))

    assert [each.name for each in scheduler.evicted] == ["v1"]


RESIZED: Final = running("resized", "100m", has="50m")
OTHER: Final = running("other", "200m", priority=100)
ELSEWHERE: Final = running("elsewhere", "200m", priority=100, node="n2")


@pytest.mark.parametrize(
    ("change", "helps"),
    [
        pytest.param(
            lambda s: s.update(running("elsewhere", "100m", priority=100, node="n2", version=2)),
            False,
            id="elsewhere less",
        ),
        pytest.param(
            lambda s: s.update(running("other", "100m", priority=100, version=2)), True, id="other needs less"
        ),
        pytest.param(
            lambda s: s.update(running("other", "250m", priority=100, version=2)), True, id="other needs more"
        ),
        pytest.param(lambda s: s.delete(ELSEWHERE), False, id="a pod elsewhere goes"),
        pytest.param(lambda s: s.delete(OTHER), True, id="a pod goes"),
        pytest.param(lambda s: s.set_node(a_small_node(cpu="1")), True, id="a larger node"),
        pytest.param(lambda s: s.set_node(a_small_node("n2", cpu="1")), False, id="another larger node"),
        pytest.param(lambda s: s.update(running("resized", "80m", has="50m", version=2)), True, id="it needs less"),
        pytest.param(lambda s: s.update(running("resized", "190m", has="50m", version=2)), True, id="it needs more"),
        pytest.param(lambda s: s.set_node(a_small_node(cpu="200m", disables=True)), False, id="disabled"),
    ],
)
def test_a_resize_is_tried_again_when_something_may_help_it(
    scheduler: Scheduler, change: Callable[[Scheduler], None], helps: bool
) -> None:
    scheduler.set_node(a_small_node(cpu="200m"), a_small_node("n2", cpu="500m"))
    scheduler.create(OTHER, ELSEWHERE, RESIZED)
    scheduler.advance(20)
    before = attempts(scheduler)

    change(scheduler)
    scheduler.advance(20)

    assert (attempts(scheduler) > before) == helps


@pytest.mark.parametrize("is_new", [False, True])
def test_a_node_that_allows_evictions_again_helps(scheduler: Scheduler, is_new: bool) -> None:
    scheduler.set_node(a_small_node(disables=True))
    scheduler.create(running("v1", "200m"), running("resized", "300m", priority=100, has="100m"))
    scheduler.advance(20)
    before = attempts(scheduler)

    if is_new:
        scheduler.remove_node(a_small_node())
    scheduler.set_node(a_small_node())
    scheduler.advance(20)

    assert attempts(scheduler) > before
    assert [each.name for each in scheduler.evicted] == ["v1"]


def test_a_resize_that_fitted_is_looked_at_again_when_a_pod_takes_the_space(scheduler: Scheduler) -> None:
    scheduler.set_node(a_small_node())
    scheduler.create(running("resized", "200m", priority=100, has="100m"))
    scheduler.advance(20)

    scheduler.create(running("late", "200m"))
    scheduler.advance(20)

    assert [each.name for each in scheduler.evicted] == ["late"]


def test_the_plugin_names_its_reasons_and_is_nothing_to_other_pods() -> None:
    nodes = a_cluster(a_small_node("n1"), a_small_node("n2"), a_small_node("n3", disables=True))
    plugin, state = DeferredPodScheduling(), fw.CycleState()
    rows = nodes.in_use.nonzero()[0]

    def reasons(pod: fw.Pod) -> list[fw.Status | None]:
        codes = plugin.filter_nodes(state, pod, nodes, rows)
        return [] if codes is None else [plugin.status_of(state, pod, int(code)) if code else None for code in codes]

    resize, other = resize_of(RESIZED), running("other", "1")

    assert reasons(resize) == [None, OTHER_NODE, OTHER_NODE]
    assert reasons(resize_of(running("r", "1", node="n3", has="1m"))) == [OTHER_NODE, OTHER_NODE, DISABLED]
    assert (plugin.permit(state, resize, "n1"), plugin.permit(state, other, "n1")) == (FITS, None)
    assert (plugin.pre_filter(state, resize, nodes), plugin.pre_filter(state, other, nodes)) == (None, fw.SKIP)
    assert reasons(other) == []
    assert (plugin.sign(resize), plugin.sign(other)) == (None, ())


def test_the_first_condition_of_the_type_counts() -> None:
    assert [is_deferred(each) for each in (RESIZED, OTHER, running("r", "1", has="1m", reason="Infeasible"))] == [
        True,
        False,
        False,
    ]


def test_a_simulation_leaves_resizes_to_the_kubelets() -> None:
    gates, _ = read_gates([f"{GATE}=true"])
    config = config_with(plugins.IN_TREE, name="default-scheduler", gates=gates)
    pods = [running("v1", "100m"), running("resized", "300m", priority=100, has="100m")]

    assert simulate([a_small_node()], pods, config, plugins.IN_TREE)["pods"] == []
