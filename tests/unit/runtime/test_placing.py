"""PlacementGenerate and PlacementScore: what plugins may answer, and in which words it fails."""

from typing import Any

import numpy as np
import pytest

from scheduler import framework as fw
from scheduler.framework.errors import AttemptFailed, PluginError
from scheduler.framework.plugin import Plugin
from scheduler.framework.status import Code, Status
from scheduler.process.metrics import Metrics
from scheduler.runtime.framework import Framework
from scheduler.runtime.guards.plugin_limits import Action, Limits, PluginLimits
from scheduler.runtime.scoring import Scores
from scheduler.testing import a_cluster, a_node, a_pod
from tests.conformance.transcribed import Case, cases
from tests.fakes import a_framework, plugin, sample

POD = a_pod("member")
EVERYTHING = fw.Placement("", np.arange(3))
NO = fw.unschedulable("no rack is large enough")


class Normalizing(fw.PlacementScorePlugin, fw.NormalizePlacementScorePlugin):
    """Scores in two steps."""


def placed(*plugins: Plugin, metrics: Metrics | None = None, **weights: int) -> Framework:
    nodes = a_cluster(*map(a_node, "abc"))
    return a_framework(*plugins, table=nodes, weights=weights, metrics=metrics)


def generated(framework: Framework, pod: fw.Pod = POD) -> Any:
    """The placements by name, or the refusal."""
    answer = framework.placing.generate(fw.CycleState(), pod, EVERYTHING)
    return answer if isinstance(answer, Status) else {each.name: each.rows.tolist() for each in answer}


def scored(
    *plugins: Plugin, state: fw.CycleState | None = None, metrics: Metrics | None = None, **weights: int
) -> Scores:
    racks = [fw.Placement(f"r{size}", np.arange(size)) for size in (1, 2)]
    candidates = [fw.PodGroupAssignments(rack, [fw.ProposedAssignment(POD, "a")]) for rack in racks]
    return placed(*plugins, metrics=metrics, **weights).placing.score(state or fw.CycleState(), POD, candidates)


def racks(*_: object) -> list[fw.Placement]:
    return [fw.Placement("r1", np.array([0])), fw.Placement("r2", np.array([1, 2]))]


def by_size(state: fw.CycleState, pod: fw.Pod, assignments: fw.PodGroupAssignments) -> int:
    return len(assignments.placement.rows)


def raises(error: Exception) -> Any:
    def ask(*_: object) -> Any:
        raise error

    return ask


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        pytest.param([], Status(Code.UNSCHEDULABLE, ("no feasible placements found",), "Racks"), id="none"),
        pytest.param(NO, NO.by("Racks"), id="a refusal"),
    ],
)
def test_a_group_without_placements_is_refused_by_the_plugin(answer: object, refusal: Status) -> None:
    metrics = Metrics()
    asked = plugin(fw.PlacementGeneratePlugin, "Racks", generate_placements=lambda *_: answer)

    assert generated(placed(asked, metrics=metrics)) == refusal
    ended = {"extension_point": "PlacementGenerate", "status": "Unschedulable", "profile": "default-scheduler"}
    assert sample(metrics, "scheduler_framework_extension_point_duration_seconds_count", **ended) == 1


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        pytest.param(None, "expected a list of Placements or a Status", id="nothing"),
        pytest.param([[1, 2]], "answered [1, 2] (list), expected a list of Placements or a Status", id="rows alone"),
        pytest.param([fw.Placement("r", (1, 2))], "expected a Placement with an array of rows", id="no array"),  # type: ignore[arg-type]
        pytest.param(
            raises(AttemptFailed("two domains")), 'running PlacementGenerate plugin "Racks": two domains', id="it fails"
        ),
        pytest.param(fw.SKIP, "answered Skip; it may answer Placements, unschedulable(…)", id="a code of others"),
    ],
)
def test_a_wrong_answer_is_an_error_of_the_plugin(answer: object, detail: str) -> None:
    generate = answer if callable(answer) else lambda *_: answer
    asked = plugin(fw.PlacementGeneratePlugin, "Racks", generate_placements=generate)

    with pytest.raises(PluginError) as caught:
        generated(placed(asked))
    assert detail in str(caught.value)


