"""In-tree volumes, translated into those of the CSI drivers that serve them now.

    kubernetes.io/gce-pd, gcePersistentDisk: {pdName: a}  →  pd.csi.storage.gke.io, projects/UNSPECIFIED/zones/…/disks/a

Rule: csi-translation-lib at v0.36.3 (translate.go, plugins/*.go). Only what scheduling reads is translated: driver,
handle, access modes and node affinity.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote

import msgspec

from scheduler.api.objects import InTreeSources, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from scheduler.api.storage.volumes import CSIPersistentVolumeSource, PersistentVolume, VolumeNodeAffinity

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"

ZONES_DELIMITER: Final = "__"
"""Between the zones in a label of a persistent volume."""

_UNSPECIFIED: Final = "UNSPECIFIED"
_AWS_VOLUME: Final = re.compile(r"vol-[^/]*")


class InTreePlugin(NamedTuple):
    """A kind of volume that Kubernetes once mounted itself."""

    field: str
    """The field of the volume's source, in snake case."""

    name: str
    driver: str
    zone_key: str
    """The driver's label for zones; empty if it has none, or if this program does not use it."""

    migrated: bool
    """Whether scheduling treats it as the driver's, on nodes that have a CSINode."""


IN_TREE_PLUGINS: Final = (
    InTreePlugin(
        "gce_persistent_disk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone", migrated=True
    ),
    InTreePlugin(
        "aws_elastic_block_store",
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        "topology.ebs.csi.aws.com/zone",
        migrated=True,
    ),
    InTreePlugin(
        "cinder",
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        "topology.cinder.csi.openstack.org/zone",
        migrated=True,
    ),
    InTreePlugin("azure_disk", "kubernetes.io/azure-disk", "disk.csi.azure.com", "", migrated=True),
    InTreePlugin("portworx_volume", "kubernetes.io/portworx-volume", "pxd.portworx.com", "", migrated=True),
    InTreePlugin("azure_file", "kubernetes.io/azure-file", "file.csi.azure.com", "", migrated=False),
    InTreePlugin("vsphere_volume", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "", migrated=False),
)

BY_NAME: Final = {plugin.name: plugin for plugin in IN_TREE_PLUGINS}
"""In-tree name, as storage classes have it as their provisioner, → plugin."""


class TranslationError(ValueError):
    """A volume that its driver could not serve; the message is csi-translation-lib's."""


def plugin_of(source: InTreeSources) -> InTreePlugin | None:
    """Return the plugin that a volume belongs to, or None if it is of another kind."""
    for plugin in IN_TREE_PLUGINS:
        if getattr(source, plugin.field) is not None:
            return plugin
    return None


def inline_handle(source: InTreeSources) -> str:
    """Return the volume handle of a pod's own volume. Raises TranslationError."""
    if source.gce_persistent_disk is not None:
        return _gce_handle("zones", _UNSPECIFIED, source.gce_persistent_disk.pd_name)
    return _handle(source)


def translated(volume: PersistentVolume) -> PersistentVolume:
    """Return an in-tree persistent volume as its driver's. Raises TranslationError.

    Only for kinds that are `migrated`. What is not translated stays as it is; the in-tree source goes.
    """
    plugin = plugin_of(volume.spec)
    if plugin is None or not plugin.migrated:
        raise TranslationError(f'could not find in-tree plugin translation logic for "{volume.name}"')
    spec = volume.spec
    modes = spec.access_modes
    if spec.gce_persistent_disk is not None:
        handle = _gce_volume_handle(volume)
        modes = _gce_access_modes(modes)
    else:
        handle = _handle(spec)
    new = msgspec.structs.replace(
        spec,
        **{plugin.field: None},
        csi=CSIPersistentVolumeSource(driver=plugin.driver, volume_handle=handle),
        access_modes=modes,
        node_affinity=_translated_affinity(volume, plugin.zone_key) if plugin.zone_key else spec.node_affinity,
    )
    return msgspec.structs.replace(volume, spec=new)


def _handle(source: InTreeSources) -> str:
    if source.aws_elastic_block_store is not None:
        return _ebs_volume_id(source.aws_elastic_block_store.volume_id)
    if source.azure_disk is not None:
        kind = source.azure_disk.kind
        if kind is not None and kind.lower() != "managed":
            raise TranslationError(f"kind({kind}) is not supported in csi migration")
        return source.azure_disk.disk_uri
    if source.cinder is not None:
        return source.cinder.volume_id
    if source.portworx_volume is not None:
        return source.portworx_volume.volume_id
    raise TranslationError("the volume is of a kind that is not translated")


