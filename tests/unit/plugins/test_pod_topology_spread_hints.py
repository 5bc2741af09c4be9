"""Which events wake a pod that spread constraints refused: the intent of podtopologyspread/plugin_test.go."""

from typing import Any

import pytest

from plugins.pod_topology_spread.plugin import PodTopologySpread
from scheduler import framework as fw
from scheduler.api.objects import LabelSelector, LabelSelectorRequirement, TopologySpreadConstraint
from scheduler.api.unstructured import Unstructured
from scheduler.testing import a_node
from tests.unit.plugins.spread import HOSTNAME, WEB, Objects, a_constraint, a_spread, a_spread_pod

POD_ADDED = fw.ClusterEvent(fw.ASSIGNED_POD, fw.Action.ADD)
LABELLED = fw.ClusterEvent(fw.TARGET_POD, fw.Action.UPDATE_POD_LABEL)
TOLERATION_ADDED = fw.ClusterEvent(fw.TARGET_POD, fw.Action.UPDATE_POD_TOLERATION)
POD_CHANGED = fw.ClusterEvent(fw.ASSIGNED_POD, fw.Action.UPDATE_OTHER)
NODE_ADDED = fw.ClusterEvent(fw.NODE, fw.Action.ADD)
DB = LabelSelector(match_labels={"app": "db"})
TOLERATION = fw.Toleration(operator="Exists")


def wakes(pod: fw.Pod, event: fw.ClusterEvent, old: Any, new: Any, plugin: PodTopologySpread | None = None) -> bool:
    """Whether the plugin wants `pod` tried again."""
    (registered,) = [each for each in (plugin or a_spread()).events_to_register() if each.event.matches(event)]
    assert registered.hint is not None
    return registered.hint(pod, old, new) is fw.QueueingHint.QUEUE


def a_running(name: str = "other", **fields: Any) -> fw.Pod:
    return a_spread_pod(**{"name": name, "node_name": "a", **fields})


def a_zoned(name: str = "a", **labels: str) -> fw.Node:
    return a_node(name, labels={HOSTNAME: name, **labels} if name else labels)


def test_it_hears_of_pods_and_nodes() -> None:
    pods, itself, nodes, others = a_spread().events_to_register()

    action = fw.Action
    assert pods.event == fw.ClusterEvent(fw.ASSIGNED_POD, action.ADD | action.UPDATE_POD_LABEL | action.DELETE)
    assert itself.event == fw.ClusterEvent(fw.TARGET_POD, action.UPDATE_POD_TOLERATION | action.UPDATE_POD_LABEL)
    assert nodes.event.resource == fw.NODE
    assert nodes.event.action == action.ADD | action.DELETE | action.UPDATE_NODE_LABEL | action.UPDATE_NODE_TAINT
    assert (others.event.resource, others.event.action) == (fw.ASSIGNED_POD, action.UPDATE_OTHER)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (a_running(), True),
        (a_running(labels={"app": "db"}), False),
        (a_running(namespace="team"), False),
        (a_running(node_name=""), False),
        (a_running(node_name="", nominated="a"), True),
        (a_running(node_name="", nominated="a", labels=None), False),
    ],
)
def test_a_pod_that_comes_or_goes_wakes_those_that_count_it(other: fw.Pod, expected: bool) -> None:
    pod = a_spread_pod(a_constraint())

    assert wakes(pod, POD_ADDED, None, other) is expected
    assert wakes(pod, POD_ADDED, other, None) is expected


@pytest.mark.parametrize(
    ("constraints", "old", "new", "expected"),
    [
        ((a_constraint(),), WEB, {**WEB, "tier": "1"}, False),
        ((a_constraint(),), None, WEB, True),
        ((a_constraint(),), WEB, None, True),
        ((a_constraint(),), WEB, {"app": "db"}, True),
        ((a_constraint(),), {"app": "x"}, {"app": "db"}, False),
        ((a_constraint(), a_constraint(HOSTNAME, label_selector=DB)), {"app": "x"}, {"app": "db"}, True),
        ((a_constraint(), a_constraint(HOSTNAME, label_selector=DB)), {"app": "x"}, {"app": "y"}, False),
        ((a_constraint(),), WEB, WEB, False),
    ],
)
def test_new_labels_wake_pods_that_count_it_now_or_no_longer(
    constraints: tuple[TopologySpreadConstraint, ...],
    old: dict[str, str] | None,
    new: dict[str, str] | None,
    expected: bool,
) -> None:
    pod = a_spread_pod(*constraints)

    assert wakes(pod, POD_ADDED, a_running(labels=old), a_running(labels=new)) is expected
    assert wakes(pod, POD_ADDED, a_running(labels=old, node_name=""), a_running(labels=new, node_name="")) is False


