"""`loadmaster.pluginLimits`: what is read, and what is refused."""

from typing import Any

import pytest

from plugins import IN_TREE
from scheduler.config.load import config_from_dict
from scheduler.config.profiles import API_VERSION
from scheduler.framework.duration import Duration
from scheduler.framework.errors import ConfigError
from scheduler.runtime.guards.plugin_limits import DEFAULT, Action, Limits, PluginLimits


def read(*limits: Any) -> tuple[PluginLimits, ...]:
    header = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    values = {**header, "loadmaster": {"pluginLimits": list(limits)}}
    return config_from_dict(values, IN_TREE).loadmaster.plugin_limits


def test_all_of_it_is_read() -> None:
    given = {
        "name": "LoadAware",
        "callBudget": "50ms",
        "waitBudget": "5s",
        "action": "SwitchOff",
        "faults": 2,
        "within": "10s",
        "pause": "1m",
    }

    assert read(given) == (
        PluginLimits(
            "LoadAware", Duration(0.05), Duration(5), Action.SWITCH_OFF, 2, within=Duration(10), pause=Duration(60)
        ),
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "[0].name: Required value"),
        ({"name": "A", "callBudget": "0s"}, '[0].callBudget: Invalid value: "0s": must be greater than zero'),
        ({"name": "A", "waitBudget": "-1s"}, '[0].waitBudget: Invalid value: "-1s": must be greater than zero'),
        ({"name": "A", "within": "0"}, '[0].within: Invalid value: "0s": must be greater than zero'),
        ({"name": "A", "pause": "soon"}, "[0].pause: not a duration: 'soon' (write for example '15s' or '1m30s')"),
        ({"name": "A", "faults": 0}, "[0].faults: Invalid value: 0: must be between 1 and 1000"),
        ({"name": "A", "faults": 10**9}, "[0].faults: Invalid value: 1000000000: must be between 1 and 1000"),
        (
            {"name": "A", "action": "Ignore"},
            '[0].action: Unsupported value: "Ignore": supported values: "None", "SwitchOff", "FailPods"',
        ),
        ({"name": "A", "budget": "1s"}, "[0].budget: unknown field"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_path(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(given)

    (found,) = raised.value.problems
    assert found.startswith(f"loadmaster.pluginLimits{problem}")


def test_a_plugin_has_one_set_of_limits() -> None:
    with pytest.raises(ConfigError) as raised:
        read({"name": "A"}, {"name": "*"}, {"name": "A"})

    assert raised.value.problems == ('loadmaster.pluginLimits[2].name: Duplicate value: "A"',)


def test_a_plugin_without_limits_of_its_own_has_those_of_the_others() -> None:
    own, others = PluginLimits("A", Duration(2)), PluginLimits("*", Duration(3))
    limits = Limits((own, others))

    assert (limits.of("A"), limits.of("B")) == (own, others)
    assert [limits.names("A"), limits.names("B"), Limits((own,)).names("B")] == [True, True, False]
    assert Limits().of("A") == DEFAULT
