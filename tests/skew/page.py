"""The table of docs/versions.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.skew.capabilities import CAPABILITIES, OTHERS
from tests.skew.results import Result

PAGE: Final = Path(__file__).parents[2] / "docs" / "versions.md"
BEGIN: Final = "<!-- written by `make skew-test WRITE=1`: begin -->\n"
END: Final = "<!-- end -->\n"


def table(results: Mapping[str, Mapping[str, Result]]) -> str:
    """One column for each version, such as "1.34.4", and below it why tests were not run on which versions."""
    rows = [name for name in (*CAPABILITIES, OTHERS) if any(name in each for each in results.values())]
    lines = [f"| API server | {' | '.join(results)} |", "|---" * (len(results) + 1) + "|"]
    for name in rows:
        cells = (each[name].cell if name in each else "-" for each in results.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    reasons: dict[str, list[str]] = {}
    for version, each in results.items():
        for reason in sorted({reason for result in each.values() for reason in result.skipped}):
            reasons.setdefault(reason, []).append(version)
    notes = [f"- {', '.join(versions)}: {reason}" for reason, versions in reasons.items()]
    return "\n".join([*lines, *(["", "Not run, and why:", "", *notes] if notes else [])]) + "\n"


def with_table(text: str, new: str) -> str:
    """The page with another table."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{new}\n{END}{tail}"
