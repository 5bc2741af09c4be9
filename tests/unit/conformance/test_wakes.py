"""Pods that a change helps are tried again at once. `python -m tests.conformance.wakes` tries many more changes."""

from collections.abc import Mapping

import pytest

from tests.conformance.wakes import Tally, try_out

SEEDS = (17, 293, 478, 5028, 5034, 5043, 5078, 5113, 5153, 5176, 5177, 5181, 5214, 5226)
"""Of clusters in which pods waited for the flush once."""


@pytest.fixture(scope="module")
def tallies() -> Mapping[int, Tally]:
    """What came of 25 changes of each cluster, by its seed."""
    found = {seed: Tally() for seed in SEEDS}
    for seed, tally in found.items():
        try_out(seed, 25, tally)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_no_pod_waits_for_the_flush_though_a_change_has_helped_it(tallies: Mapping[int, Tally], seed: int) -> None:
    assert [str(each) for each in tallies[seed].missed] == []
    assert tallies[seed].cases == 25


def test_changes_of_a_few_clusters_help_pods(tallies: Mapping[int, Tally]) -> None:
    assert sum(each.helped.total() for each in tallies.values()) >= 50
    assert sum(each.asked for each in tallies.values()) >= 1000
