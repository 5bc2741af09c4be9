"""The page's table of which status is allowed where is what the engine allows."""

import re
from pathlib import Path
from typing import Final

from scheduler.runtime.guards.return_values import MAY_ANSWER

PAGE: Final = Path(__file__).parents[3] / "docs" / "plugins.md"

METHODS: Final = {
    "PreEnqueue": "pre_enqueue",
    "PreFilter": "pre_filter",
    "PreFilterExtensionAddPod": "add_pod",
    "PreFilterExtensionRemovePod": "remove_pod",
    "Filter": "filter",
    "PostFilter": "post_filter",
    "PreScore": "pre_score",
    "Reserve": "reserve",
    "Permit": "permit",
    "PreBindPreFlight": "pre_bind_pre_flight",
    "PreBind": "pre_bind",
    "Bind": "bind",
    "PlacementFeasible": "placement_feasible",
    "PlacementGenerate": "generate_placements",
}


def statuses(text: str) -> set[str]:
    return set(re.findall(r"SKIP|unschedulable|unresolvable|pending", text))


def test_the_page_says_which_status_is_allowed_where() -> None:
    table = re.search(r"^\| extension point \| a Status may be \|\n\|.*\n((?:\|.*\n)+)", PAGE.read_text(), re.MULTILINE)
    assert table is not None
    shown = {
        method: statuses(allowed)
        for row in table.group(1).splitlines()
        for points, allowed in [row.strip("|").split("|")]
        for method in re.findall(r"`(\w+)`", points)
    }

    del shown["status_of"]  # Filter's, in its column form
    assert shown == {METHODS[point]: statuses(allowed) for point, allowed in MAY_ANSWER.items()}
