"""Kubernetes objects for which there is no struct, mostly custom resources."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from scheduler.api.decoding import convert
from scheduler.api.objects import ObjectMeta
from scheduler.api.read_only import frozen, read_only_attribute

_KIND: Final = ("apiVersion", "kind")


class Unstructured:
    """An object as the API server sends it, with its metadata read. Compared by identity; it cannot be written to.

    `metadata.managedFields` is left out: often half of an object, and scheduling does not need it. Of a resource of
    which no plugin reads more than some parts, only these and `metadata` are kept.
    """

    __slots__ = ("_content", "_metadata")

    def __init__(self, metadata: ObjectMeta, content: dict[str, Any]) -> None:
        """`content` is the object's own from now on."""
        self._metadata = metadata
        self._content = content

    metadata: ObjectMeta = read_only_attribute("_metadata")

    @property
    def content(self) -> dict[str, Any]:
        """The object as parsed JSON, in read-only dicts and lists, made on the first call."""
        content = self._content
        if type(content) is dict:
            content = self._content = frozen(content)
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Unstructured":
        """Read an object from parsed JSON or YAML. Raises Unreadable, which names the offending field."""
        with_metadata = convert(content, _AnyObject)
        if "managedFields" in content["metadata"]:
            metadata = {key: value for key, value in content["metadata"].items() if key != "managedFields"}
            content = {**content, "metadata": metadata}
        return cls(with_metadata.metadata, content)

    def keep_only(self, parts: Iterable[str]) -> None:
        """Forget all but its kind and these parts, such as `spec.selector`. Only for an object that was just read.

        A path goes on in each item of a list: `spec.replicatedJobs.name` is the name of each of the jobs.
        """
        kept: dict[str, Any] = {key: self._content[key] for key in _KIND if key in self._content}
        for part in parts:
            _copy_part(self._content, kept, part.split("."))
        self._content = kept

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


def _copy_part(content: dict[str, Any], kept: dict[str, Any], path: Sequence[str]) -> None:
    """Copy the value at the end of the path, if there is one, into `kept` at the same place."""
    key, *inner = path
    if key not in content:
        return
    value = content[key]
    if not inner:
        kept[key] = value
    elif isinstance(value, dict):
        _copy_part(value, kept.setdefault(key, {}), inner)
    elif isinstance(value, list):
        for item, copy in zip(value, kept.setdefault(key, [{} for _ in value]), strict=True):
            if isinstance(item, dict):
                _copy_part(item, copy, inner)


class _AnyObject(msgspec.Struct, gc=False):
    metadata: ObjectMeta


def unstructured_hook(kind: type[Any], value: Any) -> Any:
    """msgspec's `dec_hook` for structs with an Unstructured in them."""
    if kind is Unstructured:
        if not isinstance(value, dict):
            raise ValueError(f"Expected `object`, got `{type(value).__name__}`")
        return Unstructured.from_dict(value)
    raise NotImplementedError(f"nothing reads a {kind.__name__} from JSON")
