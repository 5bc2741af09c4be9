"""In-tree volumes as their CSI drivers know them. Intent: csi-translation-lib's tests."""

from typing import Any

import msgspec
import pytest

from scheduler.api.objects import Volume
from scheduler.api.storage.csi_translation import TranslationError, inline_handle, plugin_of, translated
from scheduler.api.storage.volumes import PersistentVolume

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, OLD_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
GCE: dict[str, Any] = {"gcePersistentDisk": {"pdName": "disk"}}
EBS: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def a_volume(labels: dict[str, str] | None = None, **spec: Any) -> PersistentVolume:
    return msgspec.convert({"metadata": {"name": "pv", "labels": labels}, "spec": spec}, PersistentVolume)


def inline(**source: Any) -> Volume:
    return msgspec.convert({"name": "v", **source}, Volume)


def terms(*expressions: dict[str, list[str]]) -> dict[str, Any]:
    """A node affinity: each term by label and values."""
    each = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in term.items()]}
        for term in expressions
    ]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": each}}}


def where(volume: PersistentVolume) -> list[dict[str, tuple[str, ...]]]:
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    found = () if required is None else required.node_selector_terms or ()
    return [{each.key: each.values or () for each in term.match_expressions or ()} for term in found]


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        (GCE, "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"),
        (EBS, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, "ebs.csi.aws.com", "vol-1"),
        ({"azureDisk": {"diskName": "d", "diskURI": "/disks/d"}}, "disk.csi.azure.com", "/disks/d"),
        ({"azureDisk": {"diskURI": "/disks/d", "kind": "managed"}}, "disk.csi.azure.com", "/disks/d"),
        ({"cinder": {"volumeID": "c"}}, "cinder.csi.openstack.org", "c"),
        ({"portworxVolume": {"volumeID": "p"}}, "pxd.portworx.com", "p"),
    ],
)
def test_a_pods_own_volume_has_a_handle(source: dict[str, Any], driver: str, handle: str) -> None:
    volume = inline(**source)
    plugin = plugin_of(volume)

    assert plugin is not None
    assert plugin.driver == driver
    assert plugin.migrated
    assert inline_handle(volume) == handle


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            {"awsElasticBlockStore": {"volumeID": "aws://zone/disk"}},
            r"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume \(aws://zone/disk\)",
        ),
        ({"azureDisk": {"diskURI": "u", "kind": "Shared"}}, r"kind\(Shared\) is not supported in csi migration"),
    ],
    ids=["EBS", "Azure"],
)
def test_some_volumes_no_driver_can_serve(source: dict[str, Any], message: str) -> None:
    with pytest.raises(TranslationError, match=message):
        inline_handle(inline(**source))
    with pytest.raises(TranslationError, match=message):
        translated(a_volume(**source))


@pytest.mark.parametrize("source", [{"emptyDir": {}}, {"rbd": {"image": "i"}}, {"persistentVolumeClaim": {}}])
def test_other_volumes_belong_to_no_plugin(source: dict[str, Any]) -> None:
    assert plugin_of(inline(**source)) is None


@pytest.mark.parametrize("source", [{"vsphereVolume": {"volumePath": "p"}}, {"azureFile": {"shareName": "s"}}])
def test_some_kinds_are_known_and_not_translated(source: dict[str, Any]) -> None:
    plugin = plugin_of(inline(**source))

    assert plugin is not None
    assert not plugin.migrated
    with pytest.raises(TranslationError):
        translated(a_volume(**source))


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        (None, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"),
        ({ZONE: "us-a-1"}, "projects/UNSPECIFIED/zones/us-a-1/disks/disk"),
        ({OLD_ZONE: "us-b-1", ZONE: "us-a-1"}, "projects/UNSPECIFIED/zones/us-b-1/disks/disk"),
        ({ZONE: "us-a-1__us-a-2"}, "projects/UNSPECIFIED/regions/us-a/disks/disk"),
    ],
    ids=["no label", "a zone", "two labels", "two zones"],
)
def test_the_handle_of_a_google_disk_has_its_place(labels: dict[str, str] | None, handle: str) -> None:
    found = translated(a_volume(labels, **GCE)).spec

    assert found.csi is not None
    assert found.csi.volume_handle == handle
    assert found.gce_persistent_disk is None


@pytest.mark.parametrize("zones", ["us-a-1__us-b-1", "us-a-1__other"], ids=["two regions", "no region"])
def test_zones_of_a_google_disk_lie_in_one_region(zones: str) -> None:
    with pytest.raises(TranslationError, match="failed to get region from zones"):
        translated(a_volume({ZONE: zones}, **GCE))


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (["ReadWriteMany"], ("ReadWriteOnce",)),
        (["ReadOnlyMany"], ("ReadOnlyMany",)),
        (["ReadOnlyMany", "ReadWriteOnce"], ("ReadWriteOnce",)),
        (None, None),
    ],
)
def test_a_google_disk_is_written_by_one_node_or_read_by_many(
    modes: list[str] | None, expected: tuple[str, ...] | None
) -> None:
    assert translated(a_volume(accessModes=modes, **GCE)).spec.access_modes == expected


@pytest.mark.parametrize(
    ("labels", "affinity", "expected"),
    [
        pytest.param(None, {}, [], id="nothing known"),
        pytest.param({ZONE: "a"}, {}, [{EBS_ZONE: ("a",)}], id="from the label"),
        pytest.param({OLD_ZONE: "b__a"}, {}, [{EBS_ZONE: ("a", "b")}], id="from the old label"),
        pytest.param({ZONE: "a"}, terms({ZONE: ["b"]}), [{EBS_ZONE: ("b",)}], id="affinity before label"),
        pytest.param(
            {ZONE: "a"}, terms({"disk": ["x"]}), [{"disk": ("x",), EBS_ZONE: ("a",)}], id="a term without zone"
        ),
        pytest.param(
            None,
            terms({OLD_ZONE: ["a"], OLD_REGION: ["r"]}, {OLD_REGION: ["s"]}),
            [{EBS_ZONE: ("a",), REGION: ("r",)}, {REGION: ("s",)}],
            id="old labels",
        ),
        pytest.param(None, terms({ZONE: ["a"], REGION: ["r"]}), [{EBS_ZONE: ("a",), REGION: ("r",)}], id="today's"),
    ],
)
def test_the_zone_becomes_the_drivers(
    labels: dict[str, str] | None, affinity: dict[str, Any], expected: list[dict[str, tuple[str, ...]]]
) -> None:
    assert where(translated(a_volume(labels, **EBS, **affinity))) == expected


def test_other_drivers_keep_the_node_affinity() -> None:
    volume = a_volume({ZONE: "a"}, portworxVolume={"volumeID": "p"}, **terms({ZONE: ["b"]}))

    assert where(translated(volume)) == [{ZONE: ("b",)}]
