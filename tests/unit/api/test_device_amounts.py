"""What a pod takes of its node by devices, by its status."""

from typing import Any

import pytest

from scheduler.api.pods.pod import Pod, pod_from_dict

GPU = {"resourceClaimName": "gpu", "containers": ["a", "b"]}
MAPPED = GPU | {"mapping": [{"name": "cpu", "quantity": "2"}, {"name": "hugepages-2Mi", "quantity": "4Mi"}]}
OVERHEAD = GPU | {"overhead": [{"name": "cpu", "perPod": "1", "perContainer": "250m"}]}
REPORTED = {"name": "a", "allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "6"}}}


def with_status(status: dict[str, Any], **spec: Any) -> Pod:
    containers = [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]
    return pod_from_dict({"metadata": {"name": "p"}, "spec": {"containers": containers} | spec, "status": status})


@pytest.mark.parametrize(
    ("pod", "requests"),
    [
        pytest.param(
            with_status({"nodeAllocatableResourceClaimStatuses": [MAPPED]}),
            {"cpu": 3000, "hugepages-2Mi": 4 * 2**20},
            id="what devices stand for",
        ),
        pytest.param(
            with_status({"nodeAllocatableResourceClaimStatuses": [OVERHEAD]}),
            {"cpu": 2500},
            id="what devices cost, for the pod and for each container",
        ),
        pytest.param(
            with_status({"nodeAllocatableResourceClaimStatuses": [OVERHEAD, GPU | {"mapping": [{"name": "cpu"}]}]}),
            {"cpu": 2500},
            id="no amount at all",
        ),
        pytest.param(
            with_status(
                {"nodeAllocatableResourceClaimStatuses": [MAPPED]}, resources={"requests": {"cpu": "9"}}, overhead={}
            ),
            {"cpu": 9000, "hugepages-2Mi": 4 * 2**20},
            id="requests of the pod as a whole have it",
        ),
        pytest.param(
            with_status({"nodeAllocatableResourceClaimStatuses": [MAPPED], "containerStatuses": [REPORTED]}),
            {"cpu": 7000, "hugepages-2Mi": 4 * 2**20},
            id="in addition to what is allocated, while a kubelet's cgroups have it",
        ),
    ],
)
def test_what_devices_take_counts_with_the_requests(pod: Pod, requests: dict[str, int]) -> None:
    assert pod.requests == requests


def test_the_same_pod_with_other_devices_does_not_share_its_amounts() -> None:
    plain, with_devices = with_status({}), with_status({"nodeAllocatableResourceClaimStatuses": [MAPPED]})
    assert plain.requests == {"cpu": 1000}

    assert not with_devices.share_requests(plain)
    assert with_devices.requests["cpu"] == 3000


def test_what_is_beyond_an_int64_counts_as_go_counts_it() -> None:
    much = GPU | {"overhead": [{"name": "memory", "perContainer": "5E"}]}

    assert with_status({"nodeAllocatableResourceClaimStatuses": [much]}).requests["memory"] == 0


def test_an_amount_that_cannot_be_read_is_reported_with_its_claim() -> None:
    broken = GPU | {"overhead": [{"name": "cpu", "perPod": "much"}]}

    with pytest.raises(ValueError, match="resources by claim gpu: not a quantity: 'much'"):
        _ = with_status({"nodeAllocatableResourceClaimStatuses": [broken]}).requests
