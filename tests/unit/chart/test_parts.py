"""What is made from the chart's files: tables, and the configuration of a kind cluster."""

import re
from pathlib import Path

import pytest
import yaml

from scheduler.api.quantities.quantity import parse_quantity
from tests.chart import CHART
from tests.chart.manifest import KIND, MANIFEST, kind_text
from tests.chart.tables import parts, releases, with_part

SIZES = yaml.safe_load((CHART / "files" / "sizes.yaml").read_text())


@pytest.mark.parametrize(("page", "text"), parts().items(), ids=lambda each: getattr(each, "name", ""))
def test_a_page_has_what_the_chart_says(page: Path, text: str) -> None:
    written = page.read_text()

    assert written == with_part(written, text), "`make manifest` writes it"


def test_the_kind_configuration_is_as_it_is_made() -> None:
    assert KIND.read_text() == kind_text(), "`make manifest` writes it"


def test_kind_has_three_nodes_in_three_zones_and_the_image_of_the_manifest() -> None:
    cluster = yaml.safe_load(KIND.read_text())
    (image,) = re.findall(r"image: (\S+)", MANIFEST.read_text())

    assert len({node["labels"]["topology.kubernetes.io/zone"] for node in cluster["nodes"]}) == 3
    assert f"kind load docker-image {image} " in KIND.read_text()


def test_the_newest_release_is_the_charts_and_they_are_in_order() -> None:
    versions = [tuple(map(int, release["version"].split("."))) for release in releases()]

    assert versions == sorted(versions)
    assert releases()[-1]["version"] == yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]


def test_each_size_is_in_the_comment_and_the_schema_and_larger_than_the_one_before() -> None:
    comment = (CHART / "values.yaml").read_text()

    for name, size in SIZES.items():
        assert f"{name} ({size['nodes']:,} nodes, {size['pods']:,} pods)" in comment
    assert [size["nodes"] for size in SIZES.values()] == sorted(size["nodes"] for size in SIZES.values())


def test_each_size_requests_a_quarter_more_than_was_measured() -> None:
    for name, size in SIZES.items():
        measured = 119 + (size["nodes"] * 10.7 + size["pods"] * 4) / 1024  # MiB: docs/sizing.md

        assert parse_quantity(size["resources"]["requests"]["memory"]) >= 1.25 * measured * 2**20, name


def test_what_artifact_hub_shows_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    (image,) = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
    changes = yaml.safe_load(chart["annotations"]["artifacthub.io/changes"])

    assert image["image"].endswith(f":{chart['version']}")
    assert {change["kind"] for change in changes} <= {"added", "changed", "deprecated", "removed", "fixed", "security"}
    assert chart["icon"].endswith("charts/loadmaster/icon.svg")
    assert (CHART / "icon.svg").exists()
