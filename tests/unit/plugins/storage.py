"""A cluster with storage objects, for the plugins that refuse nodes because of volumes."""

import random
from typing import Any

import msgspec

from scheduler import framework as fw
from scheduler.api.storage.volumes import CSINode, VolumeAttachment
from scheduler.framework.nodes.resources import STRUCTS
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import Objects
from scheduler.testing import a_handle as a_plain_handle
from tests.unit.plugins.claims import RESOURCES, a_claim, a_class, a_driver, a_volume, room


def with_limits(name: str, limits: dict[str, int | None]) -> CSINode:
    """What the drivers of a node tell: how many volumes it can have, None for no word of that."""
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": {} if limit is None else {"count": limit}}
        for driver, limit in limits.items()
    ]
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": {"drivers": drivers}}, CSINode)


def an_attachment(name: str, node: str, volume: str | None, driver: str) -> VolumeAttachment:
    source = {} if volume is None else {"persistentVolumeName": volume}
    spec = {"attacher": driver, "nodeName": node, "source": source}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec}, VolumeAttachment)


class Storage:
    """Objects by resource, and a handle that has them."""

    def __init__(self, table: NodeTable, *objects: Any) -> None:
        self._by_resource: dict[str, dict[str, Any]] = {resource: {} for resource in STRUCTS}
        self._objects = Objects({resource: [] for resource in STRUCTS})
        self.handle: fw.Handle = a_plain_handle(table, self._objects)
        self.put(*objects)

    def put(self, *objects: Any) -> None:
        """Let objects be there, or be there in a new version."""
        for each in objects:
            resource = RESOURCES[type(each)]
            self._by_resource[resource][each.metadata.uid] = each
            self._objects.put(resource, *self._by_resource[resource].values())

    def remove(self, *objects: Any) -> None:
        for each in objects:
            resource = RESOURCES[type(each)]
            del self._by_resource[resource][each.metadata.uid]
            self._objects.put(resource, *self._by_resource[resource].values())


def any_object(dice: random.Random, resource: str) -> Any:
    """An object of a resource that plugins for volumes wait for."""
    driver = dice.choice(("disks.example.com", "kubernetes.io/no-provisioner", "ebs.csi.aws.com"))
    match resource:
        case fw.PERSISTENT_VOLUME:
            return a_volume(labels=dice.choice(({}, {"topology.kubernetes.io/zone": "a"})))
        case fw.PERSISTENT_VOLUME_CLAIM:
            bound = dice.choice(({}, {"volume": "pv"}))
            return a_claim(dice.choice(("data", "waiting-0-own")), **bound)
        case fw.STORAGE_CLASS:
            return a_class("made", mode=dice.choice(("Immediate", "WaitForFirstConsumer")), provisioner=driver)
        case fw.CSI_NODE:
            return with_limits("n1", {driver: dice.choice((None, 1, 2))})
        case fw.CSI_DRIVER:
            return a_driver(counts=dice.choice((True, False, None)), name=driver)
        case fw.CSI_STORAGE_CAPACITY:
            return room("capacity", capacity=dice.choice(("1Gi", "2Gi")))
        case fw.VOLUME_ATTACHMENT:
            return an_attachment("x", "n1", "pv", driver)
        case _:
            raise LookupError(f"no {resource} is made here")
