"""The rank of a pod in its group."""

import pytest

from scheduler.groups.topology.ranks import KEYS, NO_RANK, rank_of
from scheduler.testing import a_pod


@pytest.mark.parametrize("key", KEYS)
def test_a_rank_is_read_from_the_labels_of_jobs_and_stateful_sets(key: str) -> None:
    assert rank_of(a_pod(labels={key: "12"})) == 12


@pytest.mark.parametrize("text", ["", "-1", "x", "1.5", "²", "1" * 5000])
def test_what_is_no_rank_comes_last(text: str) -> None:
    assert rank_of(a_pod(labels={KEYS[0]: text})) == NO_RANK
