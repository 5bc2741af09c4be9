"""Objects of every kind in a snapshot, with marked texts in every field, by the API's own description."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from kubernetes.client import models

from tests.cluster.topology_definition import DEFINITION

Json = dict[str, Any]

MARK: Final = "zqleak"
_MARKED: Final = re.compile(f"{MARK}([a-z]+)q", re.IGNORECASE)

SHAPES: Final = (
    "{}",
    "{}-0",
    "{}-{}",
    "x.{}.example/{}",
    "example.com/{}",
    "node.kubernetes.io/{}",
    "node-role.kubernetes.io/{}",
    "kubernetes.io/{}",
    "{}.kubernetes.io/x",
    "resource.kubernetes.io/{}",
    "requests.{}/x",
    "requests.{}",
    "limits.{}",
    "count/{}",
    "hugepages-{}",
    "attachable-volumes-{}",
    "attachable-volumes-csi-{}",
    "deviceclass.resource.kubernetes.io/{}",
    "{}.storageclass.storage.k8s.io/requests.storage",
    "system-{}",
    "kube-{}",
    "node-{}",
    "{}/v1",
    "apps/{}",
    "v1{}",
    "1{}",
    "10Gi{}",
    "30s{}",
    "1.2.3-{}",
    "1.2.3+{}",
    "2024-01-01T00:00:00Z{}",
    "4b1c7f7e-0000-4000-8000-000000000000{}",
    "aws://{}/vol-{}",
    "registry.{}/a/b:{}@sha256:{}",
    "10.0.0.1:{}",
    "{}, {}",
    "kubernetes.io/aws-ebs,{}",
    "True {}",
    'device.driver == "{}"',
    'device.attributes["{}"].{} == "{}" // {}',
    'device.attributes["a"].b.startsWith("{}") || \'{}\' == r"""{}""" + b"{}"',
    "device.attributes.`{}` == {}({})",
    'device.driver == "unfinished {}',
    'device.driver == "\\u007a{}"',
)
"""What a person may write, around a marker."""

WORDS: Final = (
    *(
        "",
        "v1",
        "apps/v1",
        "batch/v1",
        "Pod",
        "Node",
        "DaemonSet",
        "ReplicaSet",
        "Job",
        "pods",
        "PersistentVolumeClaim",
    ),
    *("True", "False", "Exists", "In", "Gt", "NoSchedule", "Equal", "Ready", "PodScheduled", "Complete", "Pending"),
    *("default", "kube-system", "default-scheduler", "system-node-critical", "kubernetes.io/job-controller"),
    *("cpu", "memory", "requests.cpu", "hugepages-2Mi", "10Gi", "3", "50%", "topology.kubernetes.io/zone"),
    *("kubernetes.io/hostname", "node.kubernetes.io/not-ready", "metadata.name", "kubernetes.io/os", "linux"),
    *("node-0", "topologyManagerPolicy", "single-numa-node", "2024-01-01T00:00:00Z", "30s"),
    *("4b1c7f7e-0000-4000-8000-000000000000", "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "resource.kubernetes.io"),
    *("device.driver", 'device.attributes["a"].b == 1'),
)
"""Kubernetes' own: what stands beside the marked texts."""

KEYS: Final = (
    "storage.alpha.kubernetes.io/migrated-plugins",
    "kubernetes.io/config.mirror",
    "deployment.kubernetes.io/revision",
    "pv.kubernetes.io/bind-completed",
    "resource.kubernetes.io/extended-resource-claim",
    "storageclass.kubernetes.io/is-default-class",
    "volume.kubernetes.io/selected-node",
    "volume.beta.kubernetes.io/storage-class",
    "topology.node.k8s.io/fingerprint",
)
"""Of annotations that are kept."""

_OWN_MODELS: Final = {"ResourceClaim": "ResourceV1ResourceClaim"}
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


_MAP: Final[Json] = {"type": "object", "additionalProperties": _TEXT}
_SELECTOR: Final = _object(
    matchLabels=_MAP, matchExpressions=_list(_object(key=_TEXT, operator=_TEXT, values=_list(_TEXT)))
)
_FAIR: Final = _object(weight=_TEXT)
_RESOURCE_GROUPS: Final = _list(
    _object(
        coveredResources=_list(_TEXT),
        flavors=_list(
            _object(
                name=_TEXT,
                resources=_list(_object(name=_TEXT, nominalQuota=_TEXT, borrowingLimit=_TEXT, lendingLimit=_TEXT)),
            )
        ),
    )
)

_POD_GROUP: Final = _object(  # of scheduling.k8s.io and of scheduling.x-k8s.io
    spec=_object(
        schedulingPolicy=_object(gang=_object(minCount=_NUMBER, minGroupCount=_NUMBER)),
        schedulingConstraints=_object(topology={"type": "array", "items": _object(key=_TEXT)}),
        disruptionMode={"oneOf": [_TEXT, _object(single=_object(), all=_object(name=_TEXT))]},
        priority=_NUMBER,
        priorityClassName=_TEXT,
        preemptionPolicy=_TEXT,
        parentCompositePodGroupName=_TEXT,
        podGroupTemplateRef=_object(workload=_object(workloadName=_TEXT, podGroupTemplateName=_TEXT)),
        minMember=_NUMBER,
        minResources={"type": "object", "additionalProperties": _TEXT},
        scheduleTimeoutSeconds=_NUMBER,
    ),
    status=_object(phase=_TEXT, occupiedBy=_TEXT, conditions={"type": "array", "items": _object(message=_TEXT)}),
)

