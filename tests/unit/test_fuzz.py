"""A little of the fuzzing, in every run: `make fuzz` does the rest."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import SEEDS, TARGETS


@pytest.mark.parametrize("target", [pytest.param(run, id=name) for name, run in TARGETS.items()])
def test_nothing_but_our_own_errors_comes_out(target: Callable[[bytes], None]) -> None:
    for seed in SEEDS:
        target(seed)

    @settings(max_examples=40, derandomize=True, deadline=None, database=None)
    @given(st.binary(max_size=200))
    def fuzz(data: bytes) -> None:
        target(data)

    fuzz()
