from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from plugins import IN_TREE
from scheduler import framework as fw
from scheduler.framework.errors import ConfigError
from scheduler.runtime.profile import ProfilePlugins, build
from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet, ProfileSpec
from scheduler.runtime.registry import Registry
from tests.fakes import a_handle, a_plugin
from tests.unit.runtime.fakes import (
    Bind,
    Filter,
    FilterNodes,
    PreBind,
    PreScore,
    QueueSort,
    Score,
    ScoreNodes,
    SignedFilter,
    named,
)


class FilterAndScore(Filter, Score):
    """Extends two points."""


class FilterInBothForms(Filter, FilterNodes):
    """Cannot say which one counts."""


class ScoreInBothForms(Score, ScoreNodes):
    """Cannot say which one counts, either."""


class ScoreInBothFormsAndFilter(ScoreInBothForms, Filter):
    """Is at two points, and wrong at one."""


class Racks(fw.PlacementGeneratePlugin):
    """For groups."""

    def generate_placements(self, state: fw.CycleState, pod: fw.Pod, parent: fw.Placement) -> list[fw.Placement]:
        return [parent]


class ScoresBoth(Score, fw.PlacementScorePlugin):
    """For pods and for groups."""

    def score_placement(self, state: fw.CycleState, pod: fw.Pod, assignments: fw.PodGroupAssignments) -> int:
        return 0


@dataclass(frozen=True)
class Argued(fw.PreBindPlugin):
    name = "Argued"
    strict: bool = False

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        return None


KINDS: Mapping[str, type[fw.Plugin]] = {
    "Sort": QueueSort,
    "OtherSort": QueueSort,
    "Bind": Bind,
    "A": FilterAndScore,
    "B": FilterAndScore,
    "C": FilterAndScore,
    "D": FilterAndScore,
    "OnlyFilter": Filter,
    "OnlyPreScore": PreScore,
    "OnlyPreBind": PreBind,
    "Racks": Racks,
    "Zones": Racks,
    "ScoresBoth": ScoresBoth,
    "FilterInBothForms": FilterInBothForms,
    "ScoreInBothForms": ScoreInBothForms,
    "ScoreInBothFormsAndFilter": ScoreInBothFormsAndFilter,
}
HANDLE = a_handle(profile="mine")
REGISTRY: Registry = {name: named(name, kind) for name, kind in KINDS.items()} | {"Argued": Argued}


def refs(*names: str | tuple[str, int]) -> tuple[PluginRef, ...]:
    return tuple(PluginRef(name) if isinstance(name, str) else PluginRef(*name) for name in names)


def enabled(*names: str | tuple[str, int]) -> PluginSet:
    return PluginSet(refs(*names))


def disabled(*names: str) -> PluginSet:
    return PluginSet((), refs(*names))


def a_profile(
    *multi_point: str | tuple[str, int], arguments: Mapping[str, Any] | None = None, **points: PluginSet
) -> ProfilePlugins:
    """Build a profile that also has a queue sort and a bind plugin, unless `points` has others."""
    points = {"queue_sort": enabled("Sort"), "bind": enabled("Bind"), **points}
    spec = ProfileSpec("mine", Plugins(multi_point=enabled(*multi_point), **points), dict(arguments or {}))
    return build(spec, REGISTRY)


