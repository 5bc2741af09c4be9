"""NodeDeclaredFeatures: what kubelets say that they can do."""

from typing import Any

import pytest

from plugins.node_declared_features import NOT_DECLARED, NodeDeclaredFeatures, required_features
from scheduler import framework as fw
from scheduler.framework.events import NODE_ADD, UNSCHEDULABLE_POD_UPDATE
from scheduler.testing import node_from_dict, pod_from_dict
from tests.unit.plugins.cluster import a_cluster, refusals
from tests.unit.plugins.hints import wakes

RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
RULES = {"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
FEATURES_CHANGED = fw.ClusterEvent(fw.NODE, fw.Action.UPDATE_NODE_DECLARED_FEATURE)


def a_pod(uid: str = "u", **spec: Any) -> fw.Pod:
    return pod_from_dict({"metadata": {"name": "pod", "uid": uid}, "spec": spec})


def a_node(name: str, *features: str) -> fw.Node:
    return node_from_dict({"metadata": {"name": name}, "status": {"declaredFeatures": list(features)}})


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        pytest.param({}, set(), id="nothing"),
        pytest.param({"hostNetwork": True, "hostUsers": False}, {USERS}, id="the host's network but not its users"),
        pytest.param({"hostNetwork": True, "hostUsers": True}, set(), id="the host's network and its users"),
        pytest.param({"hostNetwork": True}, set(), id="the host's network, users by default"),
        pytest.param({"hostUsers": False}, set(), id="users of its own"),
        pytest.param({"containers": [RULES]}, {RESTART}, id="a container that restarts all"),
        pytest.param({"initContainers": [RULES]}, {RESTART}, id="an init container that restarts all"),
        pytest.param({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, set(), id="restarts itself"),
    ],
)
def test_what_a_pod_needs_follows_from_its_spec(spec: dict[str, Any], features: set[str]) -> None:
    assert required_features(a_pod(**spec)) == features


def test_a_node_is_refused_that_lacks_a_feature() -> None:
    cluster = a_cluster(a_node("none"), a_node("one", USERS), a_node("both", RESTART, "Unknown", USERS))
    pod = a_pod(hostNetwork=True, hostUsers=False, containers=[RULES])

    assert refusals(NodeDeclaredFeatures(), pod, cluster) == {"none": NOT_DECLARED, "one": NOT_DECLARED}
    assert refusals(NodeDeclaredFeatures(), a_pod(), cluster) == {}


def test_preemption_does_not_help() -> None:
    assert fw.unresolvable("node(s) didn't match Pod's required features") == NOT_DECLARED


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        pytest.param(NODE_ADD, None, a_node("n"), True, id="a new node"),
        pytest.param(FEATURES_CHANGED, a_node("n"), a_node("n", USERS), True, id="other features"),
        pytest.param(FEATURES_CHANGED, a_node("n", USERS), a_node("n", USERS), False, id="the same features"),
    ],
)
def test_a_node_helps_that_declares_something_new(
    event: fw.ClusterEvent, old: fw.Node | None, new: fw.Node, expected: bool
) -> None:
    assert wakes(NodeDeclaredFeatures(), a_pod(), event, old, new) == expected


def test_an_update_helps_the_pod_that_needs_something_else_now() -> None:
    before, after = a_pod(containers=[RULES]), a_pod(containers=[{}])

    assert wakes(NodeDeclaredFeatures(), before, UNSCHEDULABLE_POD_UPDATE, before, after)
    assert not wakes(NodeDeclaredFeatures(), before, UNSCHEDULABLE_POD_UPDATE, before, a_pod(containers=[RULES]))
    assert not wakes(NodeDeclaredFeatures(), a_pod("other"), UNSCHEDULABLE_POD_UPDATE, before, after)