_SCHEMAS: Final[Mapping[str, Json]] = {
    "ClusterQueue": _object(
        spec=_object(
            resourceGroups=_RESOURCE_GROUPS,
            cohortName=_TEXT,
            namespaceSelector=_SELECTOR,
            flavorFungibility=_object(whenCanBorrow=_TEXT, whenCanPreempt=_TEXT, preference=_TEXT),
            preemption=_object(
                reclaimWithinCohort=_TEXT,
                borrowWithinCohort=_object(policy=_TEXT, maxPriorityThreshold=_NUMBER),
                withinClusterQueue=_TEXT,
            ),
            admissionChecksStrategy=_object(admissionChecks=_list(_object(name=_TEXT, onFlavors=_list(_TEXT)))),
            stopPolicy=_TEXT,
            fairSharing=_FAIR,
            admissionScope=_object(admissionMode=_TEXT),
        ),
        status=_object(conditions=_list(_object(message=_TEXT))),
    ),
    "LocalQueue": _object(spec=_object(clusterQueue=_TEXT, stopPolicy=_TEXT, fairSharing=_FAIR)),
    "Cohort": _object(spec=_object(parentName=_TEXT, resourceGroups=_RESOURCE_GROUPS, fairSharing=_FAIR)),
    "ResourceFlavor": _object(
        spec=_object(
            nodeLabels=_MAP,
            nodeTaints=_list(_object(key=_TEXT, value=_TEXT, effect=_TEXT)),
            tolerations=_list(_object(key=_TEXT, operator=_TEXT, value=_TEXT, effect=_TEXT)),
            topologyName=_TEXT,
        )
    ),
    "ElasticQuota": _object(
        spec=_object(min=_MAP, max=_MAP),
        status=_object(used=_MAP),
    ),
    "PodGroup": _POD_GROUP,
    "CompositePodGroup": _POD_GROUP,
    "NodeResourceTopology": DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
    "NodeMetrics": {
        "type": "object",
        "properties": {
            "metadata": {"type": "object"},
            "timestamp": _TEXT,
            "window": _TEXT,
            "usage": {"type": "object", "additionalProperties": _TEXT},
        },
    },
}


class Planting:
    """Makes objects with marked texts, and knows where each stood."""

    def __init__(self, seed: int, words: float) -> None:
        """`words`: the share of the texts that are Kubernetes' own instead."""
        self._random = Random(seed)
        self._words = words
        self._places: list[str] = []

    def object_of(self, kind: str) -> Json:
        """Return an object of a kind with all of its fields."""
        schema = _SCHEMAS.get(kind)
        if schema is None:
            return self._of_model(_OWN_MODELS.get(kind, f"V1{kind}"), kind)
        made = self._of_schema(schema, kind)
        return {**made, "metadata": self._of_model("V1ObjectMeta", f"{kind}.metadata")}

    def leaks(self, text: str) -> Sequence[str]:
        """Return the fields whose marked texts stand in a text."""
        return sorted({self._places[_number(match[1].lower())] for match in _MARKED.finditer(text)})

    def _of_model(self, name: str, path: str) -> Json:
        model = getattr(models, name)
        return {
            model.attribute_map[field]: self._of_type(type_, f"{path}.{model.attribute_map[field]}")
            for field, type_ in model.openapi_types.items()
        }

    def _of_type(self, type_: str, path: str) -> Any:
        outer, _, inner = type_.partition("[")
        match outer:
            case "List":
                return [self._of_type(inner[:-1], f"{path}[]") for _ in range(2)]
            case "Dict":
                within = inner[:-1].partition(", ")[2]
                return {self._key(path): self._of_type(within, f"{path}{{}}") for _ in range(2)}
            case "str" | "datetime":
                return self._text(path)
            case "int":
                return self._random.randint(0, 3)
            case "float":
                return 1.5
            case "bool":
                return self._random.random() < 0.5
            case "object":
                return self._random.choice((self._text(path), {self._key(path): self._text(path)}))
            case _:
                return self._of_model(type_, path)

    def _of_schema(self, schema: Json, path: str) -> Any:
        if "oneOf" in schema:
            return self._of_schema(self._random.choice(schema["oneOf"]), path)
        match schema.get("type", "string"):
            case "object" if "additionalProperties" in schema:
                return {self._key(path): self._of_schema(schema["additionalProperties"], f"{path}{{}}") for _ in "ab"}
            case "object":
                inner = schema.get("properties", {})
                return {name: self._of_schema(each, f"{path}.{name}") for name, each in inner.items()}
            case "array":
                return [self._of_schema(schema["items"], f"{path}[]") for _ in range(2)]
            case "integer":
                return self._random.randint(0, 3)
            case _:
                return self._text(path)

    def _key(self, path: str) -> str:
        if path.endswith("annotations"):
            return self._random.choice(KEYS)
        return self._text(f"{path} (key)")

    def _text(self, path: str) -> str:
        if self._random.random() < self._words:
            return self._random.choice(WORDS)
        mark = f"{MARK}{_letters(len(self._places))}q"
        self._places.append(path)
        return self._random.choice(SHAPES).replace("{}", mark)


def _letters(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def _number(letters: str) -> int:
    return int("".join(str(ord(letter) - ord("a")) for letter in letters))
