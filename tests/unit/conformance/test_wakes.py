"""Pods that a change helps are tried again at once. `python -m tests.conformance.wakes` tries many more changes."""

import pytest

from plugins.node_affinity import NodeAffinity
from plugins.node_resources.fit import NodeResourcesFit
from tests.conformance.wakes import Tally, try_out

SEEDS = (17, 293, 478, 5028, 5034, 5043, 5078, 5113, 5153, 5176, 5177, 5181, 5214, 5226)
"""Of clusters in which pods waited for the flush once."""


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_pod_waits_for_the_flush_though_a_change_has_helped_it(tally: Tally, seed: int) -> None:
    try_out(seed, 25, tally)

    assert [str(each) for each in tally.missed] == []
    assert tally.cases == 25


def test_changes_of_a_few_clusters_help_pods(tally: Tally) -> None:
    for seed in SEEDS:
        try_out(seed, 25, tally)

    assert tally.helped.total() >= 50
    assert tally.asked >= 1000


def test_a_pod_that_is_left_where_it_was_is_missed(tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    for plugin in (NodeAffinity, NodeResourcesFit):
        monkeypatch.setattr(plugin, "events_to_register", lambda self: ())
    for seed in SEEDS:
        try_out(seed, 25, tally)

    assert tally.missed
