"""Guards how far a reader follows a pod through the code. If a change is worth it: `LIMITS` in tests/bench/ways.py."""

import asyncio

import pytest

from tests.bench.ways import LIMITS, WAYS


@pytest.mark.parametrize("name", WAYS)
def test_a_reader_follows_a_pod_through_no_more_code_than_is_allowed(name: str) -> None:
    way = asyncio.run(WAYS[name]())

    assert way.is_within(LIMITS[name]), way
