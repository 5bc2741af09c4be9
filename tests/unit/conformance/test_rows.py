"""Each change of kube-scheduler's decisions from 1.36 to 1.37 is shown by recorded cases."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.configurations import RECORDED
from tests.conformance.groups import GROUPS
from tests.conformance.hints import HINTS
from tests.conformance.queue import QUEUES
from tests.conformance.recorded import CASES, Json, read_cases
from tests.conformance.rows import (
    SHOWN,
    SHOWN_BY_CONFIGURATIONS,
    SHOWN_BY_GROUPS,
    SHOWN_BY_HINTS,
    SHOWN_BY_QUEUES,
    Shown,
)

ROWS: Final[Mapping[Path, Mapping[str, Shown]]] = {
    CASES: SHOWN,
    HINTS: SHOWN_BY_HINTS,
    QUEUES: SHOWN_BY_QUEUES,
    RECORDED.parent: SHOWN_BY_CONFIGURATIONS,
    GROUPS: SHOWN_BY_GROUPS,
}


@pytest.mark.parametrize(("folder", "row"), [(folder, row) for folder, rows in ROWS.items() for row in rows])
def test_no_change_is_without_a_case(folder: Path, row: str) -> None:
    assert any(ROWS[folder][row](recorded) for recorded in recorded_in(folder))


@cache
def recorded_in(folder: Path) -> list[Json]:
    return list(read_cases(folder))
