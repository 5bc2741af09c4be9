"""What stands in for the fields of a pod that nobody decodes: reading one says how to ask for it.

A pod is decoded as far as scheduling reads it, and as far as the enabled plugins say in `needs`. A field beyond is not
silently empty: whoever reads it learns which line is missing. It costs nothing where a field is decoded, as the
structs' own members come first.
"""

import re
from typing import Any, Final

MAX_SHOWN: Final = 3
"""Of the paths at which pods have such an object."""


class NotDecoded(LookupError):
    """A plugin reads a field of pods that no plugin needs.

    No AttributeError, which `getattr` with a default would hide.
    """


class Undecoded:
    """One field, as an attribute of the class of the object that it belongs to."""

    __slots__ = ("key", "struct")

    def __init__(self, struct: str, key: str) -> None:
        self.struct, self.key = struct, key

    def __get__(self, instance: Any, owner: type) -> "Undecoded":
        if instance is None:
            return self
        from scheduler.api.needs import paths_of  # not at the top: it needs the structs, which need this

        paths = [f"{path}.{self.key}" for path in paths_of(self.struct)]
        lines = ", or ".join(f'needs = ("{path}",)' for path in paths[:MAX_SHOWN])
        raise NotDecoded(f"{paths[0]} of pods is not decoded, as no plugin needs it: add {lines} to the plugin")


def fields_of(struct: str, *keys: str) -> type[Any]:
    """Return a base for a struct, with these fields of the API's object."""
    members: dict[str, Any] = {attribute_of(key): Undecoded(struct, key) for key in keys}
    return type(f"{struct}Fields", (), {"__slots__": (), **members})


_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLURAL: Final = re.compile(r"([A-Z])([A-Z])s$")


def attribute_of(key: str) -> str:
    """Return what a field of the API is called here: `hostIP` is host_ip, `podIPs` is pod_ips, `from` is from_."""
    name = _WORD.sub("_", _PLURAL.sub(lambda match: f"{match[1]}{match[2].lower()}s", key)).lower()
    return f"{name}_" if name in ("from", "continue") else name
