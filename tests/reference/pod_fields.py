"""Writes scheduler/api/pod_fields.py and pod_kinds.py: what a v1.Pod has besides what scheduling reads.

From the API's own description in the `kubernetes` package, compared with our structs.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from kubernetes import client

from scheduler.api.needs import struct_in
from scheduler.api.pod import Pod
from scheduler.api.undecoded import attribute_of

FOLDER: Final = Path(__file__).parents[2] / "scheduler" / "api"
FIELDS: Final = FOLDER / "pod_fields.py"
KINDS: Final = FOLDER / "pod_kinds.py"

LEFT_OUT: Final = {("ObjectMeta", "managedFields"), ("Pod", "apiVersion"), ("Pod", "kind")}
"""managedFields can be half of a pod, and says nothing about it."""

AMOUNTS: Final = ("limits", "requests", "overhead", "allocatedResources", "capacity")
QUANTITIES: Final = ("sizeLimit", "divisor")
PRIMITIVES: Final = {"datetime": "str", "object": "int | str"}
MODELS: Final = {"ContainerClaim": "CoreV1ResourceClaim"}
"""Kind → its class, where that has the name of another kind."""

FIELDS_TEXT: Final = '''"""Bases of the structs in `objects` and `pod`: the fields of a v1.Pod that they do not decode.

Written by `make reference`; not to be edited. A type checker sees the fields as they are for a plugin that needs them.
"""

from typing import TYPE_CHECKING

from scheduler.api.undecoded import fields_of

if TYPE_CHECKING:
    from scheduler.api import pod_kinds

{aliases}else:
{bases}'''
KINDS_HEAD: Final = '''"""The parts of a v1.Pod that are decoded only for plugins that need them: see `needs`.

Written by `make reference` from the API's description; not to be edited. What has no value is None.
"""

from collections.abc import Mapping

import msgspec

from scheduler.api import objects
from scheduler.api.objects import ResourceList, Wire

'''

Kinds = dict[str, dict[str, str]]
"""Kind of object → field, as the API spells it → type, in Python."""


def kinds() -> Kinds:
    """Return all that is in a pod."""
    found: Kinds = {}
    waiting = ["Pod"]
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            model = getattr(client, MODELS.get(kind, f"V1{kind}"))
            found[kind] = {
                key: _type(key, model.openapi_types[name])
                for name, key in model.attribute_map.items()
                if (kind, key) not in LEFT_OUT
            }
            waiting += (each for type_ in found[kind].values() for each in _kinds_in(type_))
    return dict(sorted(found.items()))


def _type(key: str, described: str) -> str:
    if key in AMOUNTS:
        return "ResourceList"
    if key in QUANTITIES:
        return "str | int | float"
    if match := re.fullmatch(r"(?:List|list)\[(.*)\]", described):
        return f"tuple[{_type('', match[1])}, ...]"
    if re.fullmatch(r"(?:Dict|dict)\W*str, ?str\W*", described):
        return "Mapping[str, str]"
    if described.startswith(("Dict", "dict")):
        raise ValueError(f"{key}: a mapping of a kind that is new: {described}")
    named = {model: kind for kind, model in MODELS.items()}
    return PRIMITIVES.get(described) or named.get(described) or described.removeprefix("V1")


def _kinds_in(type_: str) -> Iterator[str]:
    return (each for each in re.findall(r"[A-Z]\w+", type_) if each not in ("Mapping", "ResourceList"))


def structs(every: Kinds) -> dict[str, type[Any]]:
    """Return kind → our struct for it, by a walk over both descriptions of a pod."""
    found: dict[str, type[Any]] = {}
    waiting: list[tuple[type[Any], str]] = [(Pod, "Pod")]
    while waiting:
        struct, kind = waiting.pop()
        if kind in found:
            continue
        found[kind] = struct
        for field in msgspec.structs.fields(struct):
            inner = struct_in(field.type)
            if inner is not None and field.encode_name in every[kind]:
                waiting += ((inner, each) for each in _kinds_in(every[kind][field.encode_name]))
    return found


def texts() -> dict[Path, str]:
    """Return both modules."""
    every = kinds()
    ours = structs(every)
    bare: Kinds = {}
    for kind, struct in sorted(ours.items(), key=lambda each: each[1].__name__):
        decoded = {field.encode_name for field in msgspec.structs.fields(struct)}
        rest = {key: type_ for key, type_ in every[kind].items() if key not in decoded}
        if rest:
            bare[struct.__name__] = rest
    new = {kind: fields for kind, fields in every.items() if kind not in ours}
    names = {kind: f"objects.{struct.__name__}" for kind, struct in ours.items()}
    classes = [_class(f"{name}Rest", fields, names) for name, fields in bare.items()]
    by_use = [_class(kind, new[kind], names) for kind in _in_order(new)]
    aliases = "".join(f"    {name}Fields = pod_kinds.{name}Rest\n" for name in bare)
    bases = "".join(
        f'    {name}Fields = fields_of("{name}", {", ".join(map(repr, fields))},)\n' for name, fields in bare.items()
    )
    return {
        FIELDS: formatted(FIELDS_TEXT.format(aliases=aliases, bases=bases)),
        KINDS: formatted(KINDS_HEAD + "\n\n".join((*by_use, *classes))),
    }


def formatted(text: str) -> str:
    """Return code as `make fmt` leaves it."""
    for command in (("check", "--select=I", "--fix"), ("format",)):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=FOLDER).stdout
    return text


def _in_order(new: Kinds) -> list[str]:
    """Return the kinds so that each comes after those that it is made of."""
    order: dict[str, None] = {}

    def visit(kind: str) -> None:
        for inner in sorted({each for type_ in new[kind].values() for each in _kinds_in(type_)} & new.keys()):
            visit(inner)
        order[kind] = None

    for kind in new:
        visit(kind)
    return list(order)


def _class(name: str, fields: dict[str, str], ours: dict[str, str]) -> str:
    lines = [f"class {name}(Wire, frozen=True):"]
    for key, type_ in fields.items():
        attribute = attribute_of(key)
        written = re.sub(r"[A-Z]\w+", lambda match: ours.get(match[0], match[0]), type_)
        is_usual = msgspec.structs.fields(msgspec.defstruct("S", [(attribute, int)], rename="camel"))[0].encode_name
        if key == "annotations":
            lines.append(f"    {attribute}: objects.Strings = objects.ABSENT")
            continue
        default = "None" if is_usual == key else f'msgspec.field(default=None, name="{key}")'
        lines.append(f"    {attribute}: {written} | None = {default}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
