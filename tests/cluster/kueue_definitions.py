"""Definitions of the objects of Kueue, v1beta2, that quotas are read from: fields, types and defaults of its own."""

from typing import Any, Final

_QUANTITY: Final = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_STOP: Final = {"type": "string", "enum": ["None", "Hold", "HoldAndDrain"], "default": "None"}
_FAIR_SHARING: Final = {"type": "object", "properties": {"weight": {**_QUANTITY, "default": 1}}}


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def _list(items: Any, most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": most}


_SELECTOR: Final = _object(
    matchLabels=_TEXTS, matchExpressions=_list(_object(key=_TEXT, operator=_TEXT, values=_list(_TEXT, 64)), 64)
)
_QUOTA: Final = {
    **_object(name=_TEXT, nominalQuota=_QUANTITY, borrowingLimit=_QUANTITY, lendingLimit=_QUANTITY),
    "required": ["name", "nominalQuota"],
}
_GROUPS: Final = _list(
    _object(coveredResources=_list(_TEXT, 64), flavors=_list(_object(name=_TEXT, resources=_list(_QUOTA, 64)), 64)), 16
)
_TAINT: Final = _object(key=_TEXT, value=_TEXT, effect=_TEXT)
_TOLERATION: Final = _object(
    key=_TEXT, operator=_TEXT, value=_TEXT, effect=_TEXT, tolerationSeconds={"type": "integer"}
)

_SPECS: Final[dict[str, tuple[str, bool, dict[str, Any]]]] = {
    "ClusterQueue": (
        "clusterqueues",
        False,
        _object(
            resourceGroups=_GROUPS,
            cohortName=_TEXT,
            queueingStrategy={
                "type": "string",
                "enum": ["StrictFIFO", "BestEffortFIFO"],
                "default": "BestEffortFIFO",
            },
            namespaceSelector=_SELECTOR,
            flavorFungibility=_object(
                whenCanBorrow={"type": "string", "enum": ["MayStopSearch", "TryNextFlavor"]},
                whenCanPreempt={"type": "string", "enum": ["MayStopSearch", "TryNextFlavor"]},
                preference={"type": "string", "enum": ["BorrowingOverPreemption", "PreemptionOverBorrowing"]},
            ),
            preemption=_object(
                reclaimWithinCohort={"type": "string", "enum": ["Never", "LowerPriority", "Any"]},
                borrowWithinCohort=_object(policy=_TEXT, maxPriorityThreshold={"type": "integer"}),
                withinClusterQueue=_TEXT,
            ),
            admissionChecksStrategy=_object(admissionChecks=_list(_object(name=_TEXT, onFlavors=_list(_TEXT, 64)), 64)),
            stopPolicy=_STOP,
            fairSharing=_FAIR_SHARING,
        ),
    ),
    "LocalQueue": (
        "localqueues",
        True,
        _object(clusterQueue=_TEXT, stopPolicy=_STOP, fairSharing=_FAIR_SHARING),
    ),
    "Cohort": (
        "cohorts",
        False,
        _object(parentName=_TEXT, resourceGroups=_GROUPS, fairSharing=_FAIR_SHARING),
    ),
    "ResourceFlavor": (
        "resourceflavors",
        False,
        _object(
            nodeLabels=_TEXTS,
            nodeTaints=_list(_TAINT, 8),
            tolerations=_list(_TOLERATION, 8),
            topologyName=_TEXT,
            resourceWeights={"type": "object", "additionalProperties": _QUANTITY},
        ),
    ),
}

NAMES: Final = tuple(f"{plural}.kueue.x-k8s.io" for plural, _, _ in _SPECS.values())


def _definition(kind: str, plural: str, is_namespaced: bool, spec: dict[str, Any]) -> dict[str, Any]:
    schema = _object(
        apiVersion=_TEXT,
        kind=_TEXT,
        metadata={"type": "object"},
        spec=spec,
        status={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    )
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.kueue.x-k8s.io",
            # Without it the API server takes no definition in a group of k8s.io.
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/kueue"},
        },
        "spec": {
            "group": "kueue.x-k8s.io",
            "scope": "Namespaced" if is_namespaced else "Cluster",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": "v1beta2",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


DEFINITIONS: Final = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [_definition(kind, *parts) for kind, parts in _SPECS.items()],
}
