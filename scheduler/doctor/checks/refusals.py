"""Pods of the scheduler that the API server refuses to create: by quota, by policy, or for want of what they name."""

from typing import Final

from scheduler.api.text import shortened
from scheduler.doctor.evidence.cluster import Cluster
from scheduler.doctor.evidence.facts import Facts
from scheduler.doctor.evidence.objects import MAX_TEXT, Deployment
from scheduler.doctor.findings import Finding, problem

REMEDIES: Final = (
    (
        "insufficient quota to match these scopes",
        "the cluster keeps this priority class to kube-system, as GKE does: install there, set priorityClassName: "
        '"", or create the ResourceQuota in docs/operations/install.md',
    ),
    (
        "unable to validate against any security context constraint",
        "OpenShift assigns users: podSecurityContext: {runAsUser: null, runAsGroup: null}",
    ),
    (
        "violates PodSecurity",
        "the default values comply with `restricted`: see podSecurityContext, securityContext, hostNetwork and the "
        "containers and volumes of your own, or label the namespace",
    ),
    ("exceeded quota", "raise the quota of the namespace, or set `resources`, or fewer `replicas`"),
    ("must specify", "the quota of the namespace needs requests and limits: set `resources`"),
    ("no PriorityClass with name", "create it, or set priorityClassName"),
    ("error looking up service account", "create the account, or set serviceAccount.create: true"),
    ("admission webhook", "a policy of the cluster refuses them: its message says what to change"),
    (" usage per Container", "the LimitRange of the namespace allows less: change it, or set `resources`"),
)
"""Words of the API server → what to do."""


async def of_pods(facts: Facts, _: Cluster) -> list[Finding]:
    """Whether the Deployment can create its pods."""
    said = facts.deployment.refusal if isinstance(facts.deployment, Deployment) else ""
    if not said:
        return []
    remedy = next((advice for words, advice in REMEDIES if words in said), "kubectl describe replicasets")
    return [problem(f"no pod can be created: {shortened(' '.join(said.split()), MAX_TEXT)}", remedy)]
