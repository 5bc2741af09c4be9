"""YAML as Kubernetes' strict decoder reads it: a key that comes twice in a map is an error, not a matter of order."""

from collections.abc import Hashable
from typing import Any, Final

import yaml

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may have been built without libyaml


class DuplicateKeyError(yaml.YAMLError):
    """A map has a key twice. The text has the key and its place."""


class _StrictLoader(_LOADER):  # type: ignore[misc, valid-type]
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                mark = node.value[index][0].start_mark
                raise DuplicateKeyError(f"line {mark.line + 1}: the key {key!r} comes twice")
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found


def load_documents(text: str) -> list[Any]:
    """The documents of `text` that are not empty. Raises DuplicateKeyError, or another YAMLError."""
    return [each for each in yaml.load_all(text, _StrictLoader) if each is not None]
