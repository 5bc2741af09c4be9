"""The installation: its Service, and its pods: created, ready, apart from each other, on nodes that can run them."""

from collections.abc import Iterator
from typing import Final

from scheduler.api.wording.text import shortened
from scheduler.doctor.evidence.cluster import Cluster, NotThere
from scheduler.doctor.evidence.facts import INSTANCE_LABEL, NAME_LABEL, Facts, known
from scheduler.doctor.evidence.objects import MAX_TEXT, AnyObject, Deployment, Ended, Pod, Service
from scheduler.doctor.findings import Finding, ok, problem, unknown, warning
from scheduler.framework.errors import ClusterError

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

ARCHITECTURES: Final = ("amd64", "arm64")
"""Of the image."""

ARCH_LABEL: Final = "kubernetes.io/arch"

WRONG_IMAGE: Final = ("exec format error", "no matching manifest", "no match for platform")
"""Words of the kernel, and of container runtimes, for an image that is for another processor."""


async def service(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Nothing, if the Service is there."""
    if not isinstance(facts.service, NotThere):
        known(facts.service)
        return []
    services = await cluster.list("/api/v1/services", Service, 1, labelSelector=f"{NAME_LABEL}=loadmaster")
    names = [each.metadata for each in services.items if each.metadata.label(INSTANCE_LABEL)][:3]
    others = " or ".join(f"--service-namespace {each.namespace} --service {each.name}" for each in names)
    message = f"there is no Service {facts.namespace}/{facts.name}"
    return [problem(message, others or "no Loadmaster is installed: docs/chart.md tells how")]


async def creation(facts: Facts, _: Cluster) -> list[Finding]:
    """Whether the Deployment can create its pods."""
    said = facts.deployment.refusal if isinstance(facts.deployment, Deployment) else ""
    if not said:
        return []
    remedy = next((advice for words, advice in REMEDIES if words in said), "kubectl describe replicasets")
    return [problem(f"no pod can be created: {shortened(' '.join(said.split()), MAX_TEXT)}", remedy)]


async def pods(facts: Facts, _: Cluster) -> list[Finding]:
    """Whether all replicas are ready, and on different nodes."""
    pods = [pod for pod in known(facts.pods) if pod.metadata.deletion_timestamp is None]
    if isinstance(facts.deployment, NotThere) and not pods:
        if known(facts.service).spec.selector:
            return [unknown("no pods are behind the Service")]
        return [ok("the Service selects no pods: the scheduler runs elsewhere")]
    wanted = len(pods)
    if isinstance(facts.deployment, Deployment):
        wanted = 1 if facts.deployment.spec.replicas is None else facts.deployment.spec.replicas
        if facts.deployment.refusal and not pods:
            return []  # `creation` has that line
    ready = [pod for pod in pods if pod.is_ready]
    findings = [finding for pod in pods if not pod.is_ready for finding in _broken(pod)]
    if not wanted:
        findings.append(problem("no replica is wanted: scheduling is paused", "set `replicas` of the chart"))
    elif len(ready) < wanted:
        level = warning if ready else problem
        advice = f"kubectl describe pods -n {facts.namespace}: their events and last states say why"
        findings.append(level(f"{len(ready)} of {wanted} replicas are ready", advice))
    nodes = {pod.spec.node_name for pod in ready}
    if len(ready) > 1 and len(nodes) == 1:
        advice = "if it stops, nobody schedules until one starts elsewhere: topologySpreadConstraints of the chart"
        findings.append(warning(f"all {len(ready)} replicas are on the node {nodes.pop()}", advice))
    if wanted == 1:
        findings.append(warning("there is one replica", "with two, another one takes over in seconds: `replicas: 2`"))
    return findings or [ok(f"{len(ready)} replicas are ready, on {len(nodes)} nodes")]


def _broken(pod: Pod) -> Iterator[Finding]:
    for status in pod.status.container_statuses or ():
        states = [each for each in (status.state, status.last_state) if each is not None]
        ends = [end for each in states for end in (each.waiting, each.terminated) if end is not None]
        said = next((end.said for end in reversed(ends) if end.message), "") or next((end.said for end in ends), "")
        if not said:
            continue
        if _is_wrong_image(ends):
            advice = "build the image for the nodes, or choose others by nodeSelector kubernetes.io/arch"
            yield problem(f"the image of {pod} is for another architecture than {pod.spec.node_name}: {said}", advice)
        else:
            logs = f"kubectl logs -n {pod.metadata.namespace} {pod.metadata.name} --previous"
            yield problem(f"{pod} restarted {status.restart_count} times: {said}", logs)


def _is_wrong_image(ends: list[Ended]) -> bool:
    return any(sign in (end.message or "") for end in ends for sign in WRONG_IMAGE)


async def budget(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether a PodDisruptionBudget keeps one replica while nodes are drained."""
    if len(known(facts.pods)) < 2:
        return []
    path = f"/apis/policy/v1/namespaces/{facts.namespace}/poddisruptionbudgets"
    instance = known(facts.pods)[0].metadata.label(INSTANCE_LABEL)
    budgets = await cluster.list(path, AnyObject, 1, labelSelector=f"{INSTANCE_LABEL}={instance}")
    if not budgets.items:
        advice = "a drain may evict all replicas at once: the chart makes one for two replicas or more"
        return [warning("no PodDisruptionBudget protects the replicas", advice)]
    return [ok("a PodDisruptionBudget protects the replicas")]


async def architectures(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether there are nodes whose processors the image is not made for."""
    listed = await cluster.list("/api/v1/nodes", AnyObject)
    found = {node.metadata.label(ARCH_LABEL) for node in listed.items} - {""}
    others = sorted(found.difference(ARCHITECTURES))
    if others and not isinstance(facts.deployment, ClusterError):
        advice = "keep the scheduler on nodes of its image: nodeSelector kubernetes.io/arch: amd64"
        message = f"there are nodes of {', '.join(others[:5])}; the image is for {' and '.join(ARCHITECTURES)}"
        return [warning(message, advice)]
    return [ok(f"nodes are of {', '.join(sorted(found)) or 'unnamed architectures'}")]
