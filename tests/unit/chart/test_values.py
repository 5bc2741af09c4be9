"""The chart's values: each has its default, its entry in the schema and its line in the documentation."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.config.reloadable import RELOADABLE
from tests.chart import CHART, load_documents

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
(VALUES,) = load_documents((CHART / "values.yaml").read_text())

IN_PARTS = (
    "image",
    "serviceAccount",
    "rbac",
    "tls",
    "page",
    "networkPolicy",
    "service",
    "monitoring",
    "plugins",
    "podDisruptionBudget",
)
"""Values of which the documentation has a row for each part."""
HANDED_BY_HELM = {"global"}
PEERS = ("namespaceSelector", "podSelector", "ipBlock")
FREE = {"global", "podSecurityContext", "securityContext", "dnsConfig", "topologySpreadConstraints[]"}
FREE |= {"affinity.nodeAffinity", "affinity.podAffinity", "affinity.podAntiAffinity"}
FREE |= {f"networkPolicy.{of}[].{kind}" for of in ("from", "apiServer.to") for kind in PEERS}
FREE |= {"networkPolicy.extraEgress[]", "env[].valueFrom", "extraVolumes[]", "extraVolumeMounts[]"}
FREE |= {"initContainers[]", "extraContainers[]", "envFrom[].configMapRef", "envFrom[].secretRef", "extraObjects[]"}
FREE |= {"monitoring.serviceMonitor.relabelings[]", "monitoring.serviceMonitor.metricRelabelings[]"}
"""Where keys are not ours to know: Kubernetes' objects, and the scheduler's own configuration."""


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All schemas in `schema` with their paths: `image.tag`, `tolerations[].key`."""
    yield path, schema
    for key, each in schema.get("properties", {}).items():
        yield from walk(each, f"{path}.{key}".lstrip("."))
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")


def chart() -> Any:
    return yaml.safe_load((CHART / "Chart.yaml").read_text())


def test_the_chart_has_the_version_of_the_program() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert (chart()["version"], chart()["appVersion"]) == (version, version)


def test_the_chart_replaces_no_pod_for_what_a_scheduler_at_work_takes_over() -> None:
    helpers = (CHART / "templates/_helpers.tpl").read_text()
    (restarts,) = re.findall(r'define "loadmaster.restarts" -}}(.*?)- end ', helpers, re.DOTALL)
    of_all, of_own = (re.findall(r'"(\w+)"', line) for line in restarts.splitlines() if " omit " in line)

    assert {*of_all, *(f"loadmaster.{name}" for name in of_own)} == RELOADABLE, "as in scheduler/config/reloadable.py"


def test_every_value_is_in_the_schema_and_has_a_default() -> None:
    assert set(SCHEMA["properties"]) - HANDED_BY_HELM == set(VALUES)


@pytest.mark.parametrize("name", IN_PARTS)
def test_every_value_of_a_group_is_in_the_schema_and_has_a_default(name: str) -> None:
    assert set(SCHEMA["properties"][name]["properties"]) == set(VALUES[name])


def test_a_key_that_the_schema_does_not_know_is_refused_except_where_keys_are_not_ours() -> None:
    objects = {path: each for path, each in walk(SCHEMA) if each.get("type") == "object"}

    assert {path for path, each in objects.items() if "additionalProperties" not in each} == FREE
    assert {path for path, each in objects.items() if each.get("additionalProperties") is True} == set()


def test_every_value_has_a_type_and_a_description() -> None:
    for path, each in walk(SCHEMA):
        if path and not path.endswith("[]") and not path.startswith("config."):  # docs/configuration.md has those
            assert each.get("description", "").endswith("."), path
            assert "type" in each or "const" in each, path


def test_every_value_has_a_comment_in_its_paragraph() -> None:
    text = (CHART / "values.yaml").read_text()

    for key in VALUES:
        (block,) = (each for each in text.split("\n\n") if re.search(rf"(?m)^{key}:", each))
        assert "#" in block, key


def test_the_documentation_has_a_row_for_every_value() -> None:
    page = (ROOT / "docs/chart.md").read_text()

    for key, value in VALUES.items():
        if key in IN_PARTS:
            assert [each for each in value if f"| `{key}.{each}` |" not in page] == [], key
        else:
            assert f"| `{key}` |" in page, key


def test_no_value_is_in_the_documentation_only() -> None:
    named = re.findall(r"(?m)^\| (.*?) \|", (ROOT / "docs/chart.md").read_text())
    values = [name for cell in named for name in re.findall(r"`([\w.]+)`", cell)]
    known = {path for path, _ in walk(SCHEMA)}

    assert [name for name in values if name not in known] == []
