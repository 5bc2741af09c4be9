"""What of an object stands in a snapshot."""

import json
from typing import Any

import pytest

from scheduler.api.decoding import Unreadable
from scheduler.framework.nodes.resources import ApiResource
from scheduler.snapshots.aliases import Aliases
from scheduler.snapshots.kept_fields import KINDS, Kind
from scheduler.snapshots.reduction import Reduction

BY_NAME = {kind.name: kind for kind in KINDS}
SECRET = "hunter2"
POD: dict[str, Any] = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "1",
        "resourceVersion": "7",
        "labels": {"team": "red"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "tier": "gold"},
        "managedFields": [{"manager": SECRET}],
    },
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "corp.example/web",
                "command": ["run", SECRET],
                "args": [SECRET],
                "env": [{"name": "PASSWORD", "value": SECRET}],
                "envFrom": [{"secretRef": {"name": SECRET}}],
                "livenessProbe": {"exec": {"command": [SECRET]}},
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
        "volumes": [
            {"name": "a", "secret": {"secretName": SECRET}},
            {"name": "b", "configMap": {"name": SECRET}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "data-web-0"}},
        ],
        "imagePullSecrets": [{"name": SECRET}],
        "serviceAccountName": SECRET,
        "hostAliases": [{"ip": SECRET}],
    },
    "status": {"phase": "Pending", "message": SECRET, "podIP": SECRET},
}


def reduced(
    content: Any, kind: str = "Pod", aliases: Aliases | None = None, *, whole_pods: bool = False
) -> dict[str, Any]:
    reduction = Reduction(aliases, whole_pods=whole_pods)
    made: dict[str, Any] = json.loads(reduction.reduced(json.dumps(content).encode(), BY_NAME[kind]))
    return made


def test_a_pod_keeps_what_decides_and_no_secret() -> None:
    made = reduced(POD)

    assert SECRET not in json.dumps(made)
    assert made["metadata"] == {
        "name": "web-0",
        "namespace": "shop",
        "uid": "1",
        "resourceVersion": "7",
        "labels": {"team": "red"},
    }
    (container,) = made["spec"]["containers"]
    assert container == {"name": "c", "image": "corp.example/web", "resources": {"requests": {"cpu": "1"}}}


def test_pods_are_kept_whole_for_plugins_that_read_raw_pods_but_not_with_other_names() -> None:
    made = reduced(POD, whole_pods=True)

    assert made["spec"] == POD["spec"]
    assert made["status"] == POD["status"]
    assert SECRET not in json.dumps(reduced(POD, aliases=Aliases(), whole_pods=True))


def test_a_whole_pod_has_no_second_copy_of_itself_and_no_managed_fields() -> None:
    made = reduced(POD, whole_pods=True)

    assert made["metadata"]["annotations"] == {"tier": "gold"}
    assert "managedFields" not in made["metadata"]


def test_of_annotations_only_those_are_kept_that_are_read() -> None:
    annotations = {"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/selected-node": "n1", "a": SECRET}
    made = reduced({"metadata": {"name": "a", "annotations": annotations}}, "PersistentVolumeClaim")

    assert made["metadata"]["annotations"].keys() == annotations.keys() - {"a"}


def test_an_anonymous_selected_node_is_still_that_node() -> None:
    aliases = Aliases()
    annotations = {"volume.kubernetes.io/selected-node": "node-1"}
    claim = reduced({"metadata": {"name": "a", "annotations": annotations}}, "PersistentVolumeClaim", aliases)
    node = reduced({"metadata": {"name": "node-1"}}, "Node", aliases)

    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node["metadata"]["name"]


def test_parameters_of_drivers_are_left_out() -> None:
    spec = {"devices": {"requests": [{"name": "gpu"}], "config": [{"opaque": {"parameters": {"key": SECRET}}}]}}

    assert SECRET not in json.dumps(reduced({"metadata": {"name": "a"}, "spec": spec}, "ResourceClaim"))
    assert SECRET not in json.dumps(
        reduced({"metadata": {"name": "a"}, "provisioner": "p", "parameters": {"key": SECRET}}, "StorageClass")
    )


def test_objects_of_a_users_plugin_are_kept_whole_but_for_their_metadata() -> None:
    kind = Kind("Budget", ApiResource("example.com", "v1", "budgets"), "…")
    content = {"metadata": {"name": "a", "annotations": {"x": SECRET}}, "spec": {"limit": 3}}
    made = json.loads(Reduction().reduced(json.dumps(content).encode(), kind))

    assert made == {"apiVersion": "example.com/v1", "kind": "Budget", "metadata": {"name": "a"}, "spec": {"limit": 3}}


@pytest.mark.parametrize("aliases", [None, Aliases()], ids=["as it is", "anonymised"])
@pytest.mark.parametrize(
    "content",
    [
        {"metadata": [], "spec": "a", "status": 1},
        {"metadata": {"name": 1, "labels": ["a"], "ownerReferences": {"a": 1}}},
        {"metadata": {"ownerReferences": [1, {"kind": "Pod", "name": 2}], "labels": {"a": 1}}},
        {"spec": {"containers": {"a": 1}, "affinity": {"nodeAffinity": [1]}, "tolerations": [1, {"key": 2}]}},
        {"spec": {"nodeSelector": {"a": {"b": SECRET}}, "overhead": [[SECRET]]}},
        {"spec": {"volumes": [{"name": [SECRET, {}]}]}},
    ],
)
def test_what_is_odd_is_left_out(content: Any, aliases: Aliases | None) -> None:
    assert SECRET not in json.dumps(reduced(content, aliases=aliases))


def test_what_is_no_object_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        reduced([1])


def test_half_a_character_and_deep_nesting_cost_nothing_else() -> None:
    raw = b'{"metadata": {"name": "a", "x": ' + b"[" * 9000 + b"]" * 9000 + b', "labels": {"a": "\\ud800"}}}'
    made = json.loads(Reduction().reduced(raw, BY_NAME["Pod"]))

    assert made["metadata"]["name"] == "a"
