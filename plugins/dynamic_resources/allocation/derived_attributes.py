"""Attributes that a request derives from those of a device, by an expression, for the constraints of its claim.

Rule: EvaluateDerivedAttribute in k8s.io/dynamic-resource-allocation cel/compile.go at v0.37.2.
"""

import re
from typing import Any, Final

from plugins.dynamic_resources.allocation.pools import DevicesError, SliceDevice
from plugins.dynamic_resources.allocation.selectors import NotCompiled, Program, SelectorError, spelled
from scheduler.api.decoding import convert
from scheduler.api.devices import Attribute
from scheduler.api.recent_caches import RecentCache

_CACHE_BYTES: Final = 8 << 20
_SCALARS: Final = "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars"
_FIELDS: Final = {"BOOL": "bool", "INT": "int", "STRING": "string", "MAP<DYN, DYN>": "version"}
"""Kind of a result → the field of an attribute for one; that for several is the plural."""

_GO_KINDS: Final = {"INT": "int64", "DOUBLE": "float64", "UINT": "uint64"}


class Derivation(Program):
    """A compiled expression for an attribute."""

    __slots__ = ()

    def objection(self, kind: str) -> str:
        element = re.sub(r"^LIST<(.*)>$", r"\1", kind)
        # DYN stands for the types that the library lacks, too.
        return "" if element in ("BOOL", "INT", "STRING") or "DYN" in element else f"{_SCALARS}, not {spelled(kind)}"

    def attribute(self, device: SliceDevice) -> Attribute:
        """Return the attribute of a device. Raises SelectorError."""
        found = self.evaluated(device.view)
        if not found.type().name().startswith("LIST<"):
            return convert(dict([_read(found, "unsupported CEL return type: {}")]), Attribute)
        items = found.value()
        kinds = [item.type().name() for item in items]
        read = [_read(item, "unsupported list element type: {}") for item in items[:1]]
        for i, kind in enumerate(kinds):
            if kind != kinds[0]:
                wanted = read[0][0].replace("version", "semver")
                raise SelectorError(f"expected list element at index {i} to be {wanted}, got {_go_kind(kind)}")
        field = f"{read[0][0]}s" if read else "strings"
        return convert({field: tuple(_read(item, "")[1] for item in items)}, Attribute)


def derived_attribute(name: str, expression: str, device: SliceDevice) -> Attribute:
    """Return what a device has as this attribute. Raises DevicesError."""
    derivation = _compiled.get(expression) or _compiled.put(expression, Derivation(expression))
    key = derivation.number, device
    known = _known.get(key)
    if known is None:
        try:
            known = _known.put(key, derivation.attribute(device))
        except NotCompiled as error:
            raise DevicesError(f"compile derived attribute {name} failed: {error.reason}") from error
        except SelectorError as error:
            where = f"evaluate derived attribute {name} on device {device.id}"
            raise DevicesError(f"{where} failed: {error.reason}") from error
    return known


def _read(found: Any, unsupported: str) -> tuple[str, Any]:
    """Return the field for a scalar, and its value. Raises SelectorError."""
    kind, value = found.type().name(), found.plain_value()
    if kind not in _FIELDS or (isinstance(value, dict) and "semver" not in value):
        raise SelectorError(unsupported.format(_go_kind(kind)))
    return _FIELDS[kind], value["semver"] if isinstance(value, dict) else value


def _go_kind(kind: str) -> str:
    return _GO_KINDS.get(kind, spelled(kind))


_compiled: RecentCache[str, Derivation] = RecentCache(
    "derived attributes", _CACHE_BYTES, lambda text, _: 4096 + 100 * len(text)
)
_known: RecentCache[tuple[int, SliceDevice], Attribute] = RecentCache(
    "values of derived attributes", _CACHE_BYTES, lambda *_: 500
)
"""Number of an expression and device → its value."""
