"""What `python -m tests.bench.replay` measures is a replay in which everything is decided as it was recorded."""

import asyncio
from pathlib import Path

import pytest

from tests.bench.replay import KINDS, record, replay


@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_is_made_and_replayed(tmp_path: Path, kind: str) -> None:
    trace = tmp_path / "there" / "small.trace"

    asyncio.run(record(trace, kind, nodes=5, pods=20))
    run = replay(trace)

    assert run.per_second > 0
    assert run.differences == 0
    assert [each.name for each in trace.parent.iterdir()] == [trace.name]
