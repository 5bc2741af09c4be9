"""What the chart's files say, as parts of the documentation."""

import re
from pathlib import Path
from typing import Any, Final

import yaml

from tests.chart.helm import CHART

DOCS: Final = Path(__file__).parents[2] / "docs"
UPGRADING: Final = DOCS / "upgrading.md"
CHART_PAGE: Final = DOCS / "chart.md"
README: Final = CHART / "README.md"
PUBLISHED: Final = "https://github.com/loadmaster/loadmaster/blob/main/docs/"

BEGIN: Final = "<!-- written by `make manifest`: begin -->\n"
END: Final = "<!-- end -->\n"


def with_part(page: str, text: str) -> str:
    """Return a page with the part between the two marks replaced."""
    head, begin, rest = page.partition(BEGIN)
    return head + begin + text + END + rest.partition(END)[2]


def parts() -> dict[Path, str]:
    """Return the part of each page that the chart's files make."""
    return {UPGRADING: actions_text(), CHART_PAGE: sizes_text(), README: values_text()}


def values_text() -> str:
    """Return the table of values in docs/chart.md, with links that work elsewhere."""
    page = CHART_PAGE.read_text()
    table = page[page.index("| value | default |") :].partition("\n\n")[0] + "\n"
    absolute = re.sub(r"\]\(#", f"]({CHART_PAGE.name}#", table)
    return re.sub(r"\]\((?!https?:)", f"]({PUBLISHED}", absolute)


def releases() -> list[dict[str, Any]]:
    """Return every release with its actions, the oldest first."""
    found: list[dict[str, Any]] = yaml.safe_load((CHART / "files" / "releases.yaml").read_text())
    return found


def actions_text() -> str:
    """Return the list of actions, the newest release first."""
    parts = []
    for release in reversed(releases()):
        actions = [f"- {action}\n" for action in release["actions"]] or ["None.\n"]
        parts.append(f"### {release['version']}\n\n{''.join(actions)}")
    return "\n".join(parts)


def sizes_text() -> str:
    """Return the table of sizes."""
    sizes = yaml.safe_load((CHART / "files" / "sizes.yaml").read_text())
    rows = [
        f"| {name} | {size['nodes']:,} | {size['pods']:,} | {size['resources']['requests']['cpu']} "
        f"| {size['resources']['requests']['memory']} | {size['resources']['limits']['memory']} |\n"
        for name, size in sizes.items()
    ]
    head = (
        "| `clusterSize` | nodes, up to | pods, up to | CPU | memory | memory, at most |\n|---|---|---|---|---|---|\n"
    )
    return head + "".join(rows)
