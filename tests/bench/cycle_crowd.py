"""The pods of a case and what belongs to them: Services, namespaces, claims and volumes.

Of the pods that run only one of a shape is decoded, the others are copies with another name, so that half a million
take seconds. A pod that comes is decoded by itself: what a decision derives from it is part of what it costs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import convert
from msgspec.structs import replace

from scheduler.api.pods.pod import Pod
from scheduler.api.storage.volumes import PersistentVolume, PersistentVolumeClaim
from scheduler.api.unstructured import Unstructured
from scheduler.framework.events import CSI_NODE, NAMESPACE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from scheduler.framework.nodes.resources import SERVICE, struct_of
from tests.bench.cycle_cases import Case
from tests.bench.cycle_world import ZONE, Json, World, decoded_pod, node_name, sibling

APPS: Final = 50
CORES: Final = 32
DRIVER: Final = "csi.example.com"
VOLUMES_A_NODE: Final = 100

Objects = Iterator[tuple[str, Any]]


@dataclass(slots=True)
class Crowd:
    """Pods of one case, by number: those below `running` run, the others are to come."""

    case: Case
    nodes: int
    running: int
    _shapes: dict[tuple[str, str], Pod] = field(default_factory=dict)

    def settle(self, world: World, coming: int) -> None:
        """Let the pods run, and let there be what they and the next `coming` ones need."""
        world.add_objects(self._objects(coming))
        world.add_pods(map(self._running_pod, range(self.running)))

    def coming_pod(self, number: int, app: int) -> Pod:
        """Decode the pod of that number, counted from those that run, of one of the apps."""
        number += self.running
        spec = self._spec(number, app)
        if self.case.full:
            spec["priority"] = 10
        return decoded_pod(f"pod-{number}", spec, app=_app(app), namespace=self._namespace(number), cpu=self._cpu)

    def _running_pod(self, number: int) -> Pod:
        app, namespace, name = number % APPS, self._namespace(number), f"pod-{number}"
        if self.case.claims:
            return decoded_pod(name, self._spec(number, app), app=_app(app))
        shape = self._shapes.get((_app(app), namespace))
        if shape is None:
            shape = decoded_pod(name, self._spec(number, app), app=_app(app), namespace=namespace, cpu=self._cpu)
            self._shapes[_app(app), namespace] = shape
        return sibling(shape, name)

    def _spec(self, number: int, app: int) -> Json:
        spec = self.case.spec(_app(app))
        if self.case.claims:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}}]
        return spec

    def _namespace(self, number: int) -> str:
        """Pods of an app lie in all namespaces in turn."""
        return "default" if self.case.namespaces == 1 else f"team-{number // APPS % self.case.namespaces}"

    @property
    def _cpu(self) -> str:
        return f"{CORES * 1000 * self.nodes // self.running}m" if self.case.full else "100m"

    def _objects(self, coming: int) -> Objects:
        if self.case.namespaces > 1:
            for number in range(self.case.namespaces):
                yield NAMESPACE, _unstructured("Namespace", f"team-{number}", labels={"team": "devops"})
        if self.case.services:
            for number in range(APPS):
                spec = {"selector": {"app": _app(number)}}
                yield SERVICE, _unstructured("Service", _app(number), namespace="default", spec=spec)
        if self.case.claims:
            yield from _storage(self.nodes, self.running + coming)


def _app(number: int) -> str:
    return f"app-{number}"


def _unstructured(kind: str, name: str, *, namespace: str = "", labels: Json | None = None, **rest: Json) -> Any:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{kind}-{name}", "labels": labels or {}}
    return Unstructured.from_dict({"kind": kind, "metadata": metadata, **rest})


def _storage(nodes: int, claims: int) -> Objects:
    """A class, a driver on each node, and as many claims, each bound to a volume in one of the zones."""
    metadata: Json = {"name": "fast", "uid": "uid-fast"}
    found: Json = {"metadata": metadata, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"}
    yield STORAGE_CLASS, convert(found, struct_of(STORAGE_CLASS))
    for number in range(nodes):
        name = node_name(number)
        driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE], "allocatable": {"count": VOLUMES_A_NODE}}
        metadata = {"name": name, "uid": f"uid-csinode-{number}"}
        yield CSI_NODE, convert({"metadata": metadata, "spec": {"drivers": [driver]}}, struct_of(CSI_NODE))
    volumes = [_a_volume(zone) for zone in range(3)]
    claim = convert(_CLAIM, PersistentVolumeClaim)
    for number in range(claims):
        at = (number + number // nodes) % nodes % 3  # the zone where World.add_pods lets the pod run
        yield PERSISTENT_VOLUME, _numbered_volume(volumes[at], number)
        yield PERSISTENT_VOLUME_CLAIM, _numbered_claim(claim, number)


_CLAIM: Final[Json] = {
    "metadata": {"namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "10Gi"}},
    },
    "status": {"phase": "Bound"},
}


def _a_volume(zone: int) -> PersistentVolume:
    expression = {"key": ZONE, "operator": "In", "values": [f"zone-{zone}"]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "10Gi"},
        "storageClassName": "fast",
        "csi": {"driver": DRIVER},
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    return convert({"metadata": {}, "spec": spec, "status": {"phase": "Bound"}}, PersistentVolume)


def _numbered_volume(shape: PersistentVolume, number: int) -> PersistentVolume:
    assert shape.spec.csi is not None
    assert shape.spec.claim_ref is not None
    name = f"pv-{number}"
    handle = replace(shape.spec.csi, volume_handle=name)
    claim = replace(shape.spec.claim_ref, name=f"data-{number}", uid=f"uid-data-{number}")
    metadata = replace(shape.metadata, name=name, uid=f"uid-{name}")
    return replace(shape, metadata=metadata, spec=replace(shape.spec, csi=handle, claim_ref=claim))


def _numbered_claim(shape: PersistentVolumeClaim, number: int) -> PersistentVolumeClaim:
    metadata = replace(shape.metadata, name=f"data-{number}", uid=f"uid-data-{number}")
    return replace(shape, metadata=metadata, spec=replace(shape.spec, volume_name=f"pv-{number}"))