def problems_of(*multi_point: str | tuple[str, int], **options: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        a_profile(*multi_point, **options)
    assert all(problem.startswith("profile 'mine': ") for problem in caught.value.problems)
    return [problem.removeprefix("profile 'mine': ") for problem in caught.value.problems]


def at(profile: ProfilePlugins, point: str) -> list[str]:
    return [plugin.name for plugin in profile.at[point]]


def test_multi_point_brings_a_plugin_as_one_object_to_every_point_that_it_extends() -> None:
    profile = a_profile("A", "OnlyPreBind")

    assert {point: at(profile, point) for point, plugins in profile.at.items() if plugins} == {
        "queue_sort": ["Sort"],
        "filter": ["A"],
        "score": ["A"],
        "pre_bind": ["OnlyPreBind"],
        "bind": ["Bind"],
    }
    assert profile.at["filter"][0] is profile.at["score"][0] is profile.by_name["A"]


@pytest.mark.parametrize(
    ("multi_point", "points", "at_filter", "at_score"),
    [
        pytest.param("", {"filter": enabled("A")}, "A", "", id="enabled at one point"),
        pytest.param("A B", {"score": disabled("A")}, "A B", "B", id="disabled at one point"),
        pytest.param("A B", {"score": PluginSet(refs("C"), refs("*"))}, "A B", "C", id="all disabled at one point"),
        pytest.param(
            "A B C",
            {"filter": enabled("D", "C", "OnlyFilter", "A")},
            "C A B D OnlyFilter",
            "A B C",
            id="overridden plugins first, other ones last",
        ),
        pytest.param("A B", {"filter": PluginSet(refs("A"), refs("A"))}, "B A", "A B", id="disabled and enabled: last"),
        pytest.param("A", {"filter": disabled("Nobody")}, "A", "A", id="disabled without being enabled"),
    ],
)
def test_a_point_has_the_plugins_of_multi_point_with_its_own_changes(
    multi_point: str, points: dict[str, Any], at_filter: str, at_score: str
) -> None:
    profile = a_profile(*multi_point.split(), **points)

    assert (at(profile, "filter"), at(profile, "score")) == (at_filter.split(), at_score.split())


@pytest.mark.parametrize(
    ("multi_point", "points", "weights"),
    [
        pytest.param((("A", 3), ("B", 5)), {"score": enabled(("A", 7))}, {"A": 7, "B": 5}, id="that at Score wins"),
        pytest.param(("A", ("B", 0), "OnlyFilter"), {}, {"A": 1, "B": 1}, id="none means one"),
        pytest.param((("A", 3),), {"score": enabled("A")}, {"A": 1}, id="none at Score means one"),
        pytest.param((("A", (2**63 - 1) // 100),), {}, {"A": (2**63 - 1) // 100}, id="the largest"),
    ],
)
def test_weights_are_those_at_score_or_else_of_multi_point(
    multi_point: tuple[Any, ...], points: dict[str, Any], weights: dict[str, int]
) -> None:
    assert a_profile(*multi_point, **points).weights == weights


def test_placements_have_weights_of_their_own() -> None:
    profile = a_profile(("ScoresBoth", 3), ("A", 5), placement_score=enabled(("ScoresBoth", 7)))

    assert profile.weights == {"ScoresBoth": 3, "A": 5}
    assert profile.placement_weights == {"ScoresBoth": 7}


@pytest.mark.parametrize("weights", [(2**63 // 100 + 1, 0), (2**62 // 100, 2**62 // 100 + 1)])
def test_weights_whose_scores_overflow_are_refused(weights: tuple[int, int]) -> None:
    problems = problems_of(("A", weights[0]), ("B", weights[1]))

    assert problems == ["total score of Score plugins could overflow"]


def test_arguments_go_into_the_plugin() -> None:
    plugin = a_profile("Argued", arguments={"Argued": {"strict": True}}).by_name["Argued"]

    assert isinstance(plugin, Argued)
    assert plugin.strict


def test_plugins_of_a_point_are_given_by_kind() -> None:
    profile = a_profile("A", "OnlyFilter")

    assert [plugin.name for plugin in profile.of("filter", fw.FilterPlugin)] == ["A", "OnlyFilter"]
    assert profile.of("filter", fw.FilterNodesPlugin) == ()


@pytest.mark.parametrize(
    ("multi_point", "options", "problem"),
    [
        pytest.param(("Nobody",), {}, "plugin 'Nobody' does not exist", id="unknown in MultiPoint"),
        pytest.param((), {"permit": enabled("Nobody")}, "plugin 'Nobody' does not exist", id="unknown at a point"),
        pytest.param(
            ("Argued",),
            {"arguments": {"Argued": {"strict": "yes"}}},
            "arguments of Argued.strict: expected bool, got 'yes'",
            id="wrong arguments",
        ),
        pytest.param(
            (), {"score": enabled("OnlyFilter")}, "plugin 'OnlyFilter' does not extend score", id="at a wrong point"
        ),
        pytest.param(
            ("OnlyFilter", "OnlyFilter"),
            {},
            "plugin 'OnlyFilter' already registered at filter",
            id="twice in MultiPoint",
        ),
        pytest.param(
            (), {"filter": enabled("A", "A")}, "plugin 'A' already registered at filter", id="twice at a point"
        ),
        pytest.param(
            (),
            {"queue_sort": PluginSet()},
            "only one queue sort plugin required, but got 0",
            id="no queue sort",
        ),
        pytest.param(("OtherSort",), {}, "only one queue sort plugin required, but got 2", id="two queue sorts"),
        pytest.param((), {"bind": PluginSet()}, "at least one bind plugin is needed", id="no bind"),
        pytest.param(
            ("Racks", "Zones"),
            {},
            "at most one placement generate plugin is allowed",
            id="two that generate placements",
        ),
        *(
            pytest.param((name,), {}, f"plugin {name!r} has Filter or Score in both forms; keep one", id=name)
            for name in ("FilterInBothForms", "ScoreInBothForms", "ScoreInBothFormsAndFilter")
        ),
    ],
)
def test_a_wrong_profile_is_refused(multi_point: tuple[str, ...], options: dict[str, Any], problem: str) -> None:
    assert problems_of(*multi_point, **options) == [problem]


def test_all_plugins_that_cannot_be_made_are_named_at_once() -> None:
    problems = problems_of("Nobody", "Argued", "Noone", arguments={"Argued": {"strict": 1, "stict": True}})

    assert problems == [
        "plugin 'Nobody' does not exist",
        "arguments of Argued.strict: expected bool, got 1",
        "arguments of Argued.stict: unknown field; did you mean 'strict'?",
        "plugin 'Noone' does not exist",
    ]


def test_all_plugins_that_cannot_be_where_they_are_are_named_at_once() -> None:
    problems = problems_of(
        "OtherSort", ("A", 2**60), bind=PluginSet(), filter=enabled("OnlyPreScore"), score=enabled("B", "B")
    )

    assert problems == [
        "plugin 'OnlyPreScore' does not extend filter",
        "plugin 'B' already registered at score",
        "only one queue sort plugin required, but got 2",
        "at least one bind plugin is needed",
        "total score of Score plugins could overflow",
    ]


def test_a_resource_that_there_cannot_be_is_told_with_the_plugin_that_names_it() -> None:
    registered = [fw.ClusterEventWithHint(fw.ClusterEvent(name, fw.Action.ADD)) for name in ("foos", "Node")]
    kind = a_plugin("Wrong", fw.FilterPlugin, events_to_register=lambda: registered)
    kind.reads = ("bars",)
    spec = ProfileSpec("mine", Plugins(multi_point=enabled("Wrong"), queue_sort=enabled("Sort"), bind=enabled("Bind")))

    profile = build(spec, {**REGISTRY, "Wrong": kind})

    with pytest.raises(ConfigError) as caught:
        profile.start(HANDLE)

    told = [problem.partition(" is no resource")[0] for problem in caught.value.problems]
    assert told == [f"profile 'mine': plugin 'Wrong': '{name}'" for name in ("bars", "foos")]


def recording(name: str, log: list[str], *, fails: str = "") -> type[fw.Plugin]:
    """Make a plugin class that notes when it is made, started, asked and stopped, and raises at one of these steps."""

    class Recording(fw.PreBindPlugin):
        def __init__(self) -> None:
            self.note("made")

        def note(self, step: str) -> None:
            log.append(f"{name} {step}")
            if step == fails:
                raise OSError("no such file")

        def start(self, handle: fw.Handle) -> None:
            self.note(f"started for {handle.profile_name}")

        def stop(self) -> None:
            self.note("stopped")

        def events_to_register(self) -> tuple[()]:
            self.note("asked for events")
            return ()

        async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
            return None

    return named(name, Recording)


def of(*kinds: type[fw.Plugin]) -> ProfilePlugins:
    """Build a profile of these plugins."""
    multi_point = enabled(*(kind.name for kind in kinds))
    spec = ProfileSpec("mine", Plugins(multi_point=multi_point, queue_sort=enabled("Sort"), bind=enabled("Bind")))
    return build(spec, {**REGISTRY, **{kind.name: kind for kind in kinds}})


def test_a_plugin_is_started_once_before_anything_else_and_stopped_in_reverse_order() -> None:
    log: list[str] = []
    profile = of(recording("X", log), recording("Y", log))
    assert log == ["X made", "Y made"]

    profile.start(HANDLE)
    profile.stop()

    begun = ["X started for mine", "Y started for mine", "X asked for events", "Y asked for events"]
    assert log[2:] == [*begun, "Y stopped", "X stopped"]


def test_a_plugin_that_does_not_start_is_a_problem_and_those_before_it_are_stopped() -> None:
    log: list[str] = []
    profile = of(recording("X", log), recording("Y", log, fails="started for mine"), recording("Z", log))

    with pytest.raises(ConfigError, match="profile 'mine': plugin 'Y' did not start: OSError: no such file"):
        profile.start(HANDLE)

    assert log[3:] == ["X started for mine", "Y started for mine", "X stopped"]


def test_a_plugin_that_does_not_stop_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []
    profile = of(recording("X", log), recording("Y", log, fails="stopped"))
    profile.start(HANDLE)

    profile.stop()

    assert log[-2:] == ["Y stopped", "X stopped"]
    assert [record.message for record in caplog.records] == ["A plugin did not stop"]


def signing(why: str = "", *resources: str) -> type[fw.Plugin]:
    """Make a plugin class that signs, reads these resources, and may say why that is right."""

    class Signing(SignedFilter):
        reads = resources
        signs_despite_objects = why

        def __init__(self) -> None:
            super().__init__()

        def events_to_register(self) -> tuple[()]:
            return ()

    return named("Signing", Signing)


@pytest.mark.parametrize(
    ("kind", "is_warned_of"),
    [
        pytest.param(signing("", fw.SERVICE), True, id="signs, and looks objects up"),
        pytest.param(signing("it only counts them", fw.SERVICE), False, id="says why that is right"),
        pytest.param(signing(), False, id="looks no objects up"),
    ],
)
def test_a_plugin_whose_stored_answers_may_go_stale_is_warned_of(
    kind: type[fw.Plugin], is_warned_of: bool, caplog: pytest.LogCaptureFixture
) -> None:
    of(kind).start(HANDLE)

    warned = [(vars(record)["plugin"], vars(record)["resources"]) for record in caplog.records]
    assert warned == ([("Signing", "Service")] if is_warned_of else [])


def test_no_plugin_of_the_tree_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    plugins = Plugins(multi_point=enabled(*IN_TREE))

    build(ProfileSpec("mine", plugins), IN_TREE).start(HANDLE)

    assert caplog.records == []
