"""Other names for everything in an anonymised snapshot: the same for the same, and nobody can tell what they stand for.

A name is hashed part by part: `web-frontend/eu` ─► `k3f…-b0a…/zz1…`. So what Kubernetes composes of names, such as the
claim `web-0-data` of the pod `web-0` and its volume `data`, is composed of the same parts here. The key of the hash is
drawn for each snapshot and kept nowhere.

What decides by itself stays: well-known labels, taints and resources, whole numbers in labels, which `Gt` and `Lt`
compare, the ordinals of StatefulSets, names of schedulers, which a configuration has; UIDs, by which ties are broken.
What CEL expressions may speak of stays as well: drivers, attributes and capacities of devices.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from scheduler.api.csi_translation import IN_TREE_PLUGINS
from scheduler.api.devices import CLAIM_FINALIZER
from scheduler.api.requests import is_extended_resource
from scheduler.snapshots.kept_fields import ANNOTATIONS

Json = dict[str, Any]

MAX_LABEL: Final = 63
MAX_NAME: Final = 253
_BITS: Final = 40
"""Of the hash of a part: two of 100,000 parts are alike once in two hundred snapshots."""

KEYS: Final = frozenset(
    {
        CLAIM_FINALIZER,
        "metadata.name",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "controller-revision-hash",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/metadata.name",
        "kubernetes.io/os",
        "node-role.kubernetes.io/control-plane",
        "node-role.kubernetes.io/master",
        "pod-template-generation",
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        *(plugin.zone_key for plugin in IN_TREE_PLUGINS if plugin.zone_key),
    }
)
"""Keys of labels and taints that stay, and all of `node.kubernetes.io/`."""

_PLAIN_VALUES: Final = frozenset(
    {"beta.kubernetes.io/arch", "beta.kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/os"}
)
_OF_NODES: Final = "node.kubernetes.io/"
_NAMESPACES: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
_PRIORITY_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
_DRIVERS: Final = frozenset(
    {"kubernetes.io/no-provisioner", *(name for plugin in IN_TREE_PLUGINS for name in (plugin.name, plugin.driver))}
)
_CONTROLLERS: Final = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "Node", "Pod", "ReplicaSet", "ReplicationController", "StatefulSet"}
)
_ADDRESSES: Final = frozenset({"", "0.0.0.0", "127.0.0.1", "::", "::1"})
_OF_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
_ATTACHABLE: Final = "attachable-volumes-"

_WORDS: Final = frozenset(
    {
        *("ContainersReady", "DisruptionTarget", "Initialized", "PodReadyToStartContainers", "PodScheduled", "Ready"),
        *("DiskPressure", "MemoryPressure", "NetworkUnavailable", "PIDPressure"),
        *("PodResizeInProgress", "PodResizePending", "Deferred", "Infeasible"),
        *("PreemptionByScheduler", "SchedulerError", "SchedulingGated", "Unschedulable"),
    }
)
"""Types and reasons of conditions that are Kubernetes' own: others name what people run on their nodes."""

_PART: Final = re.compile(r"[^-._/:@]+")
_NUMBER: Final = re.compile(r"\d{1,10}", re.ASCII)
"""Longer ones are numbers of accounts and telephones rather than amounts that somebody compares."""

_ORDINAL: Final = re.compile(r"(.*)-(\d{1,6})", re.ASCII | re.DOTALL)
_VOLUME_WORDS: Final = frozenset({"aws", "vol", "projects", "zones", "regions", "disks", "UNSPECIFIED"})
"""Parts of volumes' handles that are read: `aws://zone/vol-1`."""


