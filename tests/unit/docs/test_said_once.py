"""Facts that pages once stated in different ways: one page has each, and the others link to it."""

import re
from pathlib import Path
from typing import Final

import pytest

from scheduler.config.feature_gates import OURS

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name != "benchmarks.md"),
]

SAID_ONCE: Final = {
    "the feature gates that can be set": (r"gates[^.|]*\bfixed\b", "docs/configuration.md"),
    "how long the first plugin takes": (
        r"\w+ minutes\b(?=[^.]*plugin of your own)|start here; it takes",
        "docs/plugins.md",
    ),
    "the clusters that the chart's default is for": (r"chart's default[^.]*\d nodes|\| medium \|", "docs/chart.md"),
}


@pytest.mark.parametrize(("pattern", "page"), SAID_ONCE.values(), ids=SAID_ONCE)
def test_a_fact_is_on_one_page(pattern: str, page: str) -> None:
    found = [str(path.relative_to(ROOT)) for path in PAGES if re.search(pattern, path.read_text())]

    assert found == [page]


def test_each_feature_gate_that_can_be_set_is_in_the_configuration_page() -> None:
    page = (ROOT / "docs/configuration.md").read_text()

    assert [name for name in OURS if f"`{name}`" not in page] == []
