"""Pods as JSON, for plugins that read more than scheduling does."""

import json
from typing import Any

import msgspec
import pytest

from scheduler.api.decoding import Unreadable
from scheduler.api.pods.pod import Pod, decode_pod, keep_raw_pod
from scheduler.api.wording.folding import fold
from scheduler.framework import Aspect
from scheduler.runtime.changes import pod_changes
from scheduler.testing import a_cluster, a_node, a_pod, pod_from_dict

WEB: dict[str, Any] = {
    "metadata": {"name": "web", "uid": "u", "annotations": {"tier": "gold"}},
    "spec": {"hostname": "www", "containers": [{"name": "main", "command": ["run"]}]},
    "status": {"qosClass": "Burstable"},
}


def stored(data: bytes) -> Pod:
    pod = decode_pod(data)
    keep_raw_pod(pod, data)
    return pod


def test_a_raw_pod_is_what_was_sent_without_its_kind_and_managed_fields() -> None:
    metadata = {**WEB["metadata"], "managedFields": [{"manager": "kubectl"}]}

    pod = stored(json.dumps({"kind": "Pod", "apiVersion": "v1", **WEB, "metadata": metadata}).encode())

    assert pod.raw == WEB
    assert pod.annotations == {"tier": "gold"}


def test_a_raw_pod_cannot_be_written_to_at_any_depth() -> None:
    raw: Any = pod_from_dict(WEB).raw

    with pytest.raises(TypeError, match="read-only"):
        raw["spec"]["containers"][0]["command"].append("fast")
    with pytest.raises(TypeError, match="read-only"):
        raw["metadata"]["annotations"]["tier"] = "lead"


@pytest.mark.parametrize("annotations", [{}, {"annotations": None}])
def test_annotations_are_never_none(annotations: dict[str, Any]) -> None:
    assert pod_from_dict({"metadata": {"name": "web", **annotations}}).annotations == {}


@pytest.mark.parametrize("attribute", ["raw", "annotations"])
def test_reading_a_pod_without_json_names_the_missing_line(attribute: str) -> None:
    with pytest.raises(LookupError, match=r"add `reads_raw_pods: ClassVar\[bool\] = True` to the plugin"):
        getattr(a_pod(), attribute)


def test_a_pod_that_is_bound_keeps_its_json() -> None:
    assert pod_from_dict(WEB).bound_to("n").raw == WEB


def test_json_that_is_nested_too_deeply_can_be_read() -> None:
    deep = b'{"metadata": {"name": "web", "odd": ' + b"[" * 3000 + b"]" * 3000 + b"}}"

    assert stored(fold(deep)).raw["metadata"]["name"] == "web"


def test_json_of_something_else_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        keep_raw_pod(a_pod(), b"[]")


def test_a_change_of_what_only_json_has_is_an_event_unless_it_is_of_version_or_status() -> None:
    def changes(**changed: Any) -> list[str]:
        return [event.label for event in pod_changes(pod_from_dict(WEB), pod_from_dict({**WEB, **changed}))]

    assert changes(spec={**WEB["spec"], "hostname": "ftp"}) == ["TargetPodUpdate"]
    assert changes(metadata={**WEB["metadata"], "annotations": {}}) == ["TargetPodUpdate"]
    assert changes(metadata={**WEB["metadata"], "resourceVersion": "2", "generation": 5}) == []
    assert changes(status={}) == []


def test_a_pod_whose_json_is_kept_from_now_on_has_changed() -> None:
    pod = pod_from_dict(WEB)

    assert pod.has_changed_raw(msgspec.structs.replace(pod, raw_json=b""))


def test_stored_answers_follow_the_json_of_pods_on_nodes() -> None:
    old, new = (a_pod("web", annotations={"tier": tier}) for tier in ("gold", "lead"))
    nodes = a_cluster(a_node("n"), pods={"n": [old]})
    log = nodes.change_log(Aspect.PODS)
    before = log.position

    nodes.replace_pod("n", old, new)

    assert list(log.since(before) or ()) == [0]
