"""Whether the API server serves what the plugins read."""

from typing import Final

from scheduler.doctor.evidence.cluster import Cluster
from scheduler.doctor.evidence.facts import Facts, known
from scheduler.doctor.findings import Finding, ok, warning
from scheduler.framework.awaited import together
from scheduler.framework.resources import OTHER_VERSION, SINCE_1_37, ApiResource

METRICS: Final = ApiResource("metrics.k8s.io", "v1beta1", "nodes")

READ_BESIDES: Final = {"LoadAware": METRICS}
"""Plugin → a resource that it reads, but does not watch."""

WITHOUT: Final = {
    "metrics.k8s.io": "install metrics-server, or let LoadAware ask a Prometheus",
    "policy": "preemption respects no PodDisruptionBudget: upgrade the API server",
    "resource.k8s.io": "pods with ResourceClaims wait until it is served; it is since Kubernetes 1.34",
    "storage.k8s.io": "volumes of such drivers are not looked at: upgrade the API server",
}


async def resources(facts: Facts, cluster: Cluster) -> list[Finding]:
    """A line for each group of which something is missing."""
    config = known(facts.config)
    enabled = {plugin for plugins in config.profiles.values() for plugin in plugins}
    wanted = [*config.resources, *(each for plugin, each in READ_BESIDES.items() if plugin in enabled)]
    answers = await together(*map(cluster.serves, wanted))
    missing: dict[str, list[str]] = {}
    served = {resource for resource, is_served in zip(wanted, answers, strict=True) if is_served}
    for resource in wanted:
        if resource not in served | SINCE_1_37 and OTHER_VERSION.get(resource) not in served:
            missing.setdefault(resource.group, []).append(resource.plural)
    advice = "its plugins see none until it is served; then they see it without a restart"
    return [
        warning(f"not served: {', '.join(names)} of {group or 'the core group'}", WITHOUT.get(group, advice))
        for group, names in missing.items()
    ] or [ok(f"all {len(served)} resources that the plugins read are served")]
