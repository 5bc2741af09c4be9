"""Pods that wait: for Loadmaster's profiles, and for a scheduler that does not run."""

import re
from collections import Counter
from typing import Final

import msgspec

from scheduler.api.decoding import convert
from scheduler.api.pods.pod import Pod as DecidedPod
from scheduler.api.wording.near_names import near_names
from scheduler.api.wording.text import counted, shortened
from scheduler.config.defaults import COSCHEDULING
from scheduler.doctor.evidence.cluster import Cluster
from scheduler.doctor.evidence.facts import Facts, known
from scheduler.doctor.evidence.objects import MAX_TEXT, Condition, Pod
from scheduler.doctor.findings import Finding, ok, problem, warning
from scheduler.groups.apis.owners import named_by

LONG_SECONDS: Final = 300.0
"""A pod that has waited for this long is worth a line."""

UNSEEN_SECONDS: Final = 60.0
"""A pod that no scheduler has looked at for this long waits for one that is not there."""

MAX_NAMED: Final = 3

SELECTOR: Final = "spec.nodeName=,status.phase=Pending"

_REASON: Final = re.compile(r"^\d+ (?:node\(s\) )?")


async def pods(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether pods of Loadmaster's profiles wait for long, and why; and whether some have no scheduler."""
    profiles = known(facts.config).profiles
    listed = await cluster.list("/api/v1/pods", Pod, fieldSelector=SELECTOR)
    waiting = [pod for pod in listed.items if pod.metadata.deletion_timestamp is None]
    ours = [pod for pod in waiting if pod.spec.scheduler_name in profiles]
    unseen = [
        pod
        for pod in waiting
        if pod.condition("PodScheduled") is None and facts.age(pod.metadata.creation_timestamp) > UNSEEN_SECONDS
    ]
    findings = _unserved([pod for pod in unseen if pod not in ours], list(profiles))
    if overlooked := [pod for pod in unseen if pod in ours]:
        message = f"{counted(len(overlooked), 'pod')} of our profiles were never tried, as {overlooked[0]}"
        findings.append(problem(message, "no replica works, or its tables differ: see the lines `leader` and `tables`"))
    long = [pod for pod in ours if pod not in unseen and facts.age(pod.metadata.creation_timestamp) > LONG_SECONDS]
    if long:
        message = f"{counted(len(long), 'pod')} wait for more than {LONG_SECONDS / 60:.0f} minutes: {_reasons(long)}"
        findings.append(warning(message, f"loadmaster explain {long[0]}"))
    findings += _ignored([pod for pod in ours if COSCHEDULING not in profiles[pod.spec.scheduler_name]])
    findings += await _of_other_schedulers(
        cluster, [pod for pod in ours if COSCHEDULING in profiles[pod.spec.scheduler_name]], list(profiles)
    )
    more = "" if listed.is_whole else f" of the first {len(listed.items):,}"
    return findings or [ok(f"{counted(len(ours), 'waiting pod')}{more} of our profiles, none of them for long")]


def _ignored(pods: list[Pod]) -> list[Finding]:
    """A line about pods that name a group which their profile does not keep together."""
    named = [pod for pod in pods if _group_of(pod)]
    if not named:
        return []
    message = f"{counted(len(named), 'pod')} name a group, as {named[0]}, and start one by one"
    return [warning(message, f"enable the plugin {COSCHEDULING} in their profile: docs/groups.md")]


async def _of_other_schedulers(cluster: Cluster, pods: list[Pod], profiles: list[str]) -> list[Finding]:
    """A line about pods of the groups that wait which do not count there, as they are for other schedulers."""
    groups = {(pod.metadata.namespace, group) for pod in pods if (group := _group_of(pod))}
    others: list[Pod] = []
    for namespace in sorted({namespace for namespace, _ in groups})[:MAX_NAMED]:
        listed = await cluster.list(f"/api/v1/namespaces/{namespace}/pods", Pod)
        there = [pod for pod in listed.items if (namespace, _group_of(pod)) in groups]
        others += [pod for pod in there if pod.spec.scheduler_name not in profiles]
    if not others:
        return []
    of = f"as {others[0]} with {others[0].spec.scheduler_name!r}"
    message = f"{counted(len(others), 'pod')} of groups that wait do not count, {of}: other schedulers"
    return [warning(message, "give all pods of a group the same spec.schedulerName: docs/groups.md")]


def _group_of(pod: Pod) -> str:
    return named_by(convert({"metadata": msgspec.to_builtins(pod.metadata)}, DecidedPod))


def _unserved(pods: list[Pod], profiles: list[str]) -> list[Finding]:
    """A line for each scheduler that pods name and that does not run."""
    names = Counter(pod.spec.scheduler_name for pod in pods)
    findings = []
    for name, count in names.most_common(MAX_NAMED):
        example = next(pod for pod in pods if pod.spec.scheduler_name == name)
        near = near_names(name, profiles)
        hint = f"did you mean {near[0]}? " if near else ""
        message = f"{counted(count, 'pod')} wait for the scheduler {name!r}, which nobody runs, as {example}"
        advice = f"{hint}profiles here: {', '.join(sorted(profiles))}; spec.schedulerName is set when a pod is created"
        findings.append(problem(message, advice))
    return findings


def _reasons(pods: list[Pod]) -> str:
    """The most frequent reasons, with the number of pods."""
    counts: Counter[str] = Counter()
    for pod in pods:
        scheduled = pod.condition("PodScheduled")
        counts.update(reasons_of(scheduled) if scheduled is not None else ())
    return ", ".join(f"{reason} ({count})" for reason, count in counts.most_common(MAX_NAMED)) or "not said"


def reasons_of(scheduled: Condition) -> set[str]:
    """The reasons in a condition, without numbers of nodes: `0/5 nodes are available: 3 Insufficient cpu, …`."""
    if scheduled.reason == "SchedulingGated":
        return {"scheduling gates"}
    head, _, rest = (scheduled.message or "").partition(": ")
    text = rest if "nodes are available" in head else head
    text = text.partition(". preemption: ")[0].partition(". ")[0].rstrip(".")
    return {shortened(_REASON.sub("", part.strip()), MAX_TEXT) for part in text.split(", ") if part.strip()}
