"""Whether there is an installation of that name, and else which there are."""

from scheduler.doctor.evidence.cluster import Cluster, NotThere
from scheduler.doctor.evidence.facts import INSTANCE_LABEL, NAME_LABEL, Facts, known
from scheduler.doctor.evidence.objects import Service
from scheduler.doctor.findings import Finding, problem


async def found(facts: Facts, cluster: Cluster) -> list[Finding]:
    """Nothing, if the Service is there."""
    if not isinstance(facts.service, NotThere):
        known(facts.service)
        return []
    services = await cluster.list("/api/v1/services", Service, 1, labelSelector=f"{NAME_LABEL}=loadmaster")
    names = [each.metadata for each in services.items if each.metadata.label(INSTANCE_LABEL)][:3]
    others = " or ".join(f"--service-namespace {each.namespace} --service {each.name}" for each in names)
    message = f"there is no Service {facts.namespace}/{facts.name}"
    return [problem(message, others or "no Loadmaster is installed: docs/chart.md tells how")]
