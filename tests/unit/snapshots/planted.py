"""Objects of every kind in a snapshot, with marked texts in every field, by the API's own description."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from kubernetes.client import models

from tests.controlplane.definitions import (
    ANYTHING,
    ELASTIC_QUOTA,
    KUEUE,
    NODE_RESOURCE_TOPOLOGY,
    POD_GROUP,
    TEXT,
    a_list,
    an_object,
    schema_of,
)

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
_NUMBER: Final = {"type": "integer"}

_NATIVE_GROUP: Final[Json] = {
    "schedulingPolicy": an_object(gang=an_object(minCount=_NUMBER, minGroupCount=_NUMBER)),
    "schedulingConstraints": an_object(topology=a_list(an_object(key=TEXT))),
    "disruptionMode": {"oneOf": [TEXT, an_object(single=an_object(), all=an_object(name=TEXT))]},
    "priority": _NUMBER,
    "priorityClassName": TEXT,
    "preemptionPolicy": TEXT,
    "parentCompositePodGroupName": TEXT,
    "podGroupTemplateRef": an_object(workload=an_object(workloadName=TEXT, podGroupTemplateName=TEXT)),
}
_OTHER_GROUP: Final = schema_of(POD_GROUP)["properties"]
_GROUP: Final = an_object(
    spec=an_object(**_NATIVE_GROUP, **_OTHER_GROUP["spec"]["properties"]),
    status=an_object(**_OTHER_GROUP["status"]["properties"], conditions=a_list(an_object(message=TEXT))),
)
"""Of scheduling.k8s.io and of scheduling.x-k8s.io."""

_SCHEMAS: Final[Mapping[str, Json]] = {
    **{each["spec"]["names"]["kind"]: schema_of(each) for each in (*KUEUE, ELASTIC_QUOTA, NODE_RESOURCE_TOPOLOGY)},
    "PodGroup": _GROUP,
    "CompositePodGroup": _GROUP,
    "NodeMetrics": an_object(timestamp=TEXT, window=TEXT, usage={"type": "object", "additionalProperties": TEXT}),
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
            case "object" if schema is ANYTHING:
                return {"conditions": [{"message": self._text(f"{path}.conditions[].message")}]}
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