def test_labels_and_tolerations_of_the_pod_itself_matter_though_it_runs_nowhere() -> None:
    honours, ignores = a_constraint(node_taints_policy="Honor"), a_constraint()
    for constraint, expected in ((honours, True), (ignores, False)):
        old = a_spread_pod(constraint)
        assert wakes(old, TOLERATION_ADDED, old, a_spread_pod(constraint, tolerations=[TOLERATION])) is expected

    assert wakes(a_spread_pod(ignores), LABELLED, a_spread_pod(ignores, labels=None), a_spread_pod(ignores)) is True
    assert wakes(a_spread_pod(ignores), LABELLED, a_spread_pod(ignores, labels={"x": "y"}), a_spread_pod()) is True


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(a_zoned(), a_zoned(disk="ssd"), True, id="comes to be selected"),
        pytest.param(a_zoned(disk="ssd"), a_zoned(disk="hdd"), True, id="is selected no more"),
        pytest.param(a_zoned(disk="ssd"), a_zoned(disk="ssd", a="b"), False, id="another label"),
    ],
)
def test_a_node_wakes_pods_whose_constraints_count_the_nodes_that_they_select(
    old: fw.Node, new: fw.Node, expected: bool
) -> None:
    honoring, ignoring = (
        a_spread_pod(a_constraint(HOSTNAME, node_affinity_policy=policy), node_selector={"disk": "ssd"})
        for policy in ("Honor", "Ignore")
    )

    assert wakes(honoring, NODE_ADDED, old, new) is expected
    assert wakes(ignoring, NODE_ADDED, old, new) is False


def test_a_pod_wakes_those_that_count_it_when_its_deletion_begins() -> None:
    pod, other = a_spread_pod(a_constraint()), a_running()
    going, elsewhere = a_running(deleting=True), a_running(namespace="team", deleting=True)

    assert wakes(pod, POD_CHANGED, other, going) is True
    assert wakes(pod, POD_CHANGED, going, going) is False
    assert wakes(pod, POD_CHANGED, a_running(namespace="team"), elsewhere) is False


def test_the_objects_behind_default_constraints_wake_the_pods_that_they_are_about() -> None:
    plugin = a_spread(defaulting_type="List", default_constraints=(a_constraint(label_selector=None),))
    service = Unstructured.from_dict(
        {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": dict(WEB)}}
    )
    event = fw.ClusterEvent(fw.SERVICE, fw.Action.DELETE)

    assert wakes(a_spread_pod(), event, service, None, plugin) is True
    assert wakes(a_spread_pod(labels={"app": "db"}), event, service, None, plugin) is False
    assert wakes(a_spread_pod(a_constraint()), event, service, None, plugin) is False
    assert wakes(a_spread_pod(namespace="team"), event, service, None, plugin) is False


def test_default_constraints_count_as_the_pods_own() -> None:
    defaults = (a_constraint(label_selector=None),)
    objects = Objects().service(WEB)
    plugin = a_spread(objects, defaulting_type="List", default_constraints=defaults)

    assert wakes(a_spread_pod(), POD_ADDED, None, a_running(), plugin) is True
    assert wakes(a_spread_pod(), POD_ADDED, None, a_running(labels={"app": "db"}), plugin) is False
    assert wakes(a_spread_pod(labels={"app": "db"}), POD_ADDED, None, a_running(labels={"app": "db"}), plugin) is False


def test_pods_of_one_key_differ_in_nothing_that_a_hint_looks_at() -> None:
    (event, *_) = a_spread().events_to_register()
    assert event.key is not None
    key = event.key

    assert key(a_spread_pod(a_constraint(), name="p1")) == key(a_spread_pod(a_constraint(), name="p2"))
    assert key(a_spread_pod(a_constraint())) == key(a_spread_pod(a_constraint(), labels={"app": "db"}))
    assert key(a_spread_pod(a_constraint())) != key(a_spread_pod(a_constraint(), namespace="team"))
    assert key(a_spread_pod(a_constraint())) != key(a_spread_pod(a_constraint(HOSTNAME)))
    own = a_constraint(match_label_keys=("version",))
    assert key(a_spread_pod(own, labels={"version": "1"})) != key(a_spread_pod(own, labels={"version": "2"}))
    assert key(a_spread_pod()) == key(a_spread_pod(labels={"app": "db"}))
    assert key(a_spread_pod(a_constraint())) != key(a_spread_pod(a_constraint(), node_selector={"disk": "ssd"}))


def test_the_key_of_a_pod_with_default_constraints_is_what_these_depend_on() -> None:
    defaults = (a_constraint(label_selector=None),)
    (event, *_) = a_spread(defaulting_type="List", default_constraints=defaults).events_to_register()
    assert event.key is not None
    key = event.key

    assert key(a_spread_pod(name="p1")) == key(a_spread_pod(name="p2"))
    assert key(a_spread_pod()) != key(a_spread_pod(labels={"app": "db"}))
    assert key(a_spread_pod()) != key(a_spread_pod(owner=("apps/v1", "ReplicaSet", "web")))


def test_a_selector_that_is_not_valid_has_a_key_and_no_answer() -> None:
    odd = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),))
    pod = a_spread_pod(a_constraint(label_selector=odd))
    (event, *_) = a_spread().events_to_register()
    assert event.key is not None

    assert hash(event.key(pod)) == hash(event.key(pod))
    with pytest.raises(ValueError, match='"Near" is not a valid label selector operator'):
        wakes(pod, POD_ADDED, None, a_running())
