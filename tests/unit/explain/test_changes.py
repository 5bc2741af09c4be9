"""A patch is for the object as it is written, with or without what the API server adds."""

from typing import Any

import jsonpatch
import pytest

from scheduler import framework as fw
from scheduler.api.pods.pod import pod_from_dict
from scheduler.explain.changes import WrittenPod, change

TOLERATION = {"key": "dedicated", "operator": "Exists"}


def a_pod_of(spec: dict[str, Any]) -> fw.Pod:
    return pod_from_dict({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": spec})


def test_a_list_that_is_not_written_is_made_though_the_pod_has_it_by_default() -> None:
    pod = a_pod_of({"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]})
    written: dict[str, Any] = {"spec": {"containers": [{"name": "main"}]}}

    changed, patch = change(
        pod, [fw.Change("add", "/spec/tolerations/-", TOLERATION)], WrittenPod("Pod", "shop", "web", written)
    )

    assert jsonpatch.apply_patch(written, patch)["spec"]["tolerations"] == [TOLERATION]
    assert len(changed.spec.tolerations or ()) == 2


def test_a_request_that_comes_from_a_limit_is_added_where_it_is_not_written() -> None:
    pod = a_pod_of({"containers": [{"name": "main", "resources": {"limits": {"cpu": "3"}, "requests": {"cpu": "3"}}}]})
    written = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "3"}}}]}}
    lower = fw.Change("replace", "/spec/containers/0/resources/requests/cpu", "2000m")

    changed, patch = change(pod, [lower], WrittenPod("Pod", "shop", "web", written))

    resources = jsonpatch.apply_patch(written, patch)["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "3"}, "requests": {"cpu": "2000m"}}
    assert changed.requests["cpu"] == 2000


def test_the_patch_of_a_template_leads_to_it() -> None:
    spec = {"containers": [{"name": "main"}], "nodeSelector": {"disk": "ssd"}}
    deployment = {"spec": {"template": {"spec": spec}}}
    written = WrittenPod("Deployment", "shop", "web", deployment["spec"]["template"], "/spec/template")

    _, patch = change(a_pod_of(spec), [fw.Change("remove", "/spec/nodeSelector/disk")], written)

    assert jsonpatch.apply_patch(deployment, patch)["spec"]["template"]["spec"]["nodeSelector"] == {}


def test_what_is_not_written_cannot_be_removed() -> None:
    """It comes from elsewhere, such as a RuntimeClass."""
    pod = a_pod_of({"nodeSelector": {"disk": "ssd"}})

    with pytest.raises(ValueError, match="there is no nodeSelector"):
        change(pod, [fw.Change("remove", "/spec/nodeSelector/disk")], WrittenPod("Pod", "shop", "web", {"spec": {}}))


def test_several_items_of_a_list_are_removed_whatever_their_order() -> None:
    spec = {"tolerations": [{"key": "a"}, {"key": "b"}, {"key": "c"}]}
    removals = [fw.Change("remove", f"/spec/tolerations/{place}") for place in (0, 2)]

    changed, patch = change(a_pod_of(spec), removals)

    assert [each.key for each in changed.spec.tolerations or ()] == ["b"]
    assert jsonpatch.apply_patch({"spec": spec}, patch)["spec"]["tolerations"] == [{"key": "b"}]
