"""The part of charts/loadmaster/values.schema.json about `config`, from the types that read a configuration.

It knows fields and their types; the scheduler checks the rest, as `loadmaster config check` does.
"""

import dataclasses
import json
import re
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from plugins import SHIPPED
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.profiles import API_VERSION, KIND, PluginConfig, Profile
from scheduler.config.types import Config
from scheduler.framework.arguments import YAML, camel_case
from scheduler.framework.duration import Duration
from scheduler.runtime.profile_spec import ProfileSpec
from tests.chart.helm import CHART

FILE: Final = CHART / "values.schema.json"
START: Final = '    "config": '
"""`config` is the last property of the schema."""

WIDTH: Final = 120
SCALARS: Final[Mapping[type, str]] = {bool: "boolean", int: "integer", float: "number", str: "string"}
DURATION: Final = r"^[-+]?(0|([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"

Schema = dict[str, Any]


def config_schema() -> tuple[Schema, Schema]:
    """Return the schema of a KubeSchedulerConfiguration whose profiles have names, and the definitions it refers to."""
    definitions: Schema = {}
    whole = _object(Config, definitions)
    profile = _object(Profile, definitions)
    profile["required"] = ["schedulerName"]
    profile["properties"]["schedulerName"] = {"type": "string", "minLength": 1}
    profile["properties"]["pluginConfig"]["items"] = _plugin_config(definitions)
    del definitions[ProfileSpec.__name__], definitions[PluginConfig.__name__]
    del whole["properties"]["gates"], definitions[FeatureGates.__name__]  # they are flags, not fields
    properties = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
        **whole["properties"],
        "profiles": {"type": "array", "minItems": 1, "items": profile},
    }
    schema = {
        "description": "The KubeSchedulerConfiguration; the scheduler checks the rest at its start.",
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "profiles"],
        "properties": properties,
    }
    return schema, dict(sorted(definitions.items()))


def _plugin_config(definitions: Schema) -> Schema:
    """The arguments of shipped plugins; those of other plugins are free."""
    arguments = {name: _object(plugin, definitions) for name, plugin in SHIPPED.items()}
    without = [name for name, each in arguments.items() if not each["properties"]]
    rules = [_arguments({"enum": without}, _closed({}))]
    rules += [_arguments({"const": name}, each) for name, each in arguments.items() if name not in without]
    properties = {"name": {"type": "string"}, "args": {"type": ["object", "null"]}}
    return {**_closed(properties), "required": ["name"], "allOf": rules}


def _arguments(name: Schema, arguments: Schema) -> Schema:
    arguments["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    return {"if": {"properties": {"name": name}}, "then": {"properties": {"args": _or_null(arguments)}}}


def _object(kind: type, definitions: Schema) -> Schema:
    if issubclass(kind, msgspec.Struct):
        of_struct = msgspec.structs.fields(kind)
        required = [each.encode_name for each in of_struct if each.required]
        schema = _closed({each.encode_name: _or_null(_schema(each.type, definitions)) for each in of_struct})
    else:
        hints = get_type_hints(kind)
        fields = [each for each in dataclasses.fields(kind) if each.init]  # type: ignore[arg-type]
        missing = dataclasses.MISSING
        keys = {each.name: each.metadata.get(YAML, camel_case(each.name)) for each in fields}
        required = [keys[f.name] for f in fields if f.default is missing and f.default_factory is missing]
        schema = _closed({keys[each.name]: _or_null(_schema(hints[each.name], definitions)) for each in fields})
    return schema | ({"required": required} if required else {})


def _closed(properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _or_null(schema: Schema) -> Schema:
    """The same where null stands for what is not given."""
    match schema:
        case {"type": str(kind)}:
            return schema | {"type": [kind, "null"]}
        case {"enum": choices}:
            return {"enum": [*choices, None]}
        case _:
            return schema


def _name(kind: type) -> str:
    """The name of its definition: contrib plugins have classes of the same names as kube-scheduler's have."""
    contrib = re.match(r"plugins[.]contrib[.](\w+)", kind.__module__)
    return f"{contrib[1]}.{kind.__name__}" if contrib else kind.__name__


def _schema(kind: Any, definitions: Schema) -> Schema:
    origin = get_origin(kind) or kind
    if origin is Literal:
        return {"enum": list(get_args(kind))}
    if origin in (Union, types.UnionType):
        members = [_schema(member, definitions) for member in get_args(kind) if member is not types.NoneType]
        return members[0] if len(members) == 1 else {}
    return _schema_of_type(origin, get_args(kind), definitions) if isinstance(origin, type) else {}


def _schema_of_type(kind: type, arguments: Sequence[Any], definitions: Schema) -> Schema:
    if kind is Duration:
        definitions[Duration.__name__] = {"type": ["string", "null"], "pattern": DURATION}
        return {"$ref": f"#/definitions/{Duration.__name__}"}
    if kind in SCALARS:
        return {"type": SCALARS[kind]}
    if issubclass(kind, Enum):
        return {"enum": [choice.value for choice in kind]}
    if dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct):
        name = _name(kind)
        if name not in definitions:
            definitions[name] = _or_null(_object(kind, definitions))
        return {"$ref": f"#/definitions/{name}"}
    if issubclass(kind, Mapping):
        return {"type": "object"}
    return {"type": "array", "items": _or_null(_schema(arguments[0], definitions)) if arguments else {}}


def schema_text(text: str) -> str:
    """Return the text of the schema's file with `config` as it is now."""
    head = text[: text.index(START)]
    schema, definitions = config_schema()
    rest = f'{_json(schema, 4, len(START))}\n  }},\n  "definitions": {_json(definitions, 2, WIDTH)}\n}}\n'
    return head + START + rest


def _json(value: Any, indent: int, column: int) -> str:
    """JSON with everything on one line that fits."""
    line = json.dumps(value, ensure_ascii=False)
    if column + len(line) < WIDTH or not isinstance(value, dict | list) or not value:
        return line
    pad = " " * (indent + 2)
    if isinstance(value, list):
        items = [f"{pad}{_json(each, indent + 2, indent + 2)}" for each in value]
        return "[\n" + ",\n".join(items) + f"\n{' ' * indent}]"
    items = [
        f"{pad}{json.dumps(key)}: {_json(each, indent + 2, indent + 4 + len(json.dumps(key)))}"
        for key, each in value.items()
    ]
    return "{\n" + ",\n".join(items) + f"\n{' ' * indent}}}"