class Aliases:
    """Those of one snapshot."""

    def __init__(self, key: bytes | None = None) -> None:
        """`key`: of the hash; by default a new one."""
        self._key = secrets.token_bytes(32) if key is None else key
        self._token: Final = lru_cache(maxsize=100_000)(self._hashed)
        self._claims: dict[tuple[str, str], str] = {}
        self._namespace = ""
        self._owner_pods: tuple[str, ...] = ()
        self._by_kind: Final[Mapping[str, Callable[[Json], Json]]] = {
            "Owner": self._owner,
            "Requirement": self._requirement,
            "Taint": self._taint,
            "Toleration": self._taint,
            "ClaimReference": self._claim_reference,
            "ZoneAttribute": self._zone_attribute,
        }
        self._by_class: Final[Mapping[str, Callable[[Any], Any]]] = {
            "name": self.name,
            "pod": self.pod,
            "claim": self.claim,
            "namespace": self.namespace,
            "class": lambda text: text if text in _PRIORITY_CLASSES else self.name(text),
            "key": self.key,
            "labels": self.labels,
            "resource": self.resource,
            "resources": lambda amounts: {self.resource(name): amount for name, amount in amounts.items()},
            "quota": lambda amounts: {self._charged(name): amount for name, amount in amounts.items()},
            "image": lambda text: self.node_image(with_tag(text)),
            "nodeImage": self.node_image,
            "driver": lambda text: text if text in _DRIVERS else self.name(text),
            "volume": self._volume,
            "address": lambda text: text if text in _ADDRESSES else self._token(text),
            "word": lambda text: text if text in _WORDS else self.name(text),
            "byPod": lambda by_pod: {self.pod(name): value for name, value in by_pod.items()},
            "fingerprint": lambda _: None,  # of the pods' names
        }

    def look_at(self, content: Json) -> None:
        """The next object, before anything of it is asked for."""
        metadata = content.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        self._namespace = str(named.get("namespace") or "")
        owners = named.get("ownerReferences")
        self._owner_pods = tuple(
            owner["name"]
            for owner in (owners if isinstance(owners, list) else ())
            if isinstance(owner, dict) and owner.get("kind") == "Pod" and isinstance(owner.get("name"), str)
        )

    def of_class(self, class_: str, value: Any) -> Any:
        """Return what stands for a value, or for each in a list. What is no text stays as it is."""
        if isinstance(value, list):
            return [self.of_class(class_, each) for each in value]
        if not isinstance(value, str | dict):
            return value
        if isinstance(value, dict) is not (class_ in ("labels", "resources", "quota", "byPod")):
            return None  # of another type than it should be
        return self._by_class[class_](value)

    def of_kind(self, kind: str, value: Json) -> Json:
        """Return the same for an object in which one field says what another one means."""
        change = self._by_kind.get(kind)
        return value if change is None else change(value)

    # Names.

    def name(self, text: str, longest: int = MAX_NAME, kept: frozenset[str] = frozenset()) -> str:
        """Return what stands for a name; `longest` in characters."""
        alias = _PART.sub(lambda part: part[0] if part[0] in kept else self._token(part[0]), text)
        return alias if len(alias) <= longest else f"{self._token(text)}{self._token(f'{text}/')}"

    def namespace(self, text: str) -> str:
        return text if text in _NAMESPACES else self.name(text, MAX_LABEL)

    def pod(self, text: str) -> str:
        """Keep the ordinal: StatefulSets make pods and claims by it."""
        match = _ORDINAL.fullmatch(text)
        return self.name(text) if match is None else f"{self.name(match[1])}-{match[2]}"

    def claim(self, text: str) -> str:
        """Compose the name of a claim that was made for a volume of a pod as it was composed: `pod-volume`."""
        known = self._claims.get((self._namespace, text))
        if known is not None:
            return known
        for pod in self._owner_pods:
            if text.startswith(f"{pod}-"):
                alias = f"{self.pod(pod)}-{self.name(text.removeprefix(f'{pod}-'))}"
                self._claims[self._namespace, text] = alias
                return alias
        return self.pod(text)

    def node_image(self, text: str) -> str:
        """Return an image with a tag."""
        return f"{self._token(text)}:t"

    def _volume(self, text: str) -> str:
        return self.name(text, len(text) * 10, _VOLUME_WORDS)

    # Labels, taints and resources.

    def key(self, text: str) -> str:
        """Return what stands for a key of labels, taints or gates."""
        if text in KEYS or text.startswith(_OF_NODES):
            return text
        prefix, slash, name = text.rpartition("/")
        return f"{self.name(prefix)}{slash}{self.name(name, MAX_LABEL)}"

    def value(self, key: str, text: str) -> str:
        """Return what stands for the value of a label, a taint or a term."""
        if key in _PLAIN_VALUES or not text or _NUMBER.fullmatch(text):
            return text
        match key:
            case "statefulset.kubernetes.io/pod-name":
                return self.pod(text)
            case "kubernetes.io/metadata.name":
                return self.namespace(text)
            case "metadata.name":
                return self.name(text)
            case _:
                return self.name(text, MAX_LABEL)

    def labels(self, labels: Json) -> Json:
        return {self.key(key): self._label(key, value) for key, value in labels.items()}

    def resource(self, text: str) -> str:
        """Return what stands for a resource; those that Kubernetes knows stay."""
        if text.startswith(_OF_DEVICE_CLASS):
            return _OF_DEVICE_CLASS + self.name(text.removeprefix(_OF_DEVICE_CLASS))
        if text.startswith(_ATTACHABLE):
            return _ATTACHABLE + self.name(text.removeprefix(_ATTACHABLE))
        return self.key(text) if is_extended_resource(text) else text

    def _charged(self, text: str) -> str:
        """Return what stands for something that quotas count: `pods`, `requests.example.com/gpu`."""
        prefix, dot, resource = text.partition(".")
        return f"{prefix}{dot}{self.resource(resource)}" if prefix in ("requests", "limits") else self.resource(text)

    def _label(self, key: str, value: Any) -> Any:
        return self.value(key, value) if isinstance(value, str) else value

    # Objects.

    def _owner(self, owner: Json) -> Json:
        kind, name = owner.get("kind"), owner.get("name")
        if isinstance(name, str):
            owner["name"] = self.pod(name) if kind == "Pod" else self.name(name)
        if isinstance(kind, str) and kind not in _CONTROLLERS:
            owner["kind"], owner["apiVersion"] = self.name(kind), self.name(str(owner.get("apiVersion", "")))
        return owner

    def _requirement(self, requirement: Json) -> Json:
        key, values = requirement.get("key"), requirement.get("values")
        if isinstance(key, str):
            requirement["key"] = self.key(key)
            if isinstance(values, list):
                requirement["values"] = [self._label(key, value) for value in values]
        return requirement

    def _taint(self, taint: Json) -> Json:
        # The key has its alias already: whether it is a well-known one shows in both.
        if isinstance(taint.get("value"), str):
            taint["value"] = self.value(str(taint.get("key", "")), taint["value"])
        return taint

    def _claim_reference(self, reference: Json) -> Json:
        namespace, name = reference.get("namespace"), reference.get("name")
        if isinstance(namespace, str) and isinstance(name, str):
            reference["name"] = self._claims.get((namespace, name)) or self.pod(name)
            reference["namespace"] = self.namespace(namespace)
        return reference

    def _zone_attribute(self, attribute: Json) -> Json:
        return {} if str(attribute.get("name", "")).startswith("nodeTopologyPodsFingerprint") else attribute

    def annotation(self, key: str, value: str) -> str | None:
        """Return what stands for an annotation that is kept; None for none."""
        class_ = ANNOTATIONS[key]
        return self._by_class[class_](value) if class_ else value

    def _hashed(self, part: str) -> str:
        """A letter first: no number, fit for every name."""
        digest = hashlib.blake2b(part.encode(errors="surrogatepass"), key=self._key, digest_size=_BITS // 8).digest()
        text = base64.b32hexencode(digest).decode().lower()
        return "ghijklmnopqrstuvwxyzabcdefghijkl"[int(text[0], 32)] + text[1:]


def with_tag(image: str) -> str:
    """Rule: image_locality.go (normalizedImageName)."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
