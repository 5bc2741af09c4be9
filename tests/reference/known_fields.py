"""Writes scheduler/files/generated/known_fields.txt: the fields of the objects that a simulation reads, with types.

From the API's own description in the `kubernetes` package.
"""

import re
from typing import Any, Final

from kubernetes import client

from scheduler.files.generated import FOLDER

TARGET: Final = FOLDER / "known_fields.txt"

VERSIONS: Final = {
    "v1": "LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod ReplicationController Service",
    "apps/v1": "DaemonSet Deployment ReplicaSet StatefulSet",
    "batch/v1": "Job",
    "node.k8s.io/v1": "RuntimeClass",
    "policy/v1": "PodDisruptionBudget",
    "resource.k8s.io/v1": "DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
}
MODELS: Final = {"ContainerClaim": "CoreV1ResourceClaim", "ResourceClaim": "ResourceV1ResourceClaim"}
"""Kind → its class, where that has the name of another kind."""

LEAVES: Final = {"managedFields"}
"""Not looked into: what is in them can be half of an object."""


SCALARS: Final = {"str": "string", "datetime": "string", "int": "integer", "bool": "boolean"}
"""The types of the `kubernetes` package, as the API names them."""

QUANTITIES: Final = {
    "allocatable",
    "allocatedResources",
    "capacity",
    "consumedCapacity",
    "default",
    "defaultRequest",
    "divisor",
    "limits",
    "max",
    "maxLimitRequestRatio",
    "maximumVolumeSize",
    "min",
    "overhead",
    "podFixed",
    "requests",
    "resources",
    "sizeLimit",
    "step",
    "validValues",
    "value",
}
"""Fields that are quantities in some kind, and strings for the package: they may be numbers, too."""

STRINGS: Final = {
    ("value", "EnvVar"),
    ("value", "HTTPHeader"),
    ("value", "Sysctl"),
    ("value", "Taint"),
    ("value", "Toleration"),
}
"""Those of the same name that are no quantities."""


def text() -> str:
    """Return the file."""
    versions = {kind: version for version, kinds in VERSIONS.items() for kind in kinds.split()}
    found: dict[str, str] = {}
    waiting = list(versions)
    while waiting:
        kind = waiting.pop()
        if kind in found:
            continue
        model = _model(kind)
        fields = []
        for name, key in sorted(model.attribute_map.items(), key=lambda item: item[1]):
            prefix, inner = _inner(model.openapi_types[name])
            if inner and key not in LEAVES:
                waiting.append(inner)
                fields.append(f"{key}:{prefix}{inner}")
            elif scalar := _scalar(kind, key, model.openapi_types[name]):
                fields.append(f"{key}:{scalar}")
            else:
                fields.append(key)
        found[kind] = " ".join((kind, versions.get(kind, "-"), *fields))
    return "".join(f"{found[kind]}\n" for kind in sorted(found))


def _model(kind: str) -> Any:
    for name in (MODELS.get(kind, ""), f"V1{kind}", kind):
        if name and hasattr(client, name):
            return getattr(client, name)
    raise ValueError(f"{kind}: the kubernetes package has no such model")


def _inner(described: str) -> tuple[str, str]:
    prefix, described = _parts(described)
    kinds = {model: kind for kind, model in MODELS.items()}
    kind = kinds.get(described) or described.removeprefix("V1")
    return (prefix, kind) if re.fullmatch(r"[A-Z]\w+", kind) else ("", "")


def _scalar(kind: str, key: str, described: str) -> str:
    """`string`, or `[]integer`; empty for what may be of several types."""
    if key in LEAVES or (key in QUANTITIES and (key, kind) not in STRINGS):
        return ""
    prefix, described = _parts(described)
    return f"{prefix}{SCALARS[described]}" if described in SCALARS else ""


def _parts(described: str) -> tuple[str, str]:
    if match := re.fullmatch(r"[Ll]ist\[(.*)\]", described):
        return "[]", match[1]
    if match := re.fullmatch(r"[Dd]ict[\[(]str, ?(.*)[\])]", described):
        return "{}", match[1]
    return "", described


if __name__ == "__main__":
    TARGET.write_text(text())
