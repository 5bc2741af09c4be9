"""The definition of PodGroup, scheduling.x-k8s.io/v1alpha1: fields and types of the one of scheduler-plugins."""

from typing import Any, Final

_COUNT: Final = {"type": "integer", "format": "int32"}
_TEXT: Final = {"type": "string"}
_QUANTITY: Final = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}

NAME: Final = "podgroups.scheduling.x-k8s.io"

DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": NAME,
        # Without it the API server takes no definition in a group of k8s.io.
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"},
    },
    "spec": {
        "group": "scheduling.x-k8s.io",
        "scope": "Namespaced",
        "names": {
            "kind": "PodGroup",
            "listKind": "PodGroupList",
            "plural": "podgroups",
            "singular": "podgroup",
            "shortNames": ["pg", "pgs"],
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "apiVersion": _TEXT,
                            "kind": _TEXT,
                            "metadata": {"type": "object"},
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "minMember": {**_COUNT, "minimum": 1},
                                    "minResources": {"type": "object", "additionalProperties": _QUANTITY},
                                    "scheduleTimeoutSeconds": _COUNT,
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "phase": _TEXT,
                                    "occupiedBy": _TEXT,
                                    "running": _COUNT,
                                    "succeeded": _COUNT,
                                    "failed": _COUNT,
                                    "scheduleStartTime": {"type": "string", "format": "date-time"},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}
