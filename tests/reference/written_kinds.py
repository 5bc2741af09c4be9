"""Writes scheduler/simulate/files/written_kinds.py: which fields the objects have that a simulation reads.

From the API's own description in the `kubernetes` package.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

from kubernetes import client

from tests.reference.pod_fields import MODELS

TARGET: Final = Path(__file__).parents[2] / "scheduler" / "simulate" / "written_kinds.py"

GROUPS: Final = {
    "v1": (
        "LimitRange",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "ReplicationController",
        "Service",
    ),
    "apps/v1": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch/v1": ("Job",),
    "node.k8s.io/v1": ("RuntimeClass",),
    "policy/v1": ("PodDisruptionBudget",),
    "resource.k8s.io/v1": ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
    "scheduling.k8s.io/v1": ("PriorityClass",),
    "storage.k8s.io/v1": ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"),
}
OTHER_MODELS: Final = {**MODELS, "ResourceClaim": "ResourceV1ResourceClaim"}
LEAVES: Final = {"managedFields"}
"""Not looked into: what is in them can be half of an object."""

HEAD: Final = '''"""The fields of the objects that a simulation reads: see `strict_fields`.

Written by `make reference` from the API's description; not to be edited. `a:B` is a field with an object of kind B,
`a:[]B` one with a list of them, `a:{}B` one with a mapping to them; of others nothing but the name is known.
"""

from collections.abc import Mapping
from typing import Final

'''


def kinds() -> dict[str, str]:
    """Return kind → its fields."""
    found: dict[str, str] = {}
    waiting = [kind for kinds in GROUPS.values() for kind in kinds]
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
            else:
                fields.append(key)
        found[kind] = " ".join(fields)
    return dict(sorted(found.items()))


def _model(kind: str) -> Any:
    for name in (OTHER_MODELS.get(kind, ""), f"V1{kind}", kind):
        if name and hasattr(client, name):
            return getattr(client, name)
    raise ValueError(f"{kind}: the kubernetes package has no such model")


def _inner(described: str) -> tuple[str, str]:
    prefix = ""
    if match := re.fullmatch(r"[Ll]ist\[(.*)\]", described):
        prefix, described = "[]", match[1]
    elif match := re.fullmatch(r"[Dd]ict[\[(]str, ?(.*)[\])]", described):
        prefix, described = "{}", match[1]
    named = {model: kind for kind, model in OTHER_MODELS.items()}
    kind = named.get(described) or described.removeprefix("V1")
    if re.fullmatch(r"[A-Z]\w+", kind):
        return prefix, kind
    return "", ""


def text() -> str:
    """Return the module."""
    every = kinds()
    lines = [HEAD, "KINDS: Final[Mapping[str, str]] = {\n"]
    for kind, fields in every.items():
        parts = textwrap.wrap(fields, 100)
        lines.append(f'    "{kind}": (\n')
        lines += [f'        "{part}{" " if part is not parts[-1] else ""}"\n' for part in parts]
        lines.append("    ),\n")
    lines.append('}\n"""Kind → its fields."""\n\nTOP: Final[Mapping[str, str]] = {\n')
    for group, names in GROUPS.items():
        for name in names:
            label = name if group == "v1" else f"{name} ({group})"
            lines.append(f'    "{label}": "{name}",\n')
    lines.append('}\n"""Label of an object → its kind."""\n')
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"],
        input="".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    TARGET.write_text(text())
