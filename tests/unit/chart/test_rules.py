"""The alerts that are shipped: each fires when it should, says so, and has its section in the runbook."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart import CHART, load_documents, promtool
from tests.chart.alert_scenes import FIRE, HARMLESS, WELL, harmless_scenes
from tests.chart.promtool import RULES

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[3]
RUNBOOK = yaml.safe_load((CHART / "values.yaml").read_text())["monitoring"]["rules"]["runbook"]
SEVERITIES = {"critical", "warning", "info"}
NUMBERS = ("None", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")

needs_promtool = pytest.mark.skipif(not promtool.is_there(), reason=promtool.MISSING)


def alerts() -> Iterator[dict[str, Any]]:
    (document,) = load_documents(RULES.read_text())
    for group in document["groups"]:
        yield from group["rules"]


NAMES = [each["alert"] for each in alerts()]


def named(scene: str) -> set[str]:
    """The alerts that the name of a scene begins with."""
    return set(re.findall(r"Loadmaster\w+", scene))


@needs_promtool
def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    assert f"SUCCESS: {len(NAMES)} rules found" in promtool.check()


@needs_promtool
def test_each_alert_fires_when_something_is_wrong_and_no_other_does(tmp_path: Path) -> None:
    promtool.play(tmp_path, FIRE)


@needs_promtool
def test_no_alert_fires_while_all_is_well_or_for_what_is_harmless(tmp_path: Path) -> None:
    promtool.play(tmp_path, WELL | harmless_scenes())


def test_each_alert_has_a_scene_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    fired = {
        name for scene, (_, moments) in FIRE.items() for each in moments for name in each.firing if name in named(scene)
    }

    assert fired == set(NAMES)
    assert set().union(*map(named, [*WELL, *HARMLESS])) == set(NAMES)


def test_each_alert_says_how_bad_it_is_what_it_is_and_where_to_read_on() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in SEVERITIES, alert["alert"]
        assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}, alert["alert"]
        assert alert["annotations"]["summary"].endswith("."), alert["alert"]
        assert alert["annotations"]["runbook_url"] == f"{RUNBOOK}#{alert['alert'].lower()}"


def test_the_runbook_has_a_section_for_each_alert_in_their_order_and_no_other() -> None:
    text = (ROOT / "docs" / "runbook.md").read_text()
    sections = re.findall(r"(?ms)^### (Loadmaster\w+)\n(.*?)(?=^##|\Z)", text)

    assert [name for name, _ in sections] == NAMES
    for name, section in sections:
        for part in ("**Means.**", "**Check.**", "**Do.**"):
            assert part in section, f"{name}: {part}"


def test_the_page_about_monitoring_says_how_many_there_are() -> None:
    page = (ROOT / "docs" / "operations" / "monitoring.md").read_text()
    critical = sum(alert["labels"]["severity"] == "critical" for alert in alerts())

    assert f" {len(NAMES)} alerts" in page
    assert f"{NUMBERS[critical]} are `critical`" in page


def test_every_expression_asks_only_for_series_of_the_job() -> None:
    for alert in alerts():
        selectors = re.findall(
            r"\b(?:up|(?:scheduler|loadmaster|leader|kubernetes|process|rest)_\w+)\b(?!\()(.?)", alert["expr"]
        )

        assert selectors, alert["alert"]
        assert set(selectors) == {"{"}, alert["alert"]
        assert alert["expr"].count('job="loadmaster"') == len(selectors), alert["alert"]
