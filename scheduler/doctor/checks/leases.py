"""The Lease and its holder; other schedulers that may serve the same pods; and whether clocks agree."""

from typing import Final

from scheduler.doctor.evidence.cluster import Cluster, NotThere
from scheduler.doctor.evidence.configured import CONFIG_KEY, Configured, of_file
from scheduler.doctor.evidence.facts import INSTANCE_LABEL, NAME_LABEL, Facts, known
from scheduler.doctor.evidence.objects import ConfigMap, Lease, Pod
from scheduler.doctor.findings import Finding, ok, problem, unknown, warning
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.election.installation import Leader, deployment_of, leader_of
from scheduler.plugin_loading.in_tree import in_tree

DEFAULT_SCHEDULER: Final = "default-scheduler"

KUBE_SCHEDULER_LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"

MAX_OTHERS: Final = 5

LOGS: Final = "kubectl logs of its pods say what they wait for"

MAX_SECONDS: Final = 5.0
"""The API server shows whole seconds, and the answer takes its time."""

NTP: Final = "see that the machine follows a time server (chrony, systemd-timesyncd)"


async def leader(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether a replica of this installation leads, and renews the Lease."""
    config = known(facts.config)
    if not config.election.leader_elect:
        return [ok("without leader election: the one replica works")]
    if isinstance(facts.lease, NotThere):
        return [problem("there is no Lease: no replica has ever led", LOGS)]
    lease = known(facts.lease)
    spec, name = lease.spec, f"{lease.metadata.namespace}/{lease.metadata.name}"
    holder = leader_of(spec.holder_identity or "", lease.metadata.annotations or {})
    if not holder.identity:
        return [problem(f"nobody holds the Lease {name}", LOGS)]
    silent = facts.age(spec.renew_time)
    if silent > (spec.lease_duration_seconds or 15) + 2:
        message = f"the Lease {name} of {holder.host} was not renewed for {silent:.0f} s"
        return [problem(message, "no replica works: see that one runs, and what it logs")]
    if foreign := _foreign(facts, holder):
        advice = (
            "only one of two installations with the same Lease works: give each a Lease of its own, "
            "config.leaderElection.resourceName"
        )
        return [problem(f"the Lease {name} is held by {holder.host} of {foreign}, another installation", advice)]
    since = "" if spec.acquire_time is None else f" since {spec.acquire_time:%Y-%m-%d %H:%M} UTC"
    version = f" ({holder.version})" if holder.version else ""
    return [ok(f"{holder.host}{version} leads{since}; renewed {max(silent, 0):.0f} s ago")]


def _foreign(facts: Facts, holder: Leader) -> str:
    """The other installation that holds the Lease; empty if it is this one, or not known."""
    if isinstance(facts.pods, ClusterError) or holder.host in {pod.metadata.name for pod in facts.pods}:
        return ""
    if holder.installation:
        return "" if holder.installation == f"{facts.namespace}/{facts.name}" else holder.installation
    other = deployment_of(holder.host)
    return "" if other in ("", facts.name) else f"the Deployment {other}"


async def others(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether another scheduler serves a profile's name, too."""
    profiles = set(known(facts.config).profiles)
    findings = await _kube_scheduler(facts, cluster, profiles)
    pods = await cluster.list("/api/v1/pods", Pod, labelSelector=f"{NAME_LABEL}=loadmaster")
    found = sorted({(pod.metadata.namespace, pod.metadata.label(INSTANCE_LABEL)) for pod in pods.items})
    ours = {pod.metadata.label(INSTANCE_LABEL) for pod in known(facts.pods)} | {facts.name}
    rest = [each for each in found if each[1] and not (each[0] == facts.namespace and each[1] in ours)]
    for namespace, name in rest[:MAX_OTHERS]:
        findings.append(await _other(cluster, profiles, namespace, name))
    return findings or [ok(f"no other scheduler is known to serve {', '.join(sorted(profiles))}")]


async def _other(cluster: Cluster, profiles: set[str], namespace: str, name: str) -> Finding:
    other = f"another installation, {namespace}/{name},"
    try:
        config = await _profiles_of(cluster, namespace, name)
    except (ClusterError, ConfigError) as error:
        return unknown(f"{other} runs; which pods it serves is not known: {error}")
    shared = sorted(profiles & set(config.profiles))
    if shared:
        advice = "two schedulers for the same pods overcommit nodes: rename the profile of one"
        return problem(f"{other} serves {', '.join(shared)}, too", advice)
    return ok(f"{other} serves {', '.join(sorted(config.profiles))} only")


async def _profiles_of(cluster: Cluster, namespace: str, name: str) -> Configured:
    config = await cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}", ConfigMap)
    return of_file((config.data or {}).get(CONFIG_KEY, ""), CONFIG_KEY, in_tree())


async def _kube_scheduler(facts: Facts, cluster: Cluster, profiles: set[str]) -> list[Finding]:
    if DEFAULT_SCHEDULER not in profiles:
        return []
    try:
        lease = await cluster.get(KUBE_SCHEDULER_LEASE, Lease)
    except NotThere:
        return []
    if facts.age(lease.spec.renew_time) > (lease.spec.lease_duration_seconds or 15):
        return []
    holder = Leader(lease.spec.holder_identity or "")
    message = f"kube-scheduler on {holder.host} serves {DEFAULT_SCHEDULER}, too"
    return [warning(message, "stop it, or rename the profile: two schedulers for the same pods overcommit nodes")]


async def of_this_machine(facts: Facts, _: Cluster) -> list[Finding]:
    """This machine's clock, compared with the API server's."""
    ahead = facts.server.ahead
    if ahead is None:
        return [unknown("the API server shows no time")]
    if abs(ahead) > MAX_SECONDS:
        return [warning(f"this machine's clock is {_apart(-ahead)} the API server's", NTP)]
    return [ok(f"this machine's clock is {_apart(-ahead)} the API server's")]


async def of_the_leader(facts: Facts, _: Cluster) -> list[Finding]:
    """The leader's clock: it writes its time into the Lease, and the API server adds its own."""
    if not known(facts.config).election.leader_elect:
        return []
    lease = known(facts.lease)
    written = [each.time for each in lease.metadata.managed_fields or () if each.time is not None]
    if lease.spec.renew_time is None or not written or not lease.spec.holder_identity:
        return [unknown("the Lease does not show the leader's time")]
    ahead = (lease.spec.renew_time - max(written)).total_seconds() - 0.5
    if abs(ahead) > MAX_SECONDS:
        return [warning(f"the leader's clock is {_apart(ahead)} the API server's", f"on its node: {NTP}")]
    return [ok(f"the leader's clock is {_apart(ahead)} the API server's")]


def _apart(seconds: float) -> str:
    if abs(seconds) < 1.5:
        return "within a second of"
    return f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"
