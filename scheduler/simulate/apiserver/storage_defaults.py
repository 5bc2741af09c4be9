"""Volumes and storage classes as written by hand, completed as the API server and the volume controller would.

Rule: pkg/apis/storage/v1/defaults.go (SetDefaults_StorageClass) at v1.36.3; a volume without a claim is available once
the controller has seen it.
"""

from collections.abc import Mapping
from typing import Any


def with_storage_defaults(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object with its defaults, if it is of one of these kinds; else as it is."""
    match content.get("kind"):
        case "StorageClass" if not content.get("volumeBindingMode"):
            return {**content, "volumeBindingMode": "Immediate"}
        case "PersistentVolume" if not _part(content, "status").get("phase"):
            phase = "Bound" if _part(content, "spec").get("claimRef") else "Available"
            return {**content, "status": {**_part(content, "status"), "phase": phase}}
        case _:
            return content


def _part(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = content.get(name)
    return part if isinstance(part, Mapping) else {}
