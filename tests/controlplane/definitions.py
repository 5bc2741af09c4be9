"""Definitions of custom resources for tests: fields, types and defaults of the real ones."""

from typing import Final

from tests.controlplane.client import Object

TEXT: Final[Object] = {"type": "string"}
_TEXTS: Final[Object] = {"type": "object", "additionalProperties": TEXT}
_NUMBER: Final[Object] = {"type": "integer", "format": "int32"}
_QUANTITY: Final[Object] = {"anyOf": [{"type": "integer"}, TEXT], "x-kubernetes-int-or-string": True}
_AMOUNTS: Final[Object] = {"type": "object", "additionalProperties": _QUANTITY}
ANYTHING: Final[Object] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def an_object(*required: str, **properties: Object) -> Object:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def a_list(items: Object) -> Object:
    return {"type": "array", "items": items}


def one_of(*values: str, **more: str) -> Object:
    return {"type": "string", "enum": list(values), **more}


def definition(
    api_version: str, kind: str, plural: str, schema: Object = ANYTHING, *, is_namespaced: bool = True
) -> Object:
    """A definition of objects with a status of its own, of which by default any is valid."""
    group, version = api_version.split("/")
    if schema is not ANYTHING:
        header = {"apiVersion": TEXT, "kind": TEXT, "metadata": {"type": "object"}}
        schema = {**schema, "properties": {**header, **schema["properties"]}}
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            # Without it the API server takes no definition in a group of k8s.io.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced" if is_namespaced else "Cluster",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def schema_of(defined: Object) -> Object:
    """The schema in a definition."""
    schema: Object = defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


BUDGET: Final = definition("example.com/v1", "Budget", "budgets")

ELASTIC_QUOTA: Final = definition(
    "scheduling.x-k8s.io/v1alpha1",
    "ElasticQuota",
    "elasticquotas",
    an_object(spec=an_object(min=_AMOUNTS, max=_AMOUNTS), status=an_object(used=_AMOUNTS)),
)

POD_GROUP: Final = definition(
    "scheduling.x-k8s.io/v1alpha1",
    "PodGroup",
    "podgroups",
    an_object(
        spec=an_object(minMember={**_NUMBER, "minimum": 1}, minResources=_AMOUNTS, scheduleTimeoutSeconds=_NUMBER),
        status=an_object(
            phase=TEXT,
            occupiedBy=TEXT,
            running=_NUMBER,
            succeeded=_NUMBER,
            failed=_NUMBER,
            scheduleStartTime={"type": "string", "format": "date-time"},
        ),
    ),
)

_ATTRIBUTES: Final = a_list(an_object("name", "value", name=TEXT, value=TEXT))
_ZONE_AMOUNTS: Final = dict.fromkeys(("capacity", "allocatable", "available"), _QUANTITY)
_COST: Final = an_object("name", "value", name=TEXT, value={"type": "integer", "format": "int64"})
_ZONE: Final = an_object(
    "name",
    "type",
    name=TEXT,
    type=TEXT,
    parent=TEXT,
    costs=a_list(_COST),
    attributes=_ATTRIBUTES,
    resources=a_list(an_object("name", *_ZONE_AMOUNTS, name=TEXT, **_ZONE_AMOUNTS)),
)
NODE_RESOURCE_TOPOLOGY: Final = definition(
    "topology.node.k8s.io/v1alpha2",
    "NodeResourceTopology",
    "noderesourcetopologies",
    an_object("zones", topologyPolicies=a_list(TEXT), attributes=_ATTRIBUTES, zones=a_list(_ZONE)),
    is_namespaced=False,
)

_KUEUE: Final = "kueue.x-k8s.io/v1beta2"
_STOP: Final = one_of("None", "Hold", "HoldAndDrain", default="None")
_FAIR: Final = an_object(weight={**_QUANTITY, "default": 1})
_SELECTOR: Final = an_object(
    matchLabels=_TEXTS, matchExpressions=a_list(an_object(key=TEXT, operator=TEXT, values=a_list(TEXT)))
)
_QUOTA: Final = an_object(
    "name", "nominalQuota", name=TEXT, nominalQuota=_QUANTITY, borrowingLimit=_QUANTITY, lendingLimit=_QUANTITY
)
_QUOTAS: Final = a_list(
    an_object(coveredResources=a_list(TEXT), flavors=a_list(an_object(name=TEXT, resources=a_list(_QUOTA))))
)
_TAINT: Final = an_object(key=TEXT, value=TEXT, effect=TEXT)
_TOLERATION: Final = an_object(key=TEXT, operator=TEXT, value=TEXT, effect=TEXT, tolerationSeconds=_NUMBER)
_CLUSTER_QUEUE: Final = an_object(
    resourceGroups=_QUOTAS,
    cohortName=TEXT,
    queueingStrategy=one_of("StrictFIFO", "BestEffortFIFO", default="BestEffortFIFO"),
    namespaceSelector=_SELECTOR,
    flavorFungibility=an_object(
        whenCanBorrow=one_of("MayStopSearch", "TryNextFlavor"),
        whenCanPreempt=one_of("MayStopSearch", "TryNextFlavor"),
        preference=one_of("BorrowingOverPreemption", "PreemptionOverBorrowing"),
    ),
    preemption=an_object(
        reclaimWithinCohort=one_of("Never", "LowerPriority", "Any"),
        borrowWithinCohort=an_object(policy=TEXT, maxPriorityThreshold=_NUMBER),
        withinClusterQueue=TEXT,
    ),
    admissionChecksStrategy=an_object(admissionChecks=a_list(an_object(name=TEXT, onFlavors=a_list(TEXT)))),
    stopPolicy=_STOP,
    fairSharing=_FAIR,
    admissionScope=an_object(admissionMode=TEXT),
)


def _of_kueue(kind: str, spec: Object, *, is_namespaced: bool = False) -> Object:
    schema = an_object(spec=spec, status=ANYTHING)
    return definition(_KUEUE, kind, f"{kind.lower()}s", schema, is_namespaced=is_namespaced)


KUEUE: Final = (
    _of_kueue("ClusterQueue", _CLUSTER_QUEUE),
    _of_kueue("LocalQueue", an_object(clusterQueue=TEXT, stopPolicy=_STOP, fairSharing=_FAIR), is_namespaced=True),
    _of_kueue("Cohort", an_object(parentName=TEXT, resourceGroups=_QUOTAS, fairSharing=_FAIR)),
    _of_kueue(
        "ResourceFlavor",
        an_object(
            nodeLabels=_TEXTS,
            nodeTaints=a_list(_TAINT),
            tolerations=a_list(_TOLERATION),
            topologyName=TEXT,
            resourceWeights=_AMOUNTS,
        ),
    ),
)

VOLCANO: Final = "scheduling.volcano.sh/v1beta1"
JOB_SET: Final = "jobset.x-k8s.io/v1alpha2"
FOREIGN_GROUPS: Final = (
    definition(VOLCANO, "PodGroup", "podgroups"),
    definition(VOLCANO, "Queue", "queues", is_namespaced=False),
    definition(JOB_SET, "JobSet", "jobsets"),
)
