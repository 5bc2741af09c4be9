"""One more node is judged as it would join the cluster; and asking leaves no trace."""

from typing import Any

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.api.decoding import convert
from scheduler.api.devices import ResourceSlice
from scheduler.api.objects import OwnerReference
from scheduler.api.storage.volumes import CSINode, PersistentVolume, PersistentVolumeClaim
from scheduler.explain.trials import Trials
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import EngineUnderTest, an_engine

HOSTNAME = "kubernetes.io/hostname"


def a_cluster(*seen: Any) -> EngineUnderTest:
    scheduler = an_engine()
    scheduler.see(*seen)
    return scheduler


def fits_new(scheduler: EngineUnderTest, pod: fw.Pod, like: str) -> bool:
    return Trials(scheduler.engine, scheduler.framework).fits_new(pod, like)


def owned(pod: fw.Pod, kind: str, name: str) -> fw.Pod:
    owner = OwnerReference(kind=kind, name=name, controller=True)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=(owner,)))


def with_claim(pod: fw.Pod, claim: str) -> fw.Pod:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}}]
    spec = msgspec.structs.replace(pod.spec, volumes=convert({"volumes": volumes}, type(pod.spec)).volumes)
    return type(pod)(metadata=pod.metadata, spec=spec, status=pod.status)


@pytest.mark.parametrize("kind", ["Node", "DaemonSet"])
def test_a_new_node_has_the_static_pods_and_those_of_daemon_sets(kind: str) -> None:
    own = owned(a_pod("own", requests={"cpu": 3}, node_name="n"), kind, "n")
    scheduler = a_cluster(a_node("n", cpu="4"), own, a_pod("other", requests={"cpu": 1}, node_name="n"))

    assert fits_new(scheduler, a_pod(requests={"cpu": 1}), "n")
    assert not fits_new(scheduler, a_pod(requests={"cpu": 2}), "n")


def test_a_new_node_has_room_for_the_daemons_that_wait_for_the_node_it_is_like() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    daemon = a_pod("daemon", requests={"cpu": 3})
    spec = convert({"affinity": required}, type(daemon.spec))
    daemon = msgspec.structs.replace(daemon, spec=msgspec.structs.replace(daemon.spec, affinity=spec.affinity))
    scheduler = a_cluster(a_node("n", cpu="4"), owned(daemon, "DaemonSet", "agent"))

    assert not fits_new(scheduler, a_pod("web", requests={"cpu": 2}), "n")


def test_a_new_node_has_labels_with_its_own_name() -> None:
    labels = {HOSTNAME: "host-n", "example.com/name": "n", "pool": "a"}
    scheduler = a_cluster(a_node("n", labels=labels, unschedulable=True))

    assert fits_new(scheduler, a_pod(node_selector={"pool": "a"}), "n")
    assert not fits_new(scheduler, a_pod(node_selector={"example.com/name": "n"}), "n")
    assert not fits_new(scheduler, a_pod(node_selector={HOSTNAME: "host-n"}), "n")


def test_a_new_node_does_not_reach_a_volume_of_the_node_it_is_like() -> None:
    place = {"key": HOSTNAME, "operator": "In", "values": ["n"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [place]}]}}
    volume = {"metadata": {"name": "pv", "uid": "pv"}, "spec": {"nodeAffinity": affinity}}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = {"metadata": {"name": "data", "namespace": "default", "uid": "c", "annotations": bound}}
    scheduler = a_cluster(a_node("n", labels={HOSTNAME: "n"}, unschedulable=True))
    handlers = scheduler.engine.object_handlers
    handlers.object_changed(fw.PERSISTENT_VOLUME, convert(volume, PersistentVolume))
    handlers.object_changed(
        fw.PERSISTENT_VOLUME_CLAIM, convert({**claim, "spec": {"volumeName": "pv"}}, PersistentVolumeClaim)
    )

    assert not fits_new(scheduler, with_claim(a_pod(), "data"), "n")


def test_a_new_node_takes_as_many_volumes_as_the_node_it_is_like() -> None:
    scheduler = a_cluster(a_node("n"))
    driver = {"name": "disks.example.com", "nodeID": "n", "allocatable": {"count": 1}}
    csi_node = convert({"metadata": {"name": "n", "uid": "n"}, "spec": {"drivers": [driver]}}, CSINode)
    scheduler.engine.object_handlers.object_changed(fw.CSI_NODE, csi_node)
    seen: list[Any] = []
    scheduler.engine.objects.listen(fw.CSI_NODE, lambda old, new: seen.append((old and old.name, new and new.name)))

    fits_new(scheduler, a_pod(), "n")

    assert seen == [(None, "n"), (None, "n-added-1"), ("n-added-1", None)]
    assert [each.name for each in scheduler.engine.objects.list(fw.CSI_NODE)] == ["n"]


def test_a_new_node_has_devices_of_its_own() -> None:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n", "pool": pool, "devices": [{"name": "d0"}]}
    own = convert({"metadata": {"name": "slice-n", "uid": "s"}, "spec": spec}, ResourceSlice)
    scheduler = a_cluster(a_node("n"))
    scheduler.engine.object_handlers.object_changed(fw.RESOURCE_SLICE, own)
    seen: list[Any] = []
    scheduler.engine.objects.listen(fw.RESOURCE_SLICE, lambda old, new: seen.append(new))

    fits_new(scheduler, a_pod(), "n")

    assert (seen[1].spec.node_name, seen[1].spec.pool.name) == ("n-added-1", "n-n-added-1")


def test_nothing_is_left_of_a_trial() -> None:
    scheduler = a_cluster(
        a_node("n", labels={HOSTNAME: "n"}, cpu="4"),
        owned(a_pod("agent", requests={"cpu": 1}, node_name="n"), "DaemonSet", "agent"),
    )
    table = scheduler.cache.table
    trials = Trials(scheduler.engine, scheduler.framework)
    pod = a_pod(requests={"cpu": 2})

    trials.fits_new(pod, "n")
    trials.fits_changed(pod, a_node("n", unschedulable=True))
    trials.fits_without(pod, "n", list(table.pods_on("n")))

    assert table.node_names() == ["n"]
    assert [each.name for each in table.pods_on("n")] == ["agent"]
    assert not table.unschedulable.any()


def test_a_static_pod_is_not_taken_for_one_that_can_be_deleted() -> None:
    static = owned(a_pod("proxy", requests={"cpu": 3}, node_name="n"), "Node", "n")
    scheduler = a_cluster(a_node("n", cpu="4"), static)

    trials = Trials(scheduler.engine, scheduler.framework)

    assert not trials.fits_without(a_pod(requests={"cpu": 2}, priority=10), "n", [static])
    assert trials.nodes_without(a_pod(requests={"cpu": 2}, priority=10), static) == []
