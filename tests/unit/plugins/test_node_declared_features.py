"""NodeDeclaredFeatures: what kubelets say that they can do."""

from typing import Any

import pytest

from plugins.node_declared_features import NOT_DECLARED, NodeDeclaredFeatures, required_features
from scheduler import framework as fw
from scheduler.framework.events import NODE_ADD, TARGET_POD_UPDATE
from scheduler.testing import node_from_dict, pod_from_dict
from tests.controlplane import objects
from tests.unit.plugins.cluster import a_cluster, refusals
from tests.unit.plugins.hints import wakes

RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
MOUNT_OPTIONS = "VolumeBindMountOptions"
NO_EXEC = {"volumeMounts": [{"name": "v"}, {"name": "w", "bindMountOptions": ["noexec"]}]}
RULES = {"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
FEATURES_CHANGED = fw.ClusterEvent(fw.NODE, fw.Action.UPDATE_NODE_DECLARED_FEATURE)


def with_spec(uid: str = "u", **spec: Any) -> fw.Pod:
    whole = objects.a_pod("pod", **spec)
    whole["metadata"]["uid"] = uid
    return pod_from_dict(whole)


def declaring(name: str, *features: str) -> fw.Node:
    whole = objects.a_node(name)
    whole["status"]["declaredFeatures"] = list(features)
    return node_from_dict(whole)


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
        pytest.param({"containers": [NO_EXEC]}, {MOUNT_OPTIONS}, id="a container with options of a bind mount"),
        pytest.param({"initContainers": [NO_EXEC]}, {MOUNT_OPTIONS}, id="an init container with such options"),
        pytest.param(
            {"containers": [{"volumeMounts": [{"name": "v", "bindMountOptions": []}]}]}, set(), id="no options"
        ),
    ],
)
def test_what_a_pod_needs_follows_from_its_spec(spec: dict[str, Any], features: set[str]) -> None:
    assert required_features(with_spec(**spec)) == features


def test_a_node_is_refused_that_lacks_a_feature() -> None:
    cluster = a_cluster(declaring("none"), declaring("one", USERS), declaring("both", RESTART, "Unknown", USERS))
    pod = with_spec(hostNetwork=True, hostUsers=False, containers=[RULES])

    assert refusals(NodeDeclaredFeatures(), pod, cluster) == {"none": NOT_DECLARED, "one": NOT_DECLARED}
    assert refusals(NodeDeclaredFeatures(), with_spec(), cluster) == {}


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        pytest.param(NODE_ADD, None, declaring("n"), True, id="a new node"),
        pytest.param(FEATURES_CHANGED, declaring("n"), declaring("n", USERS), True, id="other features"),
        pytest.param(FEATURES_CHANGED, declaring("n", USERS), declaring("n", USERS), False, id="the same features"),
    ],
)
def test_a_node_helps_that_declares_something_new(
    event: fw.ClusterEvent, old: fw.Node | None, new: fw.Node, expected: bool
) -> None:
    assert wakes(NodeDeclaredFeatures(), with_spec(), event, old, new) == expected


def test_an_update_helps_the_pod_that_needs_something_else_now() -> None:
    before, after = with_spec(containers=[RULES]), with_spec(containers=[{}])

    assert wakes(NodeDeclaredFeatures(), before, TARGET_POD_UPDATE, before, after)
    assert not wakes(NodeDeclaredFeatures(), before, TARGET_POD_UPDATE, before, with_spec(containers=[RULES]))
    assert not wakes(NodeDeclaredFeatures(), with_spec("other"), TARGET_POD_UPDATE, before, after)
