"""Devices for the cluster tests: classes, and slices made by hand in place of a driver."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tests.cluster.loadmaster import node_of
from tests.controlplane import Client, condition, wait_until
from tests.controlplane.client import Object

DRIVER: Final = "gpu.example.com"
CLAIM, SLICE, CLASS = (f"resource.k8s.io/v1/{kind}" for kind in ("ResourceClaim", "ResourceSlice", "DeviceClass"))


def a_claim(name: str, spec: Object, **metadata: Any) -> Object:
    return _object("ResourceClaim", name, spec, **metadata)


@contextmanager
def device_class(api: Client, name: str, **spec: Any) -> Iterator[None]:
    """A class of the driver's devices, unless `spec` has other selectors; deleted afterwards."""
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    api.create(_object("DeviceClass", name, {"selectors": selectors, **spec}))
    try:
        yield
    finally:
        api.delete(CLASS, name)


@contextmanager
def devices_on(api: Client, node: str, devices: Sequence[Object]) -> Iterator[None]:
    """The devices of one node, in a pool of its name; deleted afterwards."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    api.create(_object("ResourceSlice", node, {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}))
    try:
        yield
    finally:
        api.delete(SLICE, node)


def wait_bound(api: Client, namespace: str, pod: str) -> str:
    """Return the node of a pod, once it has one."""
    return wait_until(lambda: node_of(api.get("Pod", pod, namespace)), 20, f"{pod} is bound")


def wait_refused(api: Client, namespace: str, pod: str, why: str) -> None:
    """Return once the pod's condition says that it was refused, and why."""

    def says_so() -> bool:
        found = condition(api.get("Pod", pod, namespace), "PodScheduled")
        return found is not None and why in str(found.get("message", ""))

    wait_until(says_so, 15, f"{pod} is refused: {why}")


def _object(kind: str, name: str, spec: Object, **metadata: Any) -> Object:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
