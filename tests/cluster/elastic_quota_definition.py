"""The definition of ElasticQuota, scheduling.x-k8s.io/v1alpha1: fields and types of the one of scheduler-plugins."""

from typing import Any, Final

_QUANTITY: Final = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_AMOUNTS: Final = {"type": "object", "additionalProperties": _QUANTITY}
_TEXT: Final = {"type": "string"}

NAME: Final = "elasticquotas.scheduling.x-k8s.io"

DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": NAME,
        # Without it the API server takes no definition in a group of k8s.io.
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"},
    },
    "spec": {
        "group": "scheduling.x-k8s.io",
        "scope": "Namespaced",
        "names": {
            "kind": "ElasticQuota",
            "listKind": "ElasticQuotaList",
            "plural": "elasticquotas",
            "singular": "elasticquota",
            "shortNames": ["eq", "eqs"],
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
                            "spec": {"type": "object", "properties": {"min": _AMOUNTS, "max": _AMOUNTS}},
                            "status": {"type": "object", "properties": {"used": _AMOUNTS}},
                        },
                    }
                },
            }
        ],
    },
}
