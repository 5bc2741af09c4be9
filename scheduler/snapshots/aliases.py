"""Aliases for all names in an anonymised snapshot: the same alias for the same name, and no way back to the name.

A name is hashed part by part: `web-frontend/eu` ─► `k3f…-b0a…/zz1…`. So names that Kubernetes composes, such as the
claim `web-0-data` of the pod `web-0` and its volume `data`, are composed of the same parts here. The key of the hash is
drawn for each snapshot and kept nowhere.

Names that Kubernetes itself interprets stay, each as a whole: see `words`. So do amounts, times, whole numbers in
labels, which `Gt` and `Lt` compare, the ordinals of StatefulSets, and UIDs, by which ties are broken. CEL expressions
use the aliases of devices: see `expressions`.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable, Container, Mapping
from functools import lru_cache
from typing import Any, Final

from scheduler.api.devices import IMPLICIT_PREFIX
from scheduler.snapshots import words
from scheduler.snapshots.expressions import Expressions
from scheduler.snapshots.kept_fields import ANNOTATIONS

Json = dict[str, Any]

MAX_LABEL: Final = 63
MAX_NAME: Final = 253
_BITS: Final = 40
"""Of the hash of a part: two of 100,000 parts are alike once in two hundred snapshots."""

_OF_KUBERNETES: Final = "kubernetes.io/"
_LONGEST_DOMAIN: Final = 200
_MAPPINGS: Final = frozenset({"labels", "resources", "byPod", "capacities"})

_PART: Final = re.compile(r"[^-._/:@]+")
_NUMBER: Final = re.compile(r"\d{1,10}", re.ASCII)
"""Longer ones are account or telephone numbers rather than amounts that are compared."""

_ORDINAL: Final = re.compile(r"(.*)-(\d{1,6})", re.ASCII | re.DOTALL)
_ZONE: Final = re.compile(r"node-\d{1,4}", re.ASCII)
"""The name of a NUMA node in a NodeResourceTopology."""

_VERSION: Final = re.compile(r"(\d{1,10}\.\d{1,10}\.\d{1,10})([-+][0-9A-Za-z.+-]*)?", re.ASCII)
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z]+", re.ASCII)
_AMOUNT: Final = re.compile(r"\d{1,10}(?:\.\d{1,10})?(?:[KMGTPE]i?|[numk])?", re.ASCII)


class Aliases:
    """The aliases of one snapshot."""

    def __init__(self, key: bytes | None = None) -> None:
        """`key`: of the hash; by default a new one."""
        self._key = secrets.token_bytes(32) if key is None else key
        self._token: Final = lru_cache(maxsize=100_000)(self._hashed)
        self._expressions: Final = Expressions(self.device)
        self._claims: dict[tuple[str, str], str] = {}
        self._namespace = ""
        self._owner_pods: tuple[str, ...] = ()
        self._by_kind: Final[Mapping[str, Callable[[Json], Json]]] = {
            "Owner": self._owner,
            "Requirement": self._requirement,
            "Taint": self._taint,
            "Toleration": self._taint,
            "ClaimReference": self._claim_reference,
            "Consumer": self._consumer,
            "ZoneAttribute": self._zone_attribute,
        }
        self._by_class: Final[Mapping[str, Callable[[Any], Any]]] = {
            "": self._plain,
            "whole": lambda text: text,
            "name": self.name,
            "pod": self.pod,
            "claim": self.claim,
            "namespace": self.namespace,
            "class": _unless(words.PRIORITY_CLASSES, self.name),
            "scheduler": _unless(words.SCHEDULERS, self.name),
            "apiVersion": self._api_version,
            "kind": _unless(words.KINDS, self.name),
            "key": self.key,
            "labels": self.labels,
            "resource": self.resource,
            "resources": lambda amounts: self._amounts(self.resource, amounts),
            "image": lambda text: self.node_image(with_tag(text)),
            "nodeImage": self.node_image,
            "driver": _unless(words.DRIVERS, self.name),
            "drivers": lambda text: ",".join(self.of_class("driver", each) for each in text.split(",")),
            "volume": self._volume,
            "address": _unless(words.ADDRESSES, self._token),
            "word": _unless(words.PLAIN, self.name),
            "byPod": lambda by_pod: self._amounts(self.pod, by_pod),
            "device": self._expressions.known,
            "attribute": self._attribute,
            "capacities": lambda amounts: self._amounts(self._attribute, amounts),
            "expression": self._expressions.rewritten,
            "zone": lambda text: text if _ZONE.fullmatch(text) else self.name(text),
            "fingerprint": lambda _: None,  # of the pods' names
        }

    def look_at(self, content: Json) -> None:
        """Begin with an object: its aliases are requested after this."""
        metadata = content.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        self._namespace = str(named.get("namespace") or "")
        owners = named.get("ownerReferences")
        self._owner_pods = tuple(
            owner["name"]
            for owner in (owners if isinstance(owners, list) else ())
            if isinstance(owner, dict) and _is_pod(owner) and isinstance(owner.get("name"), str)
        )

    def of_class(self, class_: str, value: Any) -> Any:
        """Return the alias of a value, or of each in a list. Values that are no text stay."""
        if isinstance(value, list):
            return [self.of_class(class_, each) for each in value]
        if not isinstance(value, str | dict):
            return value
        if isinstance(value, dict) is not (class_ in _MAPPINGS):
            return None  # of another type than it should be
        return self._by_class[class_](value)

    def of_kind(self, kind: str, value: Json) -> Json:
        """Return the same for an object in which one field says what another one means."""
        change = self._by_kind.get(kind)
        return value if change is None else change(value)

    # Names.

    def name(self, text: str, longest: int = MAX_NAME, kept: frozenset[str] = frozenset()) -> str:
        """Return the alias of a name; `longest` in characters."""
        alias = _PART.sub(lambda part: part[0] if part[0] in kept else self._token(part[0]), text)
        return alias if len(alias) <= longest else f"{self._token(text)}{self._token(f'{text}/')}"

    def _plain(self, text: str) -> str:
        """Of a field that holds an amount, a time, a UID or a choice."""
        return text if words.is_plain(text) else self._token(text)

    def namespace(self, text: str) -> str:
        return text if text in words.NAMESPACES else self.name(text, MAX_LABEL)

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
        return self.name(text, len(text) * 10, words.VOLUME_PARTS)

    # Labels, taints and resources.

    def key(self, text: str) -> str:
        """Return the alias of a key of labels, taints or gates."""
        if text in words.KEYS:
            return text
        prefix, slash, name = text.rpartition("/")
        return f"{self.name(prefix, _LONGEST_DOMAIN)}{slash}{self.name(name, MAX_LABEL)}"

    def value(self, key: str, text: str) -> str:
        """Return the alias of a value of a label, a taint or a term."""
        if text in words.VALUES.get(key, ()) or not text or _NUMBER.fullmatch(text):
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
        """Return the alias of a resource, which is extended or not, scalar or not, as the resource is."""
        if words.is_resource(text):
            return text
        for prefix in (IMPLICIT_PREFIX, "attachable-volumes-", "hugepages-", "requests."):
            if text.startswith(prefix):
                return prefix + self.name(text.removeprefix(prefix))
        domain, of_kubernetes, name = text.partition(_OF_KUBERNETES)
        if of_kubernetes:
            return f"{self.name(domain)}{of_kubernetes}{self.name(name, MAX_LABEL)}"
        return self.key(text)

    def _amounts(self, alias: Callable[[str], str], amounts: Json) -> Json:
        return {alias(name): self.of_class("", amount) for name, amount in amounts.items()}

    def _label(self, key: str, value: Any) -> Any:
        return self.value(key, value) if isinstance(value, str) else value

    # Devices.

    def device(self, text: str) -> str:
        """Return the alias of a driver, of a domain, name or value of an attribute, or of a word of an expression.

        Amounts and versions stay, as they are compared, except words within versions.
        """
        if not text or text in words.DEVICES or _AMOUNT.fullmatch(text):
            return text
        version = _VERSION.fullmatch(text)
        return (
            self._token(text) if version is None else version[1] + _IDENTIFIER.sub(self._identifier, version[2] or "")
        )

    def _identifier(self, match: re.Match[str]) -> str:
        return match[0] if words.PRE_RELEASE.fullmatch(match[0]) else self._token(match[0])

    def _attribute(self, text: str) -> str:
        """Return the alias of an attribute or a capacity, with its domain or without."""
        domain, slash, name = text.rpartition("/")
        return f"{self._expressions.known(domain)}{slash}{self._expressions.known(name)}"

    # Objects.

    def _api_version(self, text: str) -> str:
        group, slash, version = text.rpartition("/")
        kept = version if words.VERSION.fullmatch(version) else self.name(version)
        return f"{group if group in words.GROUPS else self.name(group)}{slash}{kept}"

    def _owner(self, owner: Json) -> Json:
        name = owner.get("name")
        if isinstance(name, str):
            owner["name"] = self.pod(name) if _is_pod(owner) else self.name(name)
        return owner

    def _consumer(self, consumer: Json) -> Json:
        name, group, resource = consumer.get("name"), consumer.get("apiGroup"), consumer.get("resource")
        is_pod = not group and resource == "pods"
        if isinstance(name, str):
            consumer["name"] = self.pod(name) if is_pod else self.name(name)
        if isinstance(group, str) and group not in words.GROUPS:
            consumer["apiGroup"] = self.name(group)
        if isinstance(resource, str) and not is_pod:
            consumer["resource"] = self.name(resource)
        return consumer

    def _requirement(self, requirement: Json) -> Json:
        key, values = str(requirement.get("key", "")), requirement.get("values")
        if isinstance(requirement.get("key"), str):
            requirement["key"] = self.key(key)
        if isinstance(values, list):
            requirement["values"] = [self._label(key, value) for value in values]
        elif "values" in requirement:
            requirement["values"] = self._label(key, values)
        return requirement

    def _taint(self, taint: Json) -> Json:
        # The key has its alias already: whether it is a well-known one shows in both.
        if "value" in taint:
            taint["value"] = self._label(str(taint.get("key", "")), taint["value"])
        return taint

    def _claim_reference(self, reference: Json) -> Json:
        namespace, name = reference.get("namespace"), reference.get("name")
        if isinstance(name, str):
            reference["name"] = self._claims.get((str(namespace), name)) or self.pod(name)
        if isinstance(namespace, str):
            reference["namespace"] = self.namespace(namespace)
        return reference

    def _zone_attribute(self, attribute: Json) -> Json:
        name = attribute.get("name")
        if isinstance(name, str):
            if name.startswith("nodeTopologyPodsFingerprint"):
                return {}
            attribute["name"] = self._plain(name)
        return attribute

    def annotation(self, key: str, value: str) -> str | None:
        """Return the alias of an annotation that is kept; None if it is dropped."""
        alias: str | None = self._by_class[ANNOTATIONS[key]](value)
        return alias

    def _hashed(self, part: str) -> str:
        """A letter first: no number, fit for every name."""
        digest = hashlib.blake2b(part.encode(errors="surrogatepass"), key=self._key, digest_size=_BITS // 8).digest()
        text = base64.b32hexencode(digest).decode().lower()
        return "ghijklmnopqrstuvwxyzabcdefghijkl"[int(text[0], 32)] + text[1:]


def _unless(kept: Container[str], alias: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: text if text in kept else alias(text)


def _is_pod(owner: Json) -> bool:
    return owner.get("kind") == "Pod" and owner.get("apiVersion", "v1") == "v1"


def with_tag(image: str) -> str:
    """Rule: image_locality.go (normalizedImageName)."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
