import numpy as np
import pytest

from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes.nodes import Int64Column, NodeInfo
from scheduler.framework.plugin import NormalizeScorePlugin, Plugin, PreScorePlugin, ScoreNodesPlugin, ScorePlugin
from scheduler.framework.status import SKIP
from scheduler.runtime.scoring import Scores
from scheduler.testing import a_cluster, a_node, a_pod
from tests.fakes import PlainScore, Signed, a_framework, plugin


class Normalizing(ScorePlugin, NormalizeScorePlugin):
    pass


def scored(*plugins: Plugin, app: str = "", **weights: int) -> Scores:
    framework = a_framework(*plugins, table=a_cluster(*map(a_node, "ab")), weights=weights)
    pod = a_pod(labels={"app": app} if app else None)
    return framework.run_score(CycleState(), pod, np.array([0, 1]))


def test_scores_are_weighted_and_added() -> None:
    scores = scored(PlainScore({"a": 1, "b": 2}, "One"), PlainScore({"a": 100, "b": 0}, "Two"), One=3)

    assert scores.total.tolist() == [103, 6]
    assert {name: column.tolist() for name, column in scores.by_plugin.items()} == {"One": [3, 6], "Two": [100, 0]}


def test_only_feasible_nodes_are_scored_by_a_plugin_that_stores_nothing() -> None:
    asked: list[str] = []

    def score(state: object, pod: object, node: NodeInfo) -> int:
        asked.append(node.name)
        return 1

    framework = a_framework(plugin(ScorePlugin, "Asks", score=score), table=a_cluster(*map(a_node, "ab")))
    total = framework.run_score(CycleState(), a_pod(), np.array([1])).total

    assert (total.tolist(), asked) == ([1], ["b"])


def test_without_score_plugins_every_node_counts_one_and_nothing_is_prepared() -> None:
    prepared: list[int] = []
    scores = scored(plugin(PreScorePlugin, "Prepares", pre_score=lambda *_: prepared.append(1)))

    assert (scores.total.tolist(), prepared) == ([1, 1], [])


def test_a_plugin_that_scores_all_gives_those_that_do_not_concern_it_0_unasked() -> None:
    class Lenient(PreScorePlugin, ScorePlugin):
        scores_all = True

    asked: list[str] = []
    lenient = plugin(
        Lenient,
        "Lenient",
        concerns_score=lambda *_: False,
        pre_score=lambda *_: asked.append("PreScore"),
        score=lambda *_: asked.append("Score"),
    )
    framework = a_framework(lenient, Signed(), table=a_cluster(*map(a_node, "ab")))
    pod, rows = a_pod(labels={"app": "web"}), np.array([0, 1])
    by_plugin = framework.run_score(CycleState(), pod, rows).by_plugin
    shown = []
    for _ in range(3):
        state = CycleState()
        framework.run_best(state, pod, rows)
        shown.append(dict(zip(*state.scored.of(0), strict=True)))

    assert by_plugin["Lenient"].tolist() == [0, 0]
    assert [each["Lenient"] for each in shown] == [0, 0, 0]
    assert asked == []


def test_a_plugin_whose_pre_score_skips_does_not_score() -> None:
    class Both(PreScorePlugin, ScorePlugin):
        pass

    scores = scored(plugin(Both, "Skips", pre_score=lambda *_: SKIP, score=lambda *_: 7))

    assert (scores.total.tolist(), dict(scores.by_plugin)) == ([0, 0], {})


def test_no_answer_of_a_column_plugin_means_zero() -> None:
    assert scored(plugin(ScoreNodesPlugin, "None", score_nodes=lambda *_: None)).total.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        pytest.param(
            plugin(ScoreNodesPlugin, "Bad", score_nodes=lambda *_: np.array([0.5, 0.5])),
            'running Score plugins: plugin "Bad" failed with: <lambda> answered float64 of shape (2,) for 2 nodes',
            id="floats",
        ),
        pytest.param(
            plugin(ScoreNodesPlugin, "Bad", score_nodes=lambda *_: np.array([1])),
            'running Score plugins: plugin "Bad" failed with: <lambda> answered int64 of shape (1,) for 2 nodes',
            id="too few",
        ),
        pytest.param(
            plugin(ScoreNodesPlugin, "Bad", score_nodes=lambda *_: SKIP),
            'running Score plugins: plugin "Bad" failed with: <lambda> answered Status',
            id="a status",
        ),
        pytest.param(
            plugin(Normalizing, "Bad", score=lambda *_: 1, normalize_score=lambda *_: None),
            'running Normalize on Score plugins: plugin "Bad" failed with: <lambda> answered None, expected an array',
            id="normalize forgets to return",
        ),
        pytest.param(
            plugin(ScorePlugin, "Bad", score=lambda *_: 2**63),
            'running Score plugins: plugin "Bad" failed with: ',
            id="no int64",
        ),
    ],
)
def test_an_answer_that_is_no_column_of_scores_is_the_fault_of_its_plugin(wrong: Plugin, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        scored(wrong)
    assert str(caught.value).startswith(message)


def test_a_stored_answer_cannot_be_changed_by_normalizing_in_place() -> None:
    class InPlace(Signed, NormalizeScorePlugin):
        name = "InPlace"

        def normalize_score(self, state: object, pod: object, scores: Int64Column) -> Int64Column:
            scores //= 2
            return scores

    with pytest.raises(PluginError, match=r'"InPlace" failed with: .*read-only'):
        scored(InPlace(), app="web")
