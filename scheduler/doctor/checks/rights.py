"""The permissions of the scheduler's account and of the user who asks, and what the API server serves."""

from collections.abc import Sequence
from typing import Final

from scheduler.doctor.evidence.cluster import Cluster
from scheduler.doctor.evidence.facts import Facts, known
from scheduler.doctor.findings import Finding, ok, problem, warning
from scheduler.framework.awaited import together
from scheduler.framework.errors import ClusterError
from scheduler.framework.nodes.resources import OTHER_VERSION, SINCE_1_37, ApiResource
from scheduler.kube.permissions import Permission, denial, lease_permissions, rules_for
from scheduler.kube.services.service_proxy import EXPLAIN, PORT
from scheduler.snapshots.kept_fields import KINDS

DELEGATION: Final = (
    Permission("authentication.k8s.io", "tokenreviews", ("create",)),
    Permission("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)

MAX_NAMED: Final = 3

METRICS: Final = ApiResource("metrics.k8s.io", "v1beta1", "nodes")

READ_BESIDES: Final = {"LoadAware": METRICS}
"""Plugin → a resource that it reads, but does not watch."""

WITHOUT: Final = {
    "metrics.k8s.io": "install metrics-server, or let LoadAware ask a Prometheus",
    "policy": "preemption respects no PodDisruptionBudget: upgrade the API server",
    "resource.k8s.io": "pods with ResourceClaims wait until it is served; it is since Kubernetes 1.34",
    "storage.k8s.io": "volumes of such drivers are not looked at: upgrade the API server",
}


async def of_the_account(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether the scheduler's account has what its configuration needs."""
    config = known(facts.config)
    needed = config.permissions
    if config.election.leader_elect and not isinstance(facts.lease, ClusterError):
        needed += lease_permissions(facts.lease.metadata.namespace, facts.lease.metadata.name)
    missing = await cluster.missing(needed, facts.account)
    if missing:
        rules = "\n".join(rules_for(missing))
        advice = f"add to the ClusterRole {facts.namespace}:{facts.name}, or apply the chart again:\n{rules}"
        return [problem(f"the account {facts.account} {_named(missing)}", advice)]
    but = f", apart from what {', '.join(config.unknown_plugins)} may need" if config.unknown_plugins else ""
    return [ok(f"the account {facts.account} may do all that its configuration needs{but}")]


async def of_the_port(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether the scheduler can find out who asks for its metrics."""
    missing = await cluster.missing(DELEGATION, facts.account)
    if missing:
        message = f"the account {facts.account} {_named(missing)}, so nobody can read its metrics"
        return [problem(message, f"bind it to the ClusterRole system:auth-delegator:\n{_delegation(facts)}")]
    return [ok(f"the account {facts.account} may ask the API server who reads its metrics")]


async def of_the_user(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether the one who asks may use `explain` and `snapshot`."""
    role = f"{facts.name}-{EXPLAIN}"
    explain = (
        Permission("", "serviceaccounts/token", ("create",), facts.namespace, role),
        Permission("", "services/proxy", ("get",), facts.namespace, f"https:{facts.name}:{PORT}"),
    )
    snapshot = [Permission(kind.resource.group, kind.resource.plural, ("list",)) for kind in KINDS]
    findings = []
    if missing := await cluster.missing(explain):
        bind = f"kubectl create rolebinding {EXPLAIN} -n {facts.namespace} --role={role} --user=YOU"
        findings.append(warning(f"you cannot use `loadmaster explain`: you {_named(missing)}", bind))
    if missing := await cluster.missing(snapshot):
        advice = "docs/examples/snapshot-reader.yaml has a role for it"
        findings.append(warning(f"your snapshots are not complete: you {_named(missing)}", advice))
    return findings or [ok("you may use `loadmaster explain` and `loadmaster snapshot`")]


def _named(missing: Sequence[Permission]) -> str:
    more = len(missing) - MAX_NAMED
    named = "; ".join(map(denial, missing[:MAX_NAMED]))
    return named + (f"; and {more} more" if more > 0 else "")


def _delegation(facts: Facts) -> str:
    account = facts.account.replace("/", ":")
    name = f"{facts.namespace}:{facts.name}:delegation"
    return f"kubectl create clusterrolebinding {name} --clusterrole=system:auth-delegator --serviceaccount={account}"


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
