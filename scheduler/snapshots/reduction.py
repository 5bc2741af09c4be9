"""Reduces objects to the fields that a snapshot keeps, with aliases in anonymised snapshots."""

import functools
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from scheduler.api.decoding import Decoder
from scheduler.snapshots.aliases import Aliases
from scheduler.snapshots.kept_fields import ANNOTATIONS, FIELDS, Kind

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation with the whole object as it was applied, env included."""

_decoder: Final[Decoder[dict[str, Any]]] = Decoder(dict[str, Any])


class Field(NamedTuple):
    holder: str
    """How it holds objects: `[]`, `{}`, `|` for one object or a word, or empty for one object."""

    kind: str
    """Of these objects; empty if it holds none."""

    class_: str
    """Its content, or the keys of a mapping to objects; empty for amounts, times, UIDs and choices."""


@functools.cache
def fields_of(kind: str) -> Mapping[str, Field]:
    found = {}
    for written in FIELDS[kind].split():
        name, _, inner = written.partition(":")
        name, _, class_ = name.partition("@")
        kept_in = inner.lstrip("[]{}|")
        found[name] = Field(inner.removesuffix(kept_in), kept_in, class_)
    return found


class Reduction:
    def __init__(self, aliases: Aliases | None = None, *, whole_pods: bool = False) -> None:
        """`aliases`: None keeps the names. `whole_pods`: for plugins that read them as JSON; not with aliases."""
        self._aliases = aliases
        self._whole_pods = whole_pods and aliases is None

    @property
    def is_anonymous(self) -> bool:
        return self._aliases is not None

    def reduced(self, raw: msgspec.Raw | bytes, kind: Kind) -> bytes:
        """Return an object as the snapshot has it, in JSON. Raises Unreadable."""
        content = _decoder.decode(raw)
        head = {"apiVersion": kind.api_version, "kind": kind.name}
        if self._aliases is not None:
            self._aliases.look_at(content)
        if kind.name not in FIELDS:  # of a plugin of the user's own
            metadata = self._object(content.get("metadata"), "Meta") or {}
            return msgspec.json.encode({**content, **head, "metadata": metadata})
        if kind.name == "Pod" and self._whole_pods:
            kept = _without_history(content)
        else:
            kept = self._object(content, kind.name) or {}
        return msgspec.json.encode({**head, **kept})

    def _object(self, value: Any, kind: str) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            return None
        kept: dict[str, Any] = {}
        for name, field in fields_of(kind).items():
            found = value.get(name)
            if found is None:
                continue
            found = self._within(found, field) if field.kind else self._leaf(found, field.class_)
            if found is not None:
                kept[name] = found
        return kept if self._aliases is None else self._aliases.of_kind(kind, kept)

    def _within(self, value: Any, field: Field) -> Any:
        if field.holder == "[]":
            return [self._object(each, field.kind) for each in value] if isinstance(value, list) else None
        if field.holder == "{}":
            if not isinstance(value, dict):
                return None
            return {self._leaf(name, field.class_): self._object(each, field.kind) for name, each in value.items()}
        if field.holder == "|" and isinstance(value, str):
            return self._leaf(value, field.class_)
        return self._object(value, field.kind)

    def _leaf(self, value: Any, class_: str) -> Any:
        if class_ == "annotations":
            return self._annotations(value)
        if not _is_plain(value):
            return None
        return value if self._aliases is None else self._aliases.of_class(class_, value)

    def _annotations(self, value: Any) -> dict[str, str] | None:
        kept = {}
        for key in sorted(ANNOTATIONS.keys() & value.keys()) if isinstance(value, dict) else ():
            text = value[key]
            if isinstance(text, str) and self._aliases is not None:
                text = self._aliases.annotation(key, text)
            if isinstance(text, str):
                kept[key] = text
        return kept or None


def _is_plain(value: Any) -> bool:
    """Return whether a value is a text or a number, or a list or a mapping of these."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return not any(isinstance(each, dict | list) for each in value)
    return True


def _without_history(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod without the copy in its annotation and without `managedFields`."""
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict):
        return pod
    metadata = {key: value for key, value in metadata.items() if key != "managedFields"}
    if isinstance(annotations := metadata.get("annotations"), dict):
        metadata["annotations"] = {key: text for key, text in annotations.items() if key != _LAST_APPLIED}
    return {**pod, "metadata": metadata}
