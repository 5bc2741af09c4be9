"""The configuration in effect and its plugins: whether the newest one was taken, and which plugins fail."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from scheduler.doctor.evidence.cluster import Cluster
from scheduler.doctor.evidence.facts import Facts, known
from scheduler.doctor.findings import Finding, ok, problem, warning
from scheduler.framework.errors import ConfigError

MAX_NAMED: Final = 5

CHECK: Final = "`loadmaster config check FILE` says what is wrong with a file before it is applied"


async def configuration(facts: Facts, _: Cluster) -> list[Finding]:
    """Whether the newest configuration, with its plugins' files, is in use."""
    if isinstance(facts.file, ConfigError) and not facts.is_running:
        return [problem(f"the ConfigMap {facts.namespace}/{facts.name} is refused: {facts.file.problems[0]}", CHECK)]
    if known(facts.samples).total("loadmaster_config_is_current") == 0:
        why = f": {facts.file.problems[0]}" if isinstance(facts.file, ConfigError) else ""
        message = f"the newest configuration, or a plugin's file, was refused{why}; the last good one is in use"
        return [problem(message, f"kubectl logs of its pods name every problem; {CHECK}")]
    config = known(facts.config)
    enabled = {plugin for plugins in config.profiles.values() for plugin in plugins}
    own = f", {len(config.unknown_plugins)} of them your own" if config.unknown_plugins else ""
    profiles = ", ".join(sorted(config.profiles))
    count = len(enabled) + len(config.unknown_plugins)
    return [ok(f"the newest configuration is in use: {profiles} with {count} plugins{own}")]


async def faults(facts: Facts, _: Cluster) -> list[Finding]:
    """Whether plugins fail, or are out of the way for that."""
    samples = known(facts.samples)
    findings = list[Finding]()
    if paused := samples.by("plugin", "loadmaster_plugins_paused"):
        advice = "pods are decided without them, or wait: docs/runbook.md, LoadmasterPluginPaused"
        findings.append(problem(f"out of the way, as they failed too often: {_named(paused)}", advice))
    if counts := samples.by("plugin", "loadmaster_plugin_faults_total"):
        failing = [f"{name} {count:,.0f} times" for name, count in counts.items()]
        advice = "its log has the traceback of each: docs/runbook.md, LoadmasterPluginFails"
        findings.append(warning(f"failed or were late since the start: {_named(failing)}", advice))
    if blind := samples.by("plugin", "loadmaster_plugin_data_faults_total"):
        message = f"could not read some of the data they go by: {_named(blind)}"
        findings.append(warning(message, "see what serves it: metrics-server, or your Prometheus"))
    return findings or [ok("no plugin has failed since the start")]


def _named(what: Iterable[str]) -> str:
    return ", ".join(islice(what, MAX_NAMED))
