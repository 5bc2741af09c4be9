"""The scheduler's port: health, and who reads its metrics."""

from typing import Final

from scheduler.api.wording.text import shortened
from scheduler.doctor.evidence.cluster import Cluster, NotThere
from scheduler.doctor.evidence.facts import Facts
from scheduler.doctor.evidence.objects import MAX_TEXT, Event, ServiceMonitor
from scheduler.doctor.findings import Finding, ok, problem, warning
from scheduler.kube.services.service_proxy import NotRunning, Refused

PATHS: Final = ("/metrics", "/metrics/slis")


async def health(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether a replica answers, and finds itself healthy."""
    findings = list[Finding]()
    for path in ("livez", "readyz"):
        try:
            text = (await cluster.page(f"{path}?verbose")).decode(errors="replace")
        except NotRunning as error:
            return [problem(str(error), "see the line `replicas`; without any, `kubectl get pods` and their logs")]
        failed = [line[3:].partition(" ")[0] for line in text.splitlines() if line.startswith("[-]")]
        if failed:
            message = f"/{path} is not healthy: {', '.join(failed[:5])}"
            findings.append(problem(message, "docs/operations/high-availability.md explains each; its log says why"))
    return findings or [ok("the port answers, /livez and /readyz are healthy")]


async def metrics(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Whether metrics can be read, and a Prometheus operator collects them."""
    try:
        await cluster.page("metrics")
    except Refused as error:
        return [warning(f"you may not read metrics: {error}", facts.role_binding)]
    monitors = f"/apis/monitoring.coreos.com/v1/namespaces/{facts.namespace}/servicemonitors/{facts.name}"
    try:
        monitor = await cluster.get(monitors, ServiceMonitor)
    except NotThere:
        return [ok("metrics can be read; no ServiceMonitor collects them (monitoring.serviceMonitor.enabled)")]
    if said := _rejection(monitor) or await _rejected_by_event(facts, cluster):
        return [problem(f"the ServiceMonitor was rejected: {said}", _remedy(said))]
    return [ok("metrics can be read, and a ServiceMonitor is there")]


def _rejection(monitor: ServiceMonitor) -> str:
    """The reason in the status, which newer operators write; empty if the monitor is accepted."""
    for binding in monitor.status.bindings or ():
        for each in binding.conditions or ():
            if (each.type, each.status) == ("Accepted", "False"):
                return shortened(each.message or each.reason or binding.name, MAX_TEXT)
    return ""


async def _rejected_by_event(facts: Facts, cluster: Cluster) -> str:
    """The reason in an Event, which lasts for an hour; empty without one."""
    of_it = f"involvedObject.kind=ServiceMonitor,involvedObject.name={facts.name},reason=InvalidConfiguration"
    events = await cluster.list(f"/api/v1/namespaces/{facts.namespace}/events", Event, 1, fieldSelector=of_it)
    said = next((each.message or "" for each in events.items), "")
    return shortened(said.partition("invalid configuration: ")[2] or said, MAX_TEXT)


def _remedy(said: str) -> str:
    if "file" in said:
        return "this Prometheus denies file access: monitoring.serviceMonitor.authorization of the chart names a Secret"
    return "kubectl describe servicemonitor: its Events say why"


async def reader(facts: Facts, cluster: Cluster, account: str) -> list[Finding]:
    """Whether an account, `namespace/name`, may read metrics."""
    refused = [path for path in PATHS if not await cluster.may_read(account, path)]
    if refused:
        advice = "docs/examples/metrics-reader.yaml has a role for it"
        return [problem(f"the account {account} may not get {', '.join(refused)}", advice)]
    return [ok(f"the account {account} may read metrics")]
