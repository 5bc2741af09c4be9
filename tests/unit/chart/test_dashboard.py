"""The dashboard: valid for Grafana as far as that can be told without one. That its queries find something is tested
with a real Prometheus: tests/cluster/test_monitoring.py."""

import json
from itertools import combinations
from typing import Any

from tests.chart.promtool import DASHBOARD

BOARD: dict[str, Any] = json.loads(DASHBOARD.read_text())
PANELS: list[dict[str, Any]] = BOARD["panels"]
COLUMNS = 24


def rows_and_columns(panel: dict[str, Any]) -> tuple[range, range]:
    place = panel["gridPos"]
    return range(place["y"], place["y"] + place["h"]), range(place["x"], place["x"] + place["w"])


def overlap(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


def test_no_two_panels_overlap_and_none_is_wider_than_the_page() -> None:
    for panel in PANELS:
        assert rows_and_columns(panel)[1].stop <= COLUMNS, panel["title"]
    for one, other in combinations(PANELS, 2):
        both = zip(rows_and_columns(one), rows_and_columns(other), strict=True)
        assert not all(overlap(*each) for each in both), (one["title"], other["title"])


def test_ids_and_titles_are_unique() -> None:
    for key in ("id", "title"):
        values = [panel[key] for panel in PANELS]

        assert len(values) == len(set(values)), key


def test_each_panel_asks_the_data_source_that_is_chosen() -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}

    for panel in PANELS:
        if panel["type"] != "row":
            assert panel["datasource"] == chosen, panel["title"]
            assert [each["datasource"] for each in panel["targets"]] == [chosen] * len(panel["targets"])
            assert len({each["refId"] for each in panel["targets"]}) == len(panel["targets"]) > 0


def test_each_query_is_about_the_job_and_namespace_that_are_chosen() -> None:
    known = {each["name"] for each in BOARD["templating"]["list"]}
    queries = [each["expr"] for panel in PANELS for each in panel.get("targets", ())]

    assert {"job", "namespace", "datasource"} == known
    assert len(queries) > 50
    for query in queries:
        assert query.count("{") == query.count('{job="$job", namespace="$namespace"') + query.count("ALERTS{"), query