def test_a_plugin_that_is_switched_off_neither_generates_nor_scores() -> None:
    limits = Limits([PluginLimits("Racks", faults=1, action=Action.SWITCH_OFF)])
    framework = placed(plugin(fw.PlacementGeneratePlugin, "Racks", generate_placements=racks))
    framework.use_limits(limits)

    framework.breaker.note("Racks", "Filter", POD)

    assert generated(framework) == {"": [0, 1, 2]}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        pytest.param(
            {"score_placement": raises(AttemptFailed("no state"))},
            'running PlacementScore plugins: plugin "P" failed with: no state',
            id="it fails",
        ),
        pytest.param(
            {"normalize_placement_score": raises(AttemptFailed("all are 0"))},
            'running NormalizePlacementScore on PlacementScore plugins: plugin "P" failed with: all are 0',
            id="its second step fails",
        ),
        pytest.param(
            {"normalize_placement_score": lambda state, pod, scores: scores + 100},
            'applying score defaultWeights on PlacementScore plugins: plugin "P" returns an invalid score 101, '
            "it should in the range of [0, 100] after normalizing",
            id="too high",
        ),
        pytest.param(
            {"score_placement": lambda *_: "1"},
            "running PlacementScore plugins: plugin \"P\" failed with: <lambda> answered '1' (str), expected a whole "
            "number of 64 bits",
            id="no number",
        ),
        pytest.param(
            {"score_placement": lambda *_: 2**63},
            'running PlacementScore plugins: plugin "P" failed with: '
            f"<lambda> answered {2**63} (int), expected a whole number of 64 bits",
            id="no number of 64 bits",
        ),
        pytest.param(
            {"normalize_placement_score": lambda state, pod, scores: scores[:1]},
            'running NormalizePlacementScore on PlacementScore plugins: plugin "P" failed with: '
            "<lambda> answered int64 of shape (1,) for 2 placements",
            id="one score for all",
        ),
    ],
)
def test_a_plugin_that_scores_wrongly_is_named_in_kube_schedulers_words(answers: dict[str, Any], message: str) -> None:
    methods = {
        "score_placement": lambda *_: 1,
        "normalize_placement_score": lambda state, pod, scores: scores,
    } | answers

    with pytest.raises(PluginError) as caught:
        scored(plugin(Normalizing, "P", **methods))
    assert str(caught.value) == message


@pytest.mark.parametrize("case", cases("run_placement_generate_plugins"))
def test_placements_are_those_of_kube_scheduler(case: Case) -> None:
    nodes = [f"node{number}" for number in (1, 2, 3)]

    def generate(*_: object) -> list[fw.Placement]:
        if case.get("fails"):
            raise AttemptFailed("injected")
        rows = {name: np.array(list(map(nodes.index, those))) for name, those in case["generated"].items()}
        return [fw.Placement(name, each) for name, each in rows.items()]

    has_plugin = "generated" in case or "fails" in case
    plugins = [plugin(fw.PlacementGeneratePlugin, "plugin", generate_placements=generate)] if has_plugin else []

    def found() -> Any:
        answer = generated(placed(*plugins))
        return answer.code.label if isinstance(answer, Status) else answer

    if case.get("code") == "Error":
        with pytest.raises(PluginError):
            found()
    else:
        expected = {name: list(map(nodes.index, those)) for name, those in case.get("placements", {}).items()}
        assert found() == case.get("code", expected)


@pytest.mark.parametrize("case", cases("run_placement_score_plugins"))
def test_scores_are_those_of_kube_scheduler(case: Case) -> None:
    given: dict[str, Any] = case["plugins"]
    candidates = [fw.PodGroupAssignments(fw.Placement(str(number), np.array([number])), []) for number in range(3)]
    weights = {name: each["weight"] for name, each in given.items()}
    framework = a_framework(*(of_case(name, **each) for name, each in given.items()), weights=weights)

    def found() -> Scores:
        return framework.placing.score(fw.CycleState(), POD, candidates)

    if "totals" not in case:
        with pytest.raises(PluginError):
            found()
    else:
        assert {name: column.tolist() for name, column in found().by_plugin.items()} == case["scores"]
        assert found().total.tolist() == case["totals"]


def of_case(name: str, weight: int, scores: list[int | None], normalize: str = "") -> Plugin:
    def score(state: fw.CycleState, pod: fw.Pod, assignments: fw.PodGroupAssignments) -> int:
        found = scores[int(assignments.placement.name)]
        if found is None:
            raise AttemptFailed("error for test")
        return found

    def normalized(state: fw.CycleState, pod: fw.Pod, of_all: fw.Int64Column) -> fw.Int64Column:
        if normalize == "fails":
            raise AttemptFailed("error for test")
        return np.asarray(of_all * 100 // of_all[-1])

    if not normalize:
        return plugin(fw.PlacementScorePlugin, name, score_placement=score)
    return plugin(Normalizing, name, score_placement=score, normalize_placement_score=normalized)


def test_each_plugin_is_timed_where_the_cycle_says_so() -> None:
    metrics, state = Metrics(), fw.CycleState()
    state.record_plugin_metrics = True

    scored(plugin(fw.PlacementScorePlugin, "P", score_placement=by_size), state=state, metrics=metrics)

    timed = {"plugin": "P", "extension_point": "PlacementScore", "status": "Success"}
    assert sample(metrics, "scheduler_plugin_execution_duration_seconds_count", **timed) == 2
