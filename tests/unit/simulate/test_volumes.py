"""The volumes of new claims: a free one that fits, or a new one where something provisions it."""

from typing import Any, Final

import pytest

from scheduler.simulate.controllers.volumes import CLAIM, Volumes
from scheduler.simulate.other_objects import OtherObject

Json = dict[str, Any]


def a_class(mode: str = "Immediate", provisioner: str = "csi.example.com", **fields: Any) -> OtherObject:
    content = {"provisioner": provisioner, "volumeBindingMode": mode, "metadata": {"name": "blocks"}, **fields}
    return OtherObject("f", "StorageClass (storage.k8s.io/v1)", {"kind": "StorageClass", **content})


def a_volume(name: str, size: str = "10Gi", storage_class: str = "blocks", **spec: Any) -> OtherObject:
    whole = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, **spec}
    content = {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": whole, "status": {"phase": "Available"}}
    return OtherObject("f", "PersistentVolume", content)


def a_claim(version: str = "", **spec: Any) -> OtherObject:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}, **spec}
    metadata = {"name": "data", **({"resourceVersion": version} if version else {})}
    return OtherObject("f", CLAIM, {"kind": CLAIM, "metadata": metadata, "spec": whole})


BLOCKS: Final = a_claim(storageClassName="blocks")
MADE: Final = "pvc-"
"""How the name of a new volume begins."""


@pytest.mark.parametrize(
    ("objects", "volume"),
    [
        pytest.param([a_class(), BLOCKS], MADE, id="provisioned"),
        pytest.param([a_class("WaitForFirstConsumer"), BLOCKS], "", id="the scheduler binds it"),
        pytest.param([a_class(provisioner="kubernetes.io/no-provisioner"), BLOCKS], "", id="no provisioner"),
        pytest.param([BLOCKS], "", id="no class"),
        pytest.param([a_class(), a_claim("1", storageClassName="blocks")], "", id="a stored claim"),
        pytest.param([a_class(), a_volume("a", "20Gi"), a_volume("b"), BLOCKS], "b", id="the smallest free one"),
        pytest.param([a_class(), a_volume("a", "1Gi"), BLOCKS], MADE, id="a volume that is too small"),
        pytest.param([a_class(), a_volume("a", volumeMode="Block"), BLOCKS], MADE, id="another mode"),
        pytest.param([a_class(), a_volume("a", accessModes=["ReadOnlyMany"]), BLOCKS], MADE, id="another access mode"),
        pytest.param([a_class(), a_volume("a", claimRef={"namespace": "x", "name": "y"}), BLOCKS], MADE, id="taken"),
        pytest.param(
            [a_class(), a_volume("a"), a_volume("b", claimRef={"namespace": "default", "name": "data"}), BLOCKS],
            "b",
            id="kept for the claim",
        ),
        pytest.param([a_volume("a", storage_class=""), a_claim()], "a", id="of no class"),
        pytest.param([a_volume("a"), a_claim(volumeName="a")], "a", id="named by the claim"),
        pytest.param([a_claim(volumeName="a")], "", id="named, and not there"),
        pytest.param(
            [a_class(), a_volume("a"), a_claim(storageClassName="blocks", accessModes=[{}])], "", id="not readable"
        ),
    ],
)
def test_a_claim_is_bound_before_its_pod_is_scheduled(objects: list[OtherObject], volume: str) -> None:
    found = {obj.label: obj for obj in bound(objects)}

    claim = found[CLAIM]
    name = claim.content["spec"].get("volumeName") if claim.content.get("status") else ""
    assert name.startswith(volume) if volume else not name


def test_a_new_volume_is_where_its_class_allows() -> None:
    expression = {"key": "zone", "values": ["a", "b"]}
    allowed = [{"matchLabelExpressions": [expression]}]

    *_, volume = bound([a_class(allowedTopologies=allowed), BLOCKS])

    terms = volume.content["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{**expression, "operator": "In"}]}]


def test_claims_that_stay_unbound_are_noted() -> None:
    volumes = Volumes([a_class(provisioner="kubernetes.io/no-provisioner")])

    volumes.bound([BLOCKS])

    assert volumes.notes() == [
        "not bound, so that pods wait: 1 claim of class blocks; no PersistentVolume in the files fits, and nothing "
        "provisions one"
    ]


def bound(objects: list[OtherObject]) -> list[OtherObject]:
    return Volumes(objects).bound(objects)