def _ebs_volume_id(volume_id: str) -> str:
    """`aws://zone/vol-1` → `vol-1`; an ID without a scheme is returned unchanged."""
    if not volume_id.startswith("aws://"):
        return volume_id
    path = re.split("[?#]", volume_id.removeprefix("aws://"), maxsplit=1)[0].partition("/")[2]
    name = unquote(path).strip("/")
    if not _AWS_VOLUME.fullmatch(name):
        detail = f"Invalid format for AWS volume ({volume_id})"
        raise TranslationError(f"failed to translate Kubernetes ID to EBS Volume ID {detail}")
    return name


def _gce_handle(regionality: str, place: str, disk: str) -> str:
    return f"projects/{_UNSPECIFIED}/{regionality}/{place}/disks/{disk}"


def _gce_volume_handle(volume: PersistentVolume) -> str:
    disk = volume.spec.gce_persistent_disk
    name = "" if disk is None else disk.pd_name
    label = volume.labels.get(BETA_ZONE) or volume.labels.get(ZONE, "")
    zones = label.split(ZONES_DELIMITER)
    if len(zones) > 1:
        return _gce_handle("regions", _gce_region(zones), name)
    return _gce_handle("zones", zones[0] or _UNSPECIFIED, name)


def _gce_region(zones: list[str]) -> str:
    """`europe-west1-b`, `europe-west1-c` → `europe-west1`."""
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            detail = f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            raise TranslationError(f"failed to get region from zones: {detail}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        got = "map[" + " ".join(f"{region}:{{}}" for region in sorted(regions)) + "]"
        raise TranslationError(f"failed to get region from zones: multiple or no regions gotten from zones, got: {got}")
    return regions.pop()


def _gce_access_modes(modes: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """A disk is mounted by one node, or read-only by many; other modes never took effect."""
    if modes is None:
        return None
    asked = set(modes)
    if "ReadOnlyMany" in asked and not asked & {"ReadWriteOnce", "ReadWriteMany"}:
        return ("ReadOnlyMany",)
    return ("ReadWriteOnce",)


# The topology. Rule: plugins/in_tree_volume.go (translateTopologyFromInTreeToCSI).


def _translated_affinity(volume: PersistentVolume, zone_key: str) -> VolumeNodeAffinity | None:
    """Return the node affinity with the driver's zone label; if it has no zones, they come from the volume's labels."""
    zone, region = _topology_labels(volume)
    terms = _terms(volume)
    if any(expression.values for expression in _expressions(terms) if expression.key == zone):
        terms = _with_expressions(terms, lambda expression: _renamed(expression, zone, zone_key))
    else:
        names = {name for part in volume.labels.get(zone, "").split(ZONES_DELIMITER) if (name := part.strip())}
        if names:
            added = NodeSelectorRequirement(key=zone_key, operator="In", values=tuple(sorted(names)))
            terms = tuple(
                msgspec.structs.replace(term, match_expressions=(*(term.match_expressions or ()), added))
                for term in terms or (NodeSelectorTerm(),)
            )
    if region == BETA_REGION and any(
        expression.values for expression in _expressions(terms) if expression.key == region
    ):
        terms = _with_expressions(terms, lambda expression: _renamed(expression, region, REGION))
    if terms == _terms(volume):
        return volume.spec.node_affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def _topology_labels(volume: PersistentVolume) -> tuple[str, str]:
    """Return the zone and region labels that the volume uses: today's, or those from before Kubernetes 1.17."""
    keys = {expression.key for expression in _expressions(_terms(volume))}
    if ZONE not in keys and (BETA_ZONE in keys or (ZONE not in volume.labels and BETA_ZONE in volume.labels)):
        return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _terms(volume: PersistentVolume) -> tuple[NodeSelectorTerm, ...]:
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    return () if required is None else required.node_selector_terms or ()


def _expressions(terms: tuple[NodeSelectorTerm, ...]) -> Iterator[NodeSelectorRequirement]:
    return (expression for term in terms for expression in term.match_expressions or ())


def _with_expressions(
    terms: tuple[NodeSelectorTerm, ...], change: Callable[[NodeSelectorRequirement], NodeSelectorRequirement]
) -> tuple[NodeSelectorTerm, ...]:
    return tuple(
        msgspec.structs.replace(term, match_expressions=tuple(map(change, term.match_expressions)))
        if term.match_expressions
        else term
        for term in terms
    )


def _renamed(requirement: NodeSelectorRequirement, old: str, new: str) -> NodeSelectorRequirement:
    return msgspec.structs.replace(requirement, key=new) if requirement.key == old else requirement
