"""Versions that go together: of API server, scheduler, chart, this command, and kube-scheduler."""

import platform
import re
from importlib.metadata import version
from typing import Final

from scheduler.doctor.evidence.cluster import Cluster, NotThere
from scheduler.doctor.evidence.facts import Facts, known
from scheduler.doctor.evidence.objects import Pod
from scheduler.doctor.findings import Finding, ok, problem, warning
from scheduler.kube.versions import MAX_APART, distance, minor_of, version_problem

OURS: Final = re.compile(r"\+loadmaster\.([0-9A-Za-z.+-]{1,40})$", re.ASCII)
"""In the version that `kubernetes_build_info` shows."""

VERSION_LABEL: Final = "app.kubernetes.io/version"

STATIC_PODS: Final = "/api/v1/namespaces/kube-system/pods"


async def of_the_api_server(facts: Facts, _: Cluster) -> list[Finding]:
    """Whether Loadmaster is tested with this API server."""
    problems = version_problem(facts.server.version)
    if problems:
        return [warning(problems, "look at the line `served` for what it lacks; docs/versions.md has the versions")]
    return [ok(f"API server {facts.server.version}")]


async def of_loadmaster(facts: Facts, _: Cluster) -> list[Finding]:
    """Whether the running scheduler, its chart and this command are of about the same version."""
    build = known(facts.samples).build
    shown = build.get("git_version", "")
    running = OURS.search(shown)
    if running is None:
        advice = "is another scheduler behind the Service?"
        return [warning(f"the scheduler's version, {shown[:60]!r}, is not one of Loadmaster's", advice)]
    ours, here = running[1], version("loadmaster")
    python = build.get("go_version", "").removeprefix("python")
    findings = []
    if distance(ours, here) > MAX_APART:
        advice = "install the version of this command that is running; they may not understand each other"
        findings.append(warning(f"this command is of version {here}, the running scheduler of {ours}", advice))
    else:
        findings.append(ok(f"Loadmaster {ours} on Python {python}; this command {here} on {platform.python_version()}"))
    if isinstance(facts.deployment, NotThere):
        return findings
    chart = known(facts.deployment).metadata.label("helm.sh/chart").rpartition("-")[2]
    if chart and distance(ours, chart) > 0:
        advice = "helm upgrade with the chart of the image's version: flags and permissions belong to a version"
        findings.append(warning(f"the chart is of version {chart}, the running scheduler of {ours}", advice))
    return findings


async def of_the_replicas(facts: Facts, _: Cluster) -> list[Finding]:
    """Whether all replicas are of one version."""
    versions = sorted({label for pod in known(facts.pods) if (label := pod.metadata.label(VERSION_LABEL))})
    if len(versions) < 2:
        return []
    message = f"replicas of versions {', '.join(versions[:5])} are there at once"
    if max(distance(one, other) for one in versions for other in versions) > MAX_APART:
        return [problem(message, "upgrade one minor version after the other: `helm rollback`, then each in turn")]
    return [warning(message, "an upgrade is under way; if it stays so: kubectl rollout status")]


async def of_kube_scheduler(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether the kube-scheduler of the cluster decides by about the same rules."""
    emulated = known(facts.samples).build.get("git_version", "")
    pods = await cluster.list(STATIC_PODS, Pod, pages=1, labelSelector="component=kube-scheduler")
    images = {container.image for pod in pods.items for container in pod.spec.containers or ()}
    versions = sorted({image.rpartition(":")[2] for image in images if minor_of(image.rpartition(":")[2])})
    if not versions:
        return []
    neighbour = f"kube-scheduler {', '.join(versions[:3])} runs beside it"
    if any(distance(each, emulated) > MAX_APART for each in versions):
        rules = emulated.partition("+")[0]
        return [warning(f"{neighbour}, and Loadmaster decides by the rules of {rules}", "see docs/differences.md")]
    return [ok(neighbour)]
