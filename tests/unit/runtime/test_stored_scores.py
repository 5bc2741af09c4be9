"""Scores with and without a store agree: what test_scoring.py leaves open."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pytest

from scheduler import framework as fw
from scheduler.framework.nodes.nodes import Int64Column
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_pod
from tests.fakes import a_framework
from tests.unit.runtime.fakes import Score, ScoreNodes, a, nodes


class Doubling(Score, fw.NormalizeScorePlugin):
    """Doubles its scores in the end, or does what it is told to."""

    end: Any = None

    def normalize_score(self, state: fw.CycleState, pod: fw.Pod, scores: Int64Column) -> Int64Column:
        found: Int64Column = scores * 2 if self.end is None else self.end(scores)
        return found


class SignedScore(ScoreNodes, fw.SignPlugin):
    """Its scores are stored."""

    aspects = fw.Aspect.REQUESTED

    def sign(self, pod: fw.Pod) -> Hashable:
        return pod.labels.get("app")


class SignedDoubling(Doubling, fw.SignPlugin):
    aspects = fw.Aspect.REQUESTED

    def sign(self, pod: fw.Pod) -> Hashable:
        return ""


def scored(framework: Framework, table: NodeTable, *names: str, pod: fw.Pod | None = None) -> Mapping[str, int]:
    """Return node → total score, for the nodes of these names or all of them."""
    rows = np.array([row for row, name in enumerate(table.names()) if name in (names or table.node_names())])
    total = framework.run_score(fw.CycleState(), pod or a_pod(labels={"app": "web"}), rows).total
    return {table.names()[row]: score for row, score in zip(rows.tolist(), total.tolist(), strict=True)}


@pytest.mark.parametrize("kind", [Score, ScoreNodes, SignedScore])
def test_every_form_gives_the_same_scores_each_time_to_feasible_nodes_alone(kind: type[fw.Plugin]) -> None:
    table = nodes("a", "b", "c")
    framework = a_framework(a(kind, "Rate", {"a": 100, "c": 7}), table=table)

    first, second = scored(framework, table), scored(framework, table)

    assert first == second == {"a": 100, "b": 0, "c": 7}
    assert scored(framework, table, "b", "c") == {"b": 0, "c": 7}


def test_pods_of_another_signature_have_scores_of_their_own() -> None:
    table = nodes("a")
    rate = a(SignedScore, "Rate", {"a": 10})
    framework = a_framework(rate, table=table)
    scored(framework, table)

    rate.answer = {"a": 99}

    assert scored(framework, table) == {"a": 10}
    assert scored(framework, table, pod=a_pod(labels={"app": "other"})) == {"a": 99}
    assert scored(framework, table, pod=a_pod()) == {"a": 99}


def test_weights_do_not_add_up_in_stored_scores() -> None:
    table = nodes("a")
    framework = a_framework(a(SignedScore, "Rate", {"a": 10}), table=table, weights={"Rate": 3})

    assert [scored(framework, table)["a"] for _ in range(3)] == [30, 30, 30]


@pytest.mark.parametrize("kind", [Doubling, SignedDoubling])
def test_scores_are_normalised_again_each_time(kind: type[Doubling]) -> None:
    table = nodes("a", "b")
    framework = a_framework(a(kind, "Double", {"a": 50, "b": 3}), table=table, weights={"Double": 10})

    assert scored(framework, table) == scored(framework, table) == {"a": 1000, "b": 60}


def test_only_the_scores_of_feasible_nodes_are_normalised() -> None:
    table = nodes("a", "b", "c")
    rate = a(SignedDoubling, "Rate", {"a": 1, "b": 90, "c": 3})
    rate.end = lambda scores: scores * 100 // scores.max()

    assert scored(a_framework(rate, table=table), table, "a", "c") == {"a": 33, "c": 100}


def test_scores_may_be_anything_before_they_are_normalised() -> None:
    table = nodes("a", "b")
    rate = a(Doubling, "Rate", {"a": -(2**62), "b": 2**62})
    rate.end = lambda scores: (scores > 0).astype(np.int64) * 100

    assert scored(a_framework(rate, table=table), table) == {"a": 0, "b": 100}


def test_the_range_is_checked_after_normalising() -> None:
    table = nodes("a")

    with pytest.raises(fw.PluginError, match="invalid score 102,"):
        scored(a_framework(a(Doubling, "Double", {"a": 51}), table=table), table)


@pytest.mark.parametrize("kind", [Score, ScoreNodes, SignedScore])
@pytest.mark.parametrize("score", [-1, 101])
def test_a_score_out_of_range_is_found_in_every_form(kind: type[fw.Plugin], score: int) -> None:
    table = nodes("a", "b")

    with pytest.raises(fw.PluginError) as caught:
        scored(a_framework(a(kind, "Rate", {"a": 50, "b": score}), table=table), table)
    assert str(caught.value) == (
        f'applying score defaultWeights on Score plugins: plugin "Rate" returns an invalid score {score}, '
        "it should in the range of [0, 100] after normalizing"
    )
