from pathlib import Path

import pytest

from tests.unit.replay.traces import CaptureFixture, RecordedTrace


@pytest.fixture
def trace(tmp_path: Path, capsys: CaptureFixture) -> RecordedTrace:
    return RecordedTrace(tmp_path, capsys)
