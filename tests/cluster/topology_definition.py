"""The definition of NodeResourceTopology, topology.node.k8s.io/v1alpha2: fields and types of the real one.

https://github.com/k8stopologyawareschedwg/noderesourcetopology-api, pkg/apis/topology/v1alpha2/types.go.
"""

from typing import Any, Final

_TEXT: Final = {"type": "string"}
_QUANTITY: Final = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_ATTRIBUTES: Final = _list(_object(("name", "value"), name=_TEXT, value=_TEXT))
_RESOURCE: Final = _object(
    ("name", "capacity", "allocatable", "available"),
    name=_TEXT,
    capacity=_QUANTITY,
    allocatable=_QUANTITY,
    available=_QUANTITY,
)
_ZONE: Final = _object(
    ("name", "type"),
    name=_TEXT,
    type=_TEXT,
    parent=_TEXT,
    costs=_list(_object(("name", "value"), name=_TEXT, value={"type": "integer", "format": "int64"})),
    attributes=_ATTRIBUTES,
    resources=_list(_RESOURCE),
)

NAME: Final = "noderesourcetopologies.topology.node.k8s.io"

DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": NAME,
        # Without it the API server takes no definition in a group of k8s.io.
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1870"},
    },
    "spec": {
        "group": "topology.node.k8s.io",
        "scope": "Cluster",
        "names": {
            "kind": "NodeResourceTopology",
            "listKind": "NodeResourceTopologyList",
            "plural": "noderesourcetopologies",
            "singular": "noderesourcetopology",
            "shortNames": ["node-res-topo"],
        },
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": _object(
                        ("zones",),
                        apiVersion=_TEXT,
                        kind=_TEXT,
                        metadata={"type": "object"},
                        topologyPolicies=_list(_TEXT),
                        attributes=_ATTRIBUTES,
                        zones=_list(_ZONE),
                    )
                },
            }
        ],
    },
}
