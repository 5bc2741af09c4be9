"""The schema of `config`: it is up to date, and knows each field as the scheduler does."""

import json
from typing import Any

import pytest
import yaml

from plugins import SHIPPED
from scheduler.config.effective import as_document
from scheduler.config.load import config_from_dict
from tests.chart.config_schema import FILE, config_schema, schema_text


def test_the_schema_is_what_the_types_say() -> None:
    text = FILE.read_text()

    assert text == schema_text(text), "`make manifest` writes it"
    assert json.loads(text)["properties"]["config"] == config_schema()[0]


def test_definitions_of_the_same_name_are_kept_apart() -> None:
    _, definitions = config_schema()

    assert "requestedToCapacityRatio" in definitions["ScoringStrategy"]["properties"]
    assert "requestedToCapacityRatio" not in definitions["node_resource_topology.ScoringStrategy"]["properties"]


def known_to_the_schema(schema: Any, value: Any, definitions: Any, path: str = "") -> list[str]:
    """The paths of fields in `value` that the schema does not have."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if isinstance(value, list):
        return [each for item in value for each in known_to_the_schema(schema["items"], item, definitions, f"{path}[]")]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    unknown = [f"{path}.{key}" for key in value if key not in schema["properties"]]
    return unknown + [
        each
        for key, item in value.items()
        if key in schema["properties"]
        for each in known_to_the_schema(schema["properties"][key], item, definitions, f"{path}.{key}")
    ]


@pytest.mark.parametrize("plugins", [[], ["LoadAware", "NodeResourceTopologyMatch"]])
def test_the_schema_has_every_field_of_the_effective_configuration(plugins: list[str]) -> None:
    enabled = [{"name": name} for name in plugins]
    values = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "a", "plugins": {"multiPoint": {"enabled": enabled}}}],
        "extenders": [{"urlPrefix": "http://x", "filterVerb": "filter", "tlsConfig": {"insecure": True}}],
        "loadmaster": {"pluginLimits": [{"name": "*"}]},
    }
    document = yaml.safe_load(json.dumps(as_document(config_from_dict(values, SHIPPED), SHIPPED)))
    schema, definitions = config_schema()
    rules = schema["properties"]["profiles"]["items"]["properties"]["pluginConfig"]["items"]["allOf"]
    arguments = {
        name: rule["then"]["properties"]["args"]
        for rule in rules
        for name in (rule["if"]["properties"]["name"].get("enum") or [rule["if"]["properties"]["name"]["const"]])
    }

    assert known_to_the_schema(schema, document, definitions) == []
    for each in document["profiles"][0]["pluginConfig"]:
        assert known_to_the_schema(arguments[each["name"]], each["args"], definitions) == [], each["name"]
    assert arguments.keys() == SHIPPED.keys()
