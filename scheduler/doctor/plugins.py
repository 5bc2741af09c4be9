"""The configuration in effect and its plugins: whether the newest one was taken, and which plugins fail."""

from typing import Final

from scheduler.doctor.cluster import Cluster
from scheduler.doctor.facts import Facts, known
from scheduler.doctor.findings import Finding, ok, problem, warning
from scheduler.framework.errors import ConfigError

MAX_NAMED: Final = 5


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


CHECK: Final = "`loadmaster config check FILE` says what is wrong with a file before it is applied"


async def faults(facts: Facts, _: Cluster) -> list[Finding]:
    """Whether plugins fail, or are out of the way for that."""
    samples = known(facts.samples)
    findings = list[Finding]()
    paused = sorted({labels.get("plugin", "") for labels, value in samples.of("loadmaster_plugins_paused") if value})
    if paused:
        advice = "pods are decided without them, or wait: docs/runbook.md, LoadmasterPluginPaused"
        findings.append(problem(f"out of the way, as they failed too often: {', '.join(paused[:MAX_NAMED])}", advice))
    counts: dict[str, float] = {}
    for labels, value in samples.of("loadmaster_plugin_faults_total"):
        counts[labels.get("plugin", "")] = counts.get(labels.get("plugin", ""), 0) + value
    failing = [f"{name} {count:,.0f} times" for name, count in sorted(counts.items()) if count]
    if failing:
        advice = "its log has the traceback of each: docs/runbook.md, LoadmasterPluginFails"
        findings.append(warning(f"failed or were late since the start: {', '.join(failing[:MAX_NAMED])}", advice))
    blind = {labels.get("plugin", "") for labels, value in samples.of("loadmaster_plugin_data_faults_total") if value}
    if blind:
        message = f"could not read some of the data they go by: {', '.join(sorted(blind)[:MAX_NAMED])}"
        findings.append(warning(message, "see what serves it: metrics-server, or your Prometheus"))
    return findings or [ok("no plugin has failed since the start")]
