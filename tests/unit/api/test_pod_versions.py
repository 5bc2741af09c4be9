"""What a new version of a pod takes over from the one before, and a pod from another of the same template."""

from typing import Any

import pytest

from scheduler.api.pods.pod import Pod, pod_from_dict

CONTAINER = {"name": "main", "resources": {"requests": {"cpu": "100m"}}, "ports": [{"hostPort": 80}]}


def a_version(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None) -> Pod:
    whole = {"containers": [CONTAINER], **(spec or {})}
    return pod_from_dict({"metadata": {"name": "web", "uid": "u1"}, "spec": whole, "status": status or {}})


def test_a_version_that_is_bound_asks_for_the_same() -> None:
    old = a_version()
    amounts, ports = old.resources, old.host_ports
    new = a_version({"nodeName": "n1"}, {"conditions": [{"type": "PodScheduled", "status": "True"}]})

    new.derive_like(old)

    assert new.resources is amounts
    assert new.host_ports is ports


def test_pods_of_one_template_share_what_they_ask_for_but_not_their_storage() -> None:
    old, new = a_version(), a_version()
    amounts, _ = old.resources, old.storage

    new.share_requests(old)

    assert new.resources is amounts
    assert new._derived.storage is None


def test_pods_of_one_template_keep_equal_parts_once() -> None:
    whole = {
        "metadata": {"name": "web", "uid": "u1", "ownerReferences": [{"uid": "o1"}]},
        "spec": {"containers": [CONTAINER], "tolerations": [{"key": "a"}], "volumes": [{"name": "v"}]},
    }
    old, new = pod_from_dict(whole), pod_from_dict(whole)
    _ = old.resources

    new.share_requests(old)

    for part in ("containers", "tolerations", "volumes"):
        assert getattr(new.spec, part) is getattr(old.spec, part)
    assert new.metadata.owner_references is old.metadata.owner_references


def test_parts_that_differ_stay_their_own() -> None:
    old, new = a_version({"tolerations": [{"key": "a"}]}), a_version({"tolerations": [{"key": "b"}]})
    _ = old.resources

    new.share_requests(old)

    assert new.spec.tolerations is not None
    assert [each.key for each in new.spec.tolerations] == ["b"]


def test_nothing_is_taken_over_that_was_not_worked_out() -> None:
    new = a_version()

    new.derive_like(a_version())

    assert new._derived.resources is None
    assert new.resources.requests == {"cpu": 100}
    assert [port.port for port in new.host_ports] == [80]


RESIZED = {**CONTAINER, "resources": {"requests": {"cpu": "200m"}}}
REPORT = {"name": "main", "resources": {"requests": {"cpu": "300m"}}}


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(a_version({"containers": [RESIZED]}), id="a container was resized"),
        pytest.param(a_version({"containers": [CONTAINER, {"name": "b"}]}), id="a container more"),
        pytest.param(a_version({"initContainers": [RESIZED]}), id="an init container"),
        pytest.param(a_version({"overhead": {"cpu": "1"}}), id="an overhead"),
        pytest.param(a_version({"resources": {"requests": {"cpu": "2"}}}), id="requests of the whole pod"),
        pytest.param(a_version(status={"containerStatuses": [REPORT]}), id="a kubelet reports what a container has"),
        pytest.param(a_version(status={"resources": {"requests": {"cpu": "1"}}}), id="what the pod has is reported"),
    ],
)
def test_a_version_that_may_ask_for_something_else_is_read_again(changed: Pod) -> None:
    old = a_version()
    _ = old.resources
    expected = Pod(metadata=changed.metadata, spec=changed.spec, status=changed.status).resources

    changed.derive_like(old)
    assert changed._derived.resources is None
    assert changed.resources == expected

    old.derive_like(changed)
    assert old.resources.requests == {"cpu": 100}
