"""What the API server of an older Kubernetes drops: a pod waits, and says why, rather than run without it."""

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.devices import CLAIM, device_class, devices_on, wait_refused
from tests.cluster.loadmaster import node_of
from tests.controlplane import Client, Component, a_pod, wait_until


@pytest.mark.kubernetes(until="1.35", reason="what an API server drops whose feature gate DRAExtendedResource is off")
def test_a_pod_is_not_bound_without_the_devices_that_its_status_cannot_name(
    api: Client, loadmaster: Component, namespace: str, make_nodes: MakeNodes
) -> None:
    [node] = make_nodes(1)
    with device_class(api, "gpu"), devices_on(api, node, [{"name": "gpu-0"}]):
        api.create(a_pod("implicit", resources={"deviceclass.resource.kubernetes.io/gpu": "1"}), namespace)

        wait_refused(api, namespace, "implicit", "feature gate DRAExtendedResource is off")

        assert not node_of(api.get("Pod", "implicit", namespace))
    api.delete("Pod", "implicit", namespace)
    wait_until(lambda: not api.list(CLAIM, namespace), 30, "its claims are gone")
