"""What plugins write in a simulation: claims get their volumes, and nothing leaves the program."""

from typing import Any

import pytest

import plugins
from scheduler.api.storage.volumes import AnnotatedMeta, PersistentVolume
from scheduler.config.load import config_from_dict
from scheduler.framework.errors import ApiError
from scheduler.simulate.engine import simulate
from scheduler.simulate.other_objects import OtherObject, OtherObjects
from scheduler.state.objects import ObjectStore
from scheduler.state.simulated_api import SimulatedApi, merged
from scheduler.testing import a_node, pod_from_dict

CONFIG = config_from_dict(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler"}],
    },
    plugins.IN_TREE,
)


def a_class(provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "disks"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def a_claim(name: str) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "disks",
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def a_volume(name: str, host: str) -> dict[str, Any]:
    expression = {"key": "host", "operator": "In", "values": [host]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "disks",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
        "status": {"phase": "Available"},
    }


def placed(claims: list[str], *others: dict[str, Any]) -> list[str | None]:
    """Where pods go, each with the claim of that name."""
    pods = []
    for i, claim in enumerate(claims):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        metadata = {"name": f"p{i}", "namespace": "default", "uid": f"p{i}"}
        pods.append(
            pod_from_dict({"metadata": metadata, "spec": {"schedulerName": "default-scheduler", "volumes": [volume]}})
        )
    nodes = [a_node(name, labels={"host": name}) for name in ("n1", "n2")]
    every = [*others, *(a_claim(name) for name in dict.fromkeys(claims))]
    objects = OtherObjects(OtherObject("a file", each["kind"], each) for each in every)
    return [pod["node"] for pod in simulate(nodes, pods, CONFIG, plugins.IN_TREE, objects)["pods"]]


def test_two_claims_get_the_two_volumes_there_are_and_a_third_none() -> None:
    volumes = a_volume("v1", "n1"), a_volume("v2", "n2")

    nodes = placed(["a", "b", "c"], a_class("kubernetes.io/no-provisioner"), *volumes)

    assert sorted(nodes[:2], key=str) == ["n1", "n2"]
    assert nodes[2] is None


def test_a_volume_is_made_for_a_claim_without_one() -> None:
    nodes = placed(["a", "a"], a_class("disks.example.com"))

    assert None not in nodes


@pytest.mark.parametrize(("name", "version", "status"), [("gone", "", 404), ("v1", "1", 409)])
async def test_a_write_to_what_is_not_as_it_was_is_refused(name: str, version: str, status: int) -> None:
    api = SimulatedApi()
    store = ObjectStore()
    store.watch(["PersistentVolume"])
    store.set("PersistentVolume", PersistentVolume(metadata=AnnotatedMeta(name="v1", uid="v1", resource_version="7")))
    api.objects = store
    with pytest.raises(ApiError) as raised:
        await api.patch("PersistentVolume", name, "", {"metadata": {"resourceVersion": version}})

    assert raised.value.status == status


def test_a_merge_patch_takes_away_what_is_null() -> None:
    assert merged({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": None, "e": 4}}) == {"a": 1, "b": {"d": 3, "e": 4}}
