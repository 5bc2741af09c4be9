"""Refused configurations and plugins that fail."""

from scheduler.doctor.checks import plugins
from scheduler.framework.errors import ClusterError, ConfigError
from tests.unit.doctor.fake_cluster import PROBLEM, WARNING, FakeCluster, facts, levels, samples


async def test_a_refused_configuration_is_named_with_its_first_problem() -> None:
    refused = facts(
        samples=samples("loadmaster_config_is_current 0.0\n"), file=ConfigError(["config.yaml:3: no plugin Nod"])
    )

    findings = await plugins.configuration(refused, FakeCluster())

    assert levels(findings) == [PROBLEM]
    assert "was refused: config.yaml:3: no plugin Nod; the last good one is in use" in findings[0].message


async def test_a_configuration_that_keeps_it_from_starting_is_named() -> None:
    lost = ClusterError("no answer")
    refused = facts(samples=lost, config=lost, is_running=False, file=ConfigError(["config.yaml:3: no plugin Nod"]))

    findings = await plugins.configuration(refused, FakeCluster())

    assert "the ConfigMap kube-system/loadmaster is refused: config.yaml:3" in findings[0].message


async def test_failing_plugins_are_named() -> None:
    text = (
        'loadmaster_plugins_paused{plugin="Bad",profile="x",action="filter"} 1.0\n'
        'loadmaster_plugin_faults_total{plugin="Bad",extension_point="Filter",kind="error"} 3.0\n'
        'loadmaster_plugin_faults_total{plugin="Bad",extension_point="Score",kind="late"} 2.0\n'
        'loadmaster_plugin_data_faults_total{plugin="LoadAware",reason="answer"} 2.0\n'
    )

    findings = await plugins.faults(facts(samples=samples(text)), FakeCluster())

    assert levels(findings) == [PROBLEM, WARNING, WARNING]
    assert "Bad 5 times" in findings[1].message
