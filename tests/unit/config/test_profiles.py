from typing import Any

import pytest

from plugins import IN_TREE
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.load import config_from_dict
from scheduler.framework.errors import ConfigError
from scheduler.runtime.profile_spec import PluginRef
from tests.unit.config.fakes import REGISTRY, a_config, a_profile


def problems_of(*profiles: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config_from_dict(a_config(profiles=list(profiles)), REGISTRY)
    return list(caught.value.problems)


def enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names]}


def disabled(*names: str) -> dict[str, Any]:
    return {"disabled": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        pytest.param(
            {"multiPoint": enabled("Fit", "NodeName", "NodeName")},
            None,
            id="several problems",
        ),
        pytest.param(
            {"score": {"enabled": [{"weight": 1}]}}, "score.enabled[0].name: Required value", id="no name given"
        ),
        pytest.param(
            {"multiPoint": enabled("OtherSort")},
            'queueSort: Invalid value: ["PrioritySort", "OtherSort"]: only one queue sort plugin required, but got 2',
            id="two queue sort plugins",
        ),
        pytest.param(
            {"multiPoint": enabled("Racks"), "placementGenerate": enabled("Zones")},
            'placementGenerate: Invalid value: ["Zones", "Racks"]: at most one placement generate plugin is allowed',
            id="two that generate placements",
        ),
    ],
)
def test_a_list_of_plugins_that_cannot_be_is_refused(plugins: dict[str, Any], problem: str | None) -> None:
    found = problems_of({"plugins": plugins})

    assert len(found) == 2 if problem is None else found == [f"profiles[0].plugins.{problem}"]


@pytest.mark.parametrize("name", ["GangScheduling", "PodGroupPodsCount", "TopologyPlacementGenerator"])
def test_a_plugin_for_groups_of_pods_needs_a_feature_gate(name: str) -> None:
    values = a_profile(plugins={"multiPoint": enabled(name)})

    config = config_from_dict(values, IN_TREE, gates=FeatureGates(generic_workload=True))
    with pytest.raises(ConfigError) as caught:
        config_from_dict(values, IN_TREE)

    assert name in config.profiles[0].enabled
    assert caught.value.problems == (
        f'profiles[0].plugins: Invalid value: "{name}": this plugin needs the feature gate GenericWorkload',
    )


@pytest.mark.parametrize("name", ["*", "EBSLimits", "NodePorts"])
def test_any_plugin_of_kube_scheduler_can_be_disabled(name: str) -> None:
    config = config_from_dict(a_profile(plugins={"filter": disabled(name)}), REGISTRY)

    assert config.profiles[0].plugins.filter.disabled == (PluginRef(name),)


def test_plugins_of_the_file_are_merged_into_the_default_ones() -> None:
    multi_point = {"disabled": [{"name": "NodePorts"}], "enabled": [{"name": "TaintToleration", "weight": 9}]}

    config = config_from_dict(a_profile(plugins={"multiPoint": multi_point}), REGISTRY)

    names = [ref.name for ref in config.profiles[0].plugins.multi_point.enabled]
    assert "NodePorts" not in names
    assert config.profiles[0].plugins.multi_point.enabled[names.index("TaintToleration")].weight == 9


def test_arguments_are_kept_as_the_file_has_them_without_their_type() -> None:
    args = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesFitArgs", "strict": False}

    config = config_from_dict(a_profile(pluginConfig=[{"name": "NodeResourcesFit", "args": args}]), REGISTRY)

    assert config.profiles[0].plugin_config == {"NodeResourcesFit": {"strict": False}}


def test_a_plugin_that_needs_arguments_cannot_be_enabled_without() -> None:
    assert problems_of({"plugins": {"filter": enabled("Demanding")}}) == [
        "profiles[0].pluginConfig[Demanding].args.zone: Required value"
    ]


def test_names_of_profiles_differ_and_are_not_empty() -> None:
    assert problems_of({"schedulerName": "a"}, {"schedulerName": "a"}, {}, {"schedulerName": ""}) == [
        "profiles[2].schedulerName: Required value",
        "profiles[3].schedulerName: Required value",
        'profiles[1].schedulerName: Duplicate value: "a"',
    ]


def test_all_profiles_sort_the_queue_in_the_same_way() -> None:
    other = {"queueSort": {**disabled("*"), **enabled("OtherSort")}}
    args = [{"name": "PrioritySort", "args": {"byAge": False}}]

    found = problems_of(
        {"schedulerName": "a"},
        {"schedulerName": "b", "plugins": other},
        {"schedulerName": "c", "pluginConfig": args},
        {"schedulerName": "d", "pluginConfig": [{"name": "PrioritySort", "args": {"byAge": True}}]},
    )

    assert found == [
        'profiles[1].plugins.queueSort: Invalid value: "OtherSort": must be the same for all profiles',
        'profiles[2].pluginConfig: Invalid value: {"byAge": false}: queueSort must be the same for all profiles',
    ]


def test_a_wrong_type_does_not_hide_a_wrong_name() -> None:
    found = problems_of(
        {
            "schedulerName": 5,
            "percentageOfNodesToScore": -1,
            "plugins": {"score": {"enabled": 3}, "filter": enabled("Foo")},
            "pluginConfig": [{"name": "Bar"}],
        }
    )

    assert found == [
        "profiles[0].schedulerName: expected string, got 5",
        "profiles[0].plugins.score.enabled: expected a list, got 3",
        "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
        'profiles[0].plugins.filter.enabled[0]: unknown plugin "Foo"',
    ]
