"""Tables of Kueue's and scheduler-plugins' tests, as data in files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

SCHEDULER_PLUGINS: Final = Path(__file__).parents[1] / "plugins" / "contrib" / "capacity_scheduling"


def table(name: str, folder: Path = Path(__file__).parent) -> Any:
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def of_cases(cases: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Run a test for each case that applies to us."""
    applying = {name: case for name, case in cases.items() if "does not apply" not in case}
    return pytest.mark.parametrize("case", applying.values(), ids=applying)
