"""Kubernetes objects for which there is no struct, custom resources above all."""

from typing import Any

import msgspec

from scheduler.api.objects import ObjectMeta


class Unstructured:
    """An object as the API server sends it, with its metadata read. Compared by identity; not to be written to.

    `metadata.managedFields` is left out: often half of an object, and scheduling does not need it.
    """

    __slots__ = ("content", "metadata")

    def __init__(self, metadata: ObjectMeta, content: dict[str, Any]) -> None:
        self.metadata = metadata
        self.content = content
        """The object as parsed JSON."""

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Unstructured":
        """Read an object from parsed JSON or YAML. Raises msgspec.ValidationError that names the offending field."""
        with_metadata = msgspec.convert(content, _AnyObject)
        if "managedFields" in content["metadata"]:
            metadata = {key: value for key, value in content["metadata"].items() if key != "managedFields"}
            content = {**content, "metadata": metadata}
        return cls(with_metadata.metadata, content)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    def __getitem__(self, key: str) -> Any:
        """A part of the object, such as `spec`. Raises KeyError if it has none."""
        return self.content[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.content.get(key, default)

    def __repr__(self) -> str:
        name = "/".join(filter(None, (self.namespace, self.name)))
        return f"<{self.content.get('kind', 'object')} {name}>"


class _AnyObject(msgspec.Struct, gc=False):
    metadata: ObjectMeta


def unstructured_hook(kind: type[Any], value: Any) -> Any:
    """msgspec's `dec_hook` for structs with an Unstructured in them."""
    if kind is Unstructured:
        if not isinstance(value, dict):
            raise ValueError(f"Expected `object`, got `{type(value).__name__}`")
        return Unstructured.from_dict(value)
    raise NotImplementedError(f"nothing reads a {kind.__name__} from JSON")
